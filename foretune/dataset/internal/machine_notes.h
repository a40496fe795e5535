// The notes that hold the facts of further machines: "machine 0123456789abcdef". Internal.
#pragma once

#include <string_view>

namespace foretune::dataset_internal {

inline constexpr std::string_view kMachineNote = "machine ";

}  // namespace foretune::dataset_internal
