// What pools of candidates do alike, whatever scores them. Internal to models/infer.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"

namespace foretune {

inline constexpr std::size_t kPoolAlignment = 64;  // of the parts of a workspace

inline constexpr std::size_t pool_aligned(std::size_t bytes) {
  return (bytes + kPoolAlignment - 1) / kPoolAlignment * kPoolAlignment;
}

// Errors: kInvalidArgument for no configs and for words that are not configs of that many.
inline Status check_pool_words(std::span<const std::int32_t> words, std::size_t width) {
  if (width == 0 || words.empty() || words.size() % width != 0) {
    return fail(ErrorCode::kInvalidArgument, words.size(), " words are not configs of ", width,
                " words");
  }
  return {};
}

// The columns of kind kConfig, one after another, a value per candidate each.
inline std::vector<double> config_columns(const FeatureTable& table,
                                          std::span<const std::int32_t> words, std::size_t width) {
  const std::size_t size = words.size() / width;
  std::vector<double> row(feature_count(table, FeatureKind::kConfig));
  std::vector<double> out(row.size() * size);
  for (std::size_t i = 0; i < size; ++i) {
    table.config_row(words.subspan(i * width, width), row);
    for (std::size_t c = 0; c < row.size(); ++c) {
      out[c * size + i] = row[c];
    }
  }
  return out;
}

}  // namespace foretune
