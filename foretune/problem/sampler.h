// Where the problems of a data set come from: drawn log-normally (sizes as real workloads have
// them), drawn uniformly, or read from a shape set. Every draw takes an Rng: same seed, same list.
//
//   Rng rng(42);
//   FORETUNE_TRY(const SampledProblems drawn, sample_log_normal(100, {}, {}, rng));
//
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/problem/gemm.h"
#include "foretune/problem/problem.h"

namespace foretune {

// Natural-log mean and standard deviation per dimension. The defaults are the pooled moments of
// the 1,577 operation shapes that torch-diode ships (Apache-2.0).
struct LogNormalSizes {
  double m_mean = 6.5725472164323095;
  double m_std = 2.556199441605505;
  double n_mean = 5.913930073563466;
  double n_std = 1.66968141897024;
  double k_mean = 6.204916071423808;
  double k_std = 2.1646646856090177;
};

struct UniformSizes {
  std::int64_t min_size = 32;
  std::int64_t max_size = 4096;
  bool power_of_two = false;
  bool rectangular = true;  // false: m = n = k
  bool odd_sizes = true;    // false: multiples of 8 only
};

struct ProblemLimits {
  std::optional<double> max_flops;
  std::optional<double> max_bytes;
};

// What every draw has in common; one operation and one data type are drawn per problem.
struct GemmSampling {
  std::vector<GemmOperation> operations{GemmOperation::kMm};
  std::vector<DataType> dtypes{DataType::kF32};
  std::vector<GemmLayout> layouts{GemmLayout::kRrr};
  ProblemLimits limits;
  std::unordered_set<std::uint64_t> excluded_groups;  // Problem::group(): those of another data set
};

struct SampledProblems {
  std::vector<Problem> problems;       // distinct, in draw order
  std::int64_t skipped_by_limit = 0;   // draws that were over max_flops or max_bytes
  std::int64_t skipped_as_repeat = 0;  // draws that were already in the list
  std::int64_t skipped_by_group = 0;   // draws of an excluded group
};

// Draws until `count` problems lie within the limits. Sizes are rounded to a multiple of 8 (at
// least 8); the batch of a bmm is drawn log-uniformly from 2 to 64.
// Errors: kInvalidArgument for parameters without sense, and when many draws in a row were over the
// limits or in the list already.
Result<SampledProblems> sample_log_normal(std::size_t count, const LogNormalSizes& sizes,
                                          const GemmSampling& sampling, Rng& rng);
Result<SampledProblems> sample_uniform(std::size_t count, const UniformSizes& sizes,
                                       const GemmSampling& sampling, Rng& rng);
// Keeps the given problems that use one of the operations, lie within the limits and are of no
// excluded group; at most
// `count` of them, chosen at random but kept in order (0 keeps all).
SampledProblems sample_shape_set(const std::vector<Problem>& shapes, std::size_t count,
                                 const GemmSampling& sampling, Rng& rng);

}  // namespace foretune
