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

// Errors: kInvalidArgument for no configs and for words that are not configs of one length.
inline Status check_pool_configs(ConfigWords configs) {
  if (configs.is_even() && (configs.empty() || configs.words().size() % configs.width() != 0)) {
    return fail(ErrorCode::kInvalidArgument, configs.words().size(), " words are not configs of ",
                configs.width(), " words");
  }
  return configs.empty() ? fail(ErrorCode::kInvalidArgument, "there are no configs to score")
                         : Status();
}

// The columns of kind kConfig, one after another, a value per candidate each.
inline std::vector<double> config_columns(const FeatureTable& table, ConfigWords configs) {
  const std::size_t size = configs.size();
  std::vector<double> row(feature_count(table, FeatureKind::kConfig));
  std::vector<double> out(row.size() * size);
  for (std::size_t i = 0; i < size; ++i) {
    table.config_row(configs[i], row);
    for (std::size_t c = 0; c < row.size(); ++c) {
      out[c * size + i] = row[c];
    }
  }
  return out;
}

}  // namespace foretune
