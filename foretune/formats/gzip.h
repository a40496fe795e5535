// Reads and writes gzip data. compressed.h reads files that may be compressed.
//
//   if (formats::is_gzip(bytes)) {
//     FORETUNE_TRY(const std::vector<std::byte> text, formats::inflate_gzip(bytes));
//   }
//
// Thread safety: free functions without state. Cost: linear in the inflated size.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::formats {

// Bounds the memory: a small file may inflate to a thousand times its size.
inline constexpr std::size_t kMaxInflatedBytes = std::size_t{2} << 30U;

bool is_gzip(std::span<const std::byte> bytes);
// Inflates gzip data; several members in a row are one content. Errors: kCorrupt for data that is
// cut off or damaged, kInvalidArgument for more than `max_bytes`.
Result<std::vector<std::byte>> inflate_gzip(std::span<const std::byte> bytes,
                                            std::size_t max_bytes);
// The same with at most kMaxInflatedBytes.
Result<std::vector<std::byte>> inflate_gzip(std::span<const std::byte> bytes);
std::vector<std::byte> deflate_gzip(std::span<const std::byte> bytes);

}  // namespace foretune::formats
