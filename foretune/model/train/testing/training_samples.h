// Data sets with times by formula, so that what there is to learn is known. For tests.
// Thread safety: free functions without state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/trainer.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {

inline ConfigSchema tile_schema() {
  ConfigSchema schema;
  schema.name = "tiles";
  for (const char* name : {"block_m", "block_n", "block_k", "group_m", "num_stages", "num_warps"}) {
    schema.parameters.push_back({.name = name, .labels = {}});
  }
  return schema;
}

inline Config tile(std::int32_t block_m, std::int32_t block_n, std::int32_t warps = 4) {
  return {.schema = tile_schema().id(), .words = {block_m, block_n, 32, 8, 3, warps}};
}

inline std::vector<Config> tiles() {
  std::vector<Config> out;
  for (const std::int32_t block_m : {16, 32, 64, 128, 256}) {
    for (const std::int32_t block_n : {16, 32, 64, 128, 256}) {
      out.push_back(tile(block_m, block_n));
    }
  }
  return out;
}

inline Problem shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  return GemmProblem::create({.m = m, .n = n, .k = k, .dtype = DataType::kBf16})
      .value()
      .to_problem();
}

// Waves of tiles on 132 multiprocessors, each as slow as its larger of arithmetic and loads.
inline double formula_ns(const Problem& problem, const Config& config) {
  const GemmProblem gemm = GemmProblem::from(problem).value();
  const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const auto tiles_of = static_cast<double>(up(gemm.sizes().m, config.words[0]) *
                                            up(gemm.sizes().n, config.words[1]));
  const double area = static_cast<double>(config.words[0]) * config.words[1];
  const double edge = config.words[0] + config.words[1];
  return 500 + std::ceil(tiles_of / 132) * static_cast<double>(gemm.sizes().k) *
                   std::max(area / 512, edge / 8);
}

inline DatasetHeader tile_header() {
  DatasetHeader header;
  header.problem_type = kGemmProblem;
  header.family = "tiles";
  header.config_schema = tile_schema();
  header.fingerprint = h200_fingerprint();
  return header;
}

inline void add(Dataset& dataset, const Problem& problem, const Config& config, double time_ns,
                Outcome outcome = Outcome::kOk) {
  Dataset::Row row;
  row.problem = dataset.intern_problem(problem);
  row.config = dataset.intern_config(config);
  row.context = static_cast<std::uint16_t>(dataset.intern_context({}));
  row.outcome = outcome;
  row.time_ns = static_cast<float>(time_ns);
  dataset.add_row(row);
}

// time(problem, config) for `count` random problems and all tiles.
template <class Time>
Dataset dataset_of(std::size_t count, std::uint64_t seed, const Time& time) {
  Rng rng(seed);
  Dataset dataset(tile_header());
  for (std::size_t i = 0; i < count; ++i) {
    const auto size = [&] { return 8 * std::llround(std::exp(1 + 5 * rng.uniform())); };
    const std::int64_t m = size();
    const std::int64_t n = size();
    const Problem problem = shape(m, n, 64 * rng.between(1, 64));
    for (const Config& config : tiles()) {
      add(dataset, problem, config, time(problem, config));
    }
  }
  return dataset;
}

inline TrainOptions quick_options() {
  TrainOptions options;
  options.gbdt.trees = 200;
  options.gbdt.leaves = 31;
  options.gbdt.learning_rate = 0.1;
  options.gbdt.early_stopping_rounds = 20;
  // OpenMP's threads wait by spinning: beside other tests they would wait for each other.
  options.gbdt.threads = 1;
  return options;
}

}  // namespace foretune
