// Bytes of the parts of storages. Internal to the module.
// Thread safety: constants.
#pragma once

#include <cstdint>

namespace foretune::sparse::internal {

inline constexpr std::uint64_t kStartBytes = sizeof(std::int64_t);
inline constexpr std::uint64_t kIndexBytes = sizeof(std::int32_t);

}  // namespace foretune::sparse::internal
