// Small data sets for the tests of this module.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/dataset/dataset.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {

inline ConfigSchema sample_schema() {
  return {.name = "sample",
          .version = 1,
          .kind = SchemaKind::kParametric,
          .parameters = {{.name = "c", .labels = {}}, {.name = "d", .labels = {}}}};
}

inline Config sample_config(std::int32_t c, std::int32_t d = 0) {
  Config config;
  config.schema = sample_schema().id();
  config.words.push_back(c);
  config.words.push_back(d);
  return config;
}

inline Problem sample_problem(std::int64_t m, std::int64_t n = 64, std::int64_t k = 64) {
  return GemmProblem::create({.m = m, .n = n, .k = k})->to_problem();
}

inline DatasetHeader sample_header() {
  DatasetHeader header;
  header.problem_type = kGemmProblem;
  header.family = "sample";
  header.config_schema = sample_schema();
  header.role = DatasetRole::kValidation;
  header.fingerprint.device = "sample device";
  return header;
}

struct SampleRow {
  Outcome outcome = Outcome::kOk;
  double spread = 0;
  std::uint8_t flags = 0;
  std::int32_t threads = 1;
};

inline void add_sample(Dataset& dataset, const Problem& problem, const Config& config,
                       double time_ns, const SampleRow& row = {}) {
  Measurement measurement{.problem = problem,
                          .config = config,
                          .context = {},
                          .outcome = row.outcome,
                          .stage = Stage::kNone,
                          .flags = row.flags,
                          .reason = {},
                          .metrics = {},
                          .samples_ns = {}};
  measurement.context.threads = row.threads;
  measurement.context.fidelity = (row.flags & kFlagReference) != 0 ? -1 : 0;
  if (row.outcome == Outcome::kOk || row.outcome == Outcome::kCensored) {
    measurement.metrics.push_back({kTimeNs, time_ns, row.spread, 3});
  }
  dataset.add(measurement);
}

// Problems of different sizes, each with `configs` measured configs of random times; some censored,
// failed, refused or re-measured when `all_kinds`.
inline Dataset random_dataset(std::size_t problems, std::size_t configs, bool all_kinds, Rng& rng) {
  Dataset dataset(sample_header());
  for (std::size_t p = 0; p < problems; ++p) {
    const Problem problem = sample_problem(rng.between(1, 4096), rng.between(1, 4096),
                                           static_cast<std::int64_t>(p) + 1);
    const double base_ns = std::exp(3 * rng.normal() + 9);
    for (std::size_t c = 0; c < configs; ++c) {
      const Config config = sample_config(static_cast<std::int32_t>(c));
      const double time_ns = base_ns * std::exp(std::fabs(rng.normal()));
      SampleRow row;
      const std::uint64_t kind = all_kinds && c > 0 ? rng.below(12) : 11;
      row.outcome = kind == 0   ? Outcome::kCensored
                    : kind == 1 ? Outcome::kCrashed
                    : kind == 2 ? Outcome::kUnsupported
                    : kind == 3 ? Outcome::kWrongResult
                                : Outcome::kOk;
      row.spread = rng.below(3) == 0 ? 0.05 * rng.uniform() : 0;
      add_sample(dataset, problem, config, time_ns, row);
      if (all_kinds && row.outcome == Outcome::kOk && rng.below(3) == 0) {
        row.flags = kFlagReference;
        add_sample(dataset, problem, config, time_ns * std::exp(0.05 * rng.normal()), row);
      }
    }
  }
  return dataset;
}

// Scores per row: the log of the time with noise, so that the order is good but not perfect.
inline std::vector<double> noisy_scores(const Dataset& dataset, double noise, Rng& rng) {
  std::vector<double> scores;
  for (const Dataset::Row& row : dataset.rows()) {
    const double time_ns = row.time_ns > 0 ? static_cast<double>(row.time_ns) : 1e6;
    scores.push_back(std::log(time_ns) + noise * rng.normal());
  }
  return scores;
}

// "training.curves" of a network's card: one without the second fold, one of all data.
inline std::string sample_curves_json() {
  return R"([
    {"fold": 2, "network": 1, "epochs": 9, "best_epoch": 4, "epoch": [1, 4, 9],
     "train_loss": [1.5, 0.02, 0.01], "stop_loss": [1.25, 0.03, 0.05]},
    {"network": 1, "epochs": 2, "best_epoch": 2, "epoch": [1, 2],
     "train_loss": [1.0, 0.5], "stop_loss": [1.2, 0.7]}])";
}

}  // namespace foretune
