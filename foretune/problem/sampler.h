// Draws the problems of a data set: log-normally (sizes as real workloads have them), uniformly, or
// from a list of shapes. Every draw takes an Rng: same seed, same list.
//
//   Rng rng(42);
//   FORETUNE_TRY(const SampledProblems drawn,
//                sample_log_normal(*find_problem_type("gemm"), 100, {}, {}, rng));
//
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/problem/problem.h"
#include "foretune/problem/problem_type.h"

namespace foretune {

// Mean and standard deviation of ln(size).
struct LogNormalSize {
  double mean = 0;
  double deviation = 0;
};
// Keyed by the name of the field; a drawn size that is missing has the type's own distribution.
using LogNormalSizes = std::map<std::string, LogNormalSize, std::less<>>;

struct UniformSizes {
  std::int64_t min_size = 32;
  std::int64_t max_size = 4096;
  bool power_of_two = false;
  bool rectangular = true;  // false: all sizes within these bounds are equal
  bool odd_sizes = true;    // false: multiples of 8 only
};

struct ProblemLimits {
  std::optional<double> max_flops;
  std::optional<double> max_bytes;
};

// Rules that apply to all draws.
struct ProblemSampling {
  // Labels to draw from, each equally often, keyed by the name of the field ("dtype" -> f32, bf16).
  // A field that is missing has its default.
  std::map<std::string, std::vector<std::string>, std::less<>> labels;
  ProblemLimits limits;
  std::unordered_set<std::uint64_t> excluded_groups;  // Problem::group() of another data set
};

struct SampledProblems {
  std::vector<Problem> problems;       // distinct, in draw order
  std::int64_t skipped_by_limit = 0;   // draws that were over max_flops or max_bytes
  std::int64_t skipped_as_repeat = 0;  // draws that were already in the list
  std::int64_t skipped_by_group = 0;   // draws of an excluded group
};

// Draws until `count` problems lie within the limits. Errors: kUnsupported for a type without drawn
// sizes; kInvalidArgument for parameters that make no sense, for an unknown field or label, and
// when many draws in a row were over the limits or in the list already.
Result<SampledProblems> sample_log_normal(const ProblemTypeInfo& type, std::size_t count,
                                          const LogNormalSizes& sizes,
                                          const ProblemSampling& sampling, Rng& rng);
Result<SampledProblems> sample_uniform(const ProblemTypeInfo& type, std::size_t count,
                                       const UniformSizes& sizes, const ProblemSampling& sampling,
                                       Rng& rng);
// Keeps the given problems that have one of the labels of each field in `sampling`, lie within the
// limits and belong to no excluded group; at most `count` of them, chosen at random but kept in
// order (0 keeps all). Errors: kInvalidArgument for a field or label that the type of a shape does
// not have.
Result<SampledProblems> sample_shape_set(const std::vector<Problem>& shapes, std::size_t count,
                                         const ProblemSampling& sampling, Rng& rng);

// Returns the problem with another label in one field. Errors: as Problem::parse.
Result<Problem> with_label(const Problem& problem, std::string_view field, std::string_view label);

}  // namespace foretune
