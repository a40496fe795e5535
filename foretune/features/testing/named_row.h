// A row of features by the names of its columns, for tests. Thread safety: free functions.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "foretune/features/feature_table.h"

namespace foretune {

inline std::map<std::string, double> named_row(const FeatureTable& table, const Problem& problem,
                                               const Hardware& hardware, const Config& config) {
  std::vector<double> row(table.columns().size());
  feature_row(table, problem, hardware, config, row);
  std::map<std::string, double> out;
  for (std::size_t i = 0; i < row.size(); ++i) {
    out.emplace(table.columns()[i].name, row[i]);
  }
  return out;
}

// Expects these columns of a row; it may have others.
inline void expect_columns(const std::map<std::string, double>& row,
                           const std::map<std::string, double>& expected) {
  for (const auto& [name, value] : expected) {
    const auto column = row.find(name);
    ASSERT_NE(column, row.end()) << name;
    EXPECT_DOUBLE_EQ(column->second, value) << name;
  }
}

}  // namespace foretune
