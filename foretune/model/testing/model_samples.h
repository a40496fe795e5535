// A small but complete model for tests: recorded-style GEMM configs, forests whose splits lie where
// features really are, and no training. Not part of the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/forest/testing/forest_samples.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

struct ModelShape {
  std::size_t forests = 1;
  std::size_t candidates = 400;
  ForestShape forest{.trees = 12, .max_leaves = 31};
};

inline Problem sample_gemm(Rng& rng) {
  const auto size = [&rng] { return std::int64_t{1} << rng.between(3, 12); };
  return GemmProblem::create(
             {.m = size() + rng.between(0, 7), .n = size(), .k = size(), .dtype = DataType::kBf16})
      ->to_problem();
}

inline SpaceDefinition sample_space() {
  SpaceDefinition definition;
  definition.problem_type = kGemmProblem;
  definition.schema.name = "sample-gemm";
  definition.schema.parameters = {{"block_m", {}}, {"block_n", {}},    {"block_k", {}},
                                  {"group_m", {}}, {"num_stages", {}}, {"num_warps", {}}};
  definition.domains = {{16, 32, 64, 128, 256}, {16, 32, 64, 128, 256},
                        {32, 64, 128},          {4, 8},
                        {2, 3, 4, 5},           {2, 4, 8}};
  definition.constraints = {{"block_m * block_n <= 32768", "the tile is too large"},
                            {"block_m < 4 * max(m, 16)", "the tile is too tall"},
                            {"block_n < 4 * max(n, 16)", "the tile is too wide"}};
  // With few rows of tiles there is nothing to group.
  definition.canonical = {{"group_m", "select(m <= 2 * block_m, 4, group_m)"}};
  return definition;
}

inline std::vector<Config> sample_pool(const ConfigSchema& schema, std::size_t count, Rng& rng) {
  const SpaceDefinition space = sample_space();
  std::vector<Config> pool;
  while (pool.size() < count) {
    Config config{.schema = schema.id()};
    for (const std::vector<std::int32_t>& domain : space.domains) {
      config.words.push_back(domain[rng.below(domain.size())]);
    }
    if (std::find(pool.begin(), pool.end(), config) == pool.end()) {
      pool.push_back(config);
    }
  }
  return pool;
}

// A model of relative times without a body and a pool.
inline Model bare_model(const SpaceDefinition& space, const FeatureTable& table) {
  Model model;
  model.problem_type = space.problem_type;
  model.family = "sample";
  model.problem_schema = find_problem_schema(space.problem_type)->id();
  model.config_schema = space.schema;
  model.space_text = space.text();
  model.feature_table = std::string(table.name());
  model.feature_table_id = feature_table_id(table);
  model.target = "relative-log";
  return model;
}

inline Model sample_model(const ModelShape& shape, Rng& rng) {
  const FeatureTable* table = *find_feature_table("gemm-triton");
  const SpaceDefinition space = sample_space();
  Model model = bare_model(space, *table);
  model.fingerprint = h200_fingerprint();
  model.pool = sample_pool(space.schema, shape.candidates, rng);
  model.portfolio = {3, 1, 2};
  model.residual_std = 0.125;
  model.seed = rng.next();
  model.data_fingerprint = Digest{rng.next(), rng.next()};
  model.card_json = R"({"made": "by a test"})";
  std::vector<std::vector<double>> rows(200, std::vector<double>(table->columns().size()));
  for (std::vector<double>& row : rows) {
    feature_row(*table, sample_gemm(rng), model.fingerprint.hardware,
                model.pool[rng.below(model.pool.size())], row);
  }
  ForestShape forest_shape = shape.forest;
  forest_shape.features = static_cast<std::uint32_t>(table->columns().size());
  std::vector<Forest> forests;
  for (std::size_t i = 0; i < shape.forests; ++i) {
    Forest forest = random_forest(forest_shape, rng);
    for (std::size_t node = 0; node < forest.feature.size(); ++node) {
      forest.threshold[node] = rows[rng.below(rows.size())][forest.feature[node]];
    }
    forests.push_back(std::move(forest));
  }
  set_forests(model, std::move(forests));
  const std::size_t problem_features = feature_count(*table, FeatureKind::kProblem);
  for (std::size_t f = 0; f < problem_features; ++f) {
    const auto [low, high] = std::minmax_element(
        rows.begin(), rows.end(), [f](const auto& a, const auto& b) { return a[f] < b[f]; });
    model.problem_range.emplace_back((*low)[f], (*high)[f]);
  }
  return model;
}

// Changes the forests of a model of them.
template <typename Edit>
void edit_forests(Model& model, Edit&& edit) {
  std::vector<Forest> forests = forests_of(model);
  edit(forests);
  set_forests(model, std::move(forests));
}

}  // namespace foretune
