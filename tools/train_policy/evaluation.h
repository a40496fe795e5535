// Evaluates a policy: schedules of computations chosen without measuring and with a few
// measurements, beside the start and the textbook's first schedule, all measured in this run.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/gym/benchmarks.h"
#include "foretune/loop/policy_observation.h"
#include "foretune/model/model_file.h"

namespace foretune::policy_training {

struct EvaluatedBenchmark {
  std::string name;
  // Shares of the peak.
  double start = 0;
  double unmeasured = 0;
  double best = 0;  // of the measured ones
  double textbook = 0;
  double choose_us = 0;  // to choose the unmeasured schedule
};

struct EvaluationSettings {
  CpuIsa isa = CpuIsa::kAvx2;
  double peak_gflops = 0;
  loop::PolicyMachine machine;
  std::size_t measurements = 10;
  std::uint64_t seed = 1;
};

// Errors: those of NestTask::measured() and make_policy_proposer().
Result<std::vector<EvaluatedBenchmark>> evaluate_policy(
    const Model& model, const std::vector<loop::gym::Benchmark>& benchmarks,
    const EvaluationSettings& settings);
// The columns by name; geometric means of shares at the end.
Status write_evaluation(const std::filesystem::path& path,
                        const std::vector<EvaluatedBenchmark>& rows);
// Geometric mean of a column; 0 without rows.
double geometric_mean(const std::vector<EvaluatedBenchmark>& rows,
                      double EvaluatedBenchmark::* column);

}  // namespace foretune::policy_training
