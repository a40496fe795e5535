// Makes models for the tests of dispatchers. Not part of the library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/model/forest/forest_body.h"

namespace foretune {

// A candidate and the time that the model predicts for it, ln ns, whatever the problem.
struct ScoredConfig {
  Config config;     // empty: the model scores others so, and has none of them in its pool
  double until = 0;  // candidates with the same value share a score: the split column is below it
  double score = 0;
};

// Makes a model of one tree that splits on `column` of the table, whose problems may have any size.
// The caller sets the names of its family, and the schema and space of its configs.
inline Model one_tree_model(ProblemType problem_type, std::string_view table_name,
                            std::string_view column, std::vector<ScoredConfig> candidates) {
  const FeatureTable* const table = *find_feature_table(table_name);
  Model model;
  model.problem_type = problem_type;
  model.problem_schema = find_problem_schema(problem_type)->id();
  model.feature_table = std::string(table->name());
  model.feature_table_id = feature_table_id(*table);
  model.fingerprint = h200_fingerprint();
  model.target = "log";
  model.card_json = "{}";
  for (const ScoredConfig& candidate : candidates) {
    if (!candidate.config.words.empty()) {
      model.pool.push_back(candidate.config);
    }
  }
  model.portfolio = {0};
  const auto named = std::ranges::find(table->columns(), column, &FeatureInfo::name);
  for (const FeatureInfo& info : table->columns()) {
    if (info.kind == FeatureKind::kProblem) {
      model.problem_range.emplace_back(-1e300, 1e300);
    }
  }
  std::ranges::stable_sort(candidates, {}, &ScoredConfig::until);
  const auto twins = std::ranges::unique(candidates, {}, &ScoredConfig::until);
  candidates.erase(twins.begin(), twins.end());
  Forest forest;
  forest.feature_count = static_cast<std::uint32_t>(table->columns().size());
  const auto nodes = static_cast<std::uint32_t>(candidates.size() - 1);
  forest.trees.push_back({0, nodes, 0, nodes + 1});
  for (std::uint32_t node = 0; node < nodes; ++node) {
    forest.feature.push_back(static_cast<std::uint32_t>(named - table->columns().begin()));
    forest.threshold.push_back(candidates[node].until);
    forest.left.push_back(~static_cast<std::int32_t>(node));
    forest.right.push_back(node + 1 == nodes ? ~static_cast<std::int32_t>(node + 1)
                                             : static_cast<std::int32_t>(node + 1));
    forest.default_left.push_back(0);
    forest.missing.push_back(Forest::Missing::kNone);
  }
  for (const ScoredConfig& candidate : candidates) {
    forest.leaf_value.push_back(candidate.score);
  }
  set_forests(model, {std::move(forest)});
  return model;
}

// Limits what was seen in training of one column of problems.
inline void set_problem_range(Model& model, std::string_view column,
                              std::pair<double, double> range) {
  std::size_t index = 0;
  for (const FeatureInfo& info : (*find_feature_table(model.feature_table))->columns()) {
    if (info.kind == FeatureKind::kProblem) {
      if (info.name == column) {
        model.problem_range[index] = range;
      }
      ++index;
    }
  }
}

}  // namespace foretune
