// Files that may be gzip, told by their content and not by their name.
//
//   FORETUNE_TRY(const std::vector<std::byte> bytes, documents::read_maybe_gzip("model.lgbm.gz"));
//
// Thread safety: free functions without state. Cost: linear in what is inflated.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::documents {

// A small file may inflate to a thousand times its size.
inline constexpr std::size_t kMaxInflatedBytes = std::size_t{2} << 30U;

// The file's bytes, inflated when it is gzip. Refuses more than kMaxInflatedBytes.
Result<std::vector<std::byte>> read_maybe_gzip(const std::filesystem::path& path);
bool is_gzip(std::span<const std::byte> bytes);
// Several members that follow each other are one content. Errors: kCorrupt for data that is cut off
// or damaged, kInvalidArgument for more than `max_bytes`.
Result<std::vector<std::byte>> inflate_gzip(std::span<const std::byte> bytes,
                                            std::size_t max_bytes);
std::vector<std::byte> deflate_gzip(std::span<const std::byte> bytes);

}  // namespace foretune::documents
