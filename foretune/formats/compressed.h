// Reads files that may be compressed by gzip or Zstandard. The content decides, not the name.
//
//   FORETUNE_TRY(const std::vector<std::byte> bytes, formats::read_maybe_compressed("a.csv.zst"));
//
// Thread safety: free functions without state. Cost: linear in the inflated size.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::formats {

// Returns the file's bytes, inflated when they are compressed. Refuses more than kMaxInflatedBytes.
// Errors: those of reading the file and of inflating, with its path.
Result<std::vector<std::byte>> read_maybe_compressed(const std::filesystem::path& path);

}  // namespace foretune::formats
