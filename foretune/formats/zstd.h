// Reads Zstandard data (RFC 8878).
//
//   if (formats::is_zstd(bytes)) {
//     FORETUNE_TRY(const std::vector<std::byte> text, formats::inflate_zstd(bytes));
//   }
//
// Thread safety: free functions without state. Cost: linear in the inflated size; up to 128 MiB of
// memory for the window beside the content.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/formats/gzip.h"

namespace foretune::formats {

bool is_zstd(std::span<const std::byte> bytes);
// Inflates Zstandard data; several frames in a row are one content. Errors: kCorrupt for data that
// is cut off or damaged, kInvalidArgument for more than `max_bytes`, kUnsupported for a window of
// more than 128 MiB.
Result<std::vector<std::byte>> inflate_zstd(std::span<const std::byte> bytes,
                                            std::size_t max_bytes = kMaxInflatedBytes);

}  // namespace foretune::formats
