// Work that the pools of all scorers share: features of candidates in columns, aligned workspaces.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/features/feature_table.h"

namespace foretune {

inline constexpr std::size_t kPoolAlignment = 64;  // of the parts of a workspace

inline constexpr std::size_t pool_aligned(std::size_t bytes) {
  return (bytes + kPoolAlignment - 1) / kPoolAlignment * kPoolAlignment;
}

// Returns the first aligned place of a workspace with room for `bytes` behind it; null when there
// is no room.
inline std::byte* pool_base(std::span<std::byte> workspace, std::size_t bytes) noexcept {
  void* start = workspace.data();
  std::size_t space = workspace.size();
  return static_cast<std::byte*>(std::align(kPoolAlignment, bytes, start, space));
}

// Errors: kInvalidArgument for no configs, and where the number of words is no multiple of the
// width.
inline Status check_pool_configs(ConfigWords configs) {
  if (configs.is_even() && (configs.empty() || configs.words().size() % configs.width() != 0)) {
    return fail(ErrorCode::kInvalidArgument, configs.words().size(), " words are not configs of ",
                configs.width(), " words");
  }
  return configs.empty() ? fail(ErrorCode::kInvalidArgument, "there are no configs to score")
                         : Status();
}

// Returns the columns of kind kConfig, one after another, each with one value per candidate.
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
