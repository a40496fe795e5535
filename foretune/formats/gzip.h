// Reads files that may be gzip. The content decides, not the name.
//
//   FORETUNE_TRY(const std::vector<std::byte> bytes, formats::read_maybe_gzip("model.lgbm.gz"));
//
// Thread safety: free functions without state. Cost: linear in the inflated size.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::formats {

// Bounds the memory: a small file may inflate to a thousand times its size.
inline constexpr std::size_t kMaxInflatedBytes = std::size_t{2} << 30U;

// Returns the file's bytes, inflated when it is gzip. Refuses more than kMaxInflatedBytes.
Result<std::vector<std::byte>> read_maybe_gzip(const std::filesystem::path& path);
bool is_gzip(std::span<const std::byte> bytes);
// Inflates gzip data; several members in a row are one content. Errors: kCorrupt for data that is
// cut off or damaged, kInvalidArgument for more than `max_bytes`.
Result<std::vector<std::byte>> inflate_gzip(std::span<const std::byte> bytes,
                                            std::size_t max_bytes);
// The same with at most kMaxInflatedBytes.
Result<std::vector<std::byte>> inflate_gzip(std::span<const std::byte> bytes);
std::vector<std::byte> deflate_gzip(std::span<const std::byte> bytes);

}  // namespace foretune::formats
