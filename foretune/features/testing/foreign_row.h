// A row of features as the model of others sees it. Thread safety: a free function.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "foretune/base/check.h"
#include "foretune/features/feature_table.h"

namespace foretune {

// Writes one full row in the foreign order, which the table must have.
inline void foreign_row(const FeatureTable& table, const Problem& problem, const Hardware& hardware,
                        const Config& config, std::span<double> out) {
  const std::span<const FeatureInfo> columns = table.columns();
  std::array<double, 256> row{};  // no allocation: tests count them
  FORETUNE_CHECK(columns.size() <= row.size() && out.size() == columns.size());
  feature_row(table, problem, hardware, config, std::span(row).first(columns.size()));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    FORETUNE_CHECK(columns[i].foreign_position >= 0);
    out[static_cast<std::size_t>(columns[i].foreign_position)] = row[i];
  }
}

}  // namespace foretune
