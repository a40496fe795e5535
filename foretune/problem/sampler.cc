#include "foretune/problem/sampler.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

namespace foretune {
namespace {

constexpr std::int64_t kLargestSize = 0x7fffffff;
// Draws per wanted problem before the limits count as impossible.
constexpr std::int64_t kPatience = 2000;

bool within(const GemmProblem& gemm, const ProblemLimits& limits) {
  return (!limits.max_flops || gemm.flops() <= *limits.max_flops) &&
         (!limits.max_bytes || gemm.bytes() <= *limits.max_bytes);
}

std::int64_t rounded_to_eight(double size) {
  const double rounded = std::round(size / 8) * 8;
  return static_cast<std::int64_t>(std::clamp(rounded, 8.0, static_cast<double>(kLargestSize - 7)));
}

template <class T>
const T& pick(const std::vector<T>& values, Rng& rng) {
  return values[rng.below(values.size())];
}

// Everything but m, n and k, in a fixed order of draws.
void draw_kind(const GemmSampling& sampling, Rng& rng, GemmSizes& sizes) {
  sizes.operation = pick(sampling.operations, rng);
  sizes.dtype = pick(sampling.dtypes, rng);
  sizes.layout = pick(sampling.layouts, rng);
  const double batch = std::exp(std::log(2.0) + rng.uniform() * std::log(32.0));
  sizes.batch = sizes.operation == GemmOperation::kBmm
                    ? std::clamp<std::int64_t>(std::llround(batch), 2, 64)
                    : 1;
}

Status check_sampling(const GemmSampling& sampling) {
  if (sampling.operations.empty() || sampling.dtypes.empty() || sampling.layouts.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "sampling needs at least one operation, data type and layout");
  }
  return {};
}

template <class Draw>
Result<SampledProblems> sample(std::size_t count, const GemmSampling& sampling, Rng& rng,
                               const Draw& draw_sizes) {
  FORETUNE_TRY_STATUS(check_sampling(sampling));
  SampledProblems out;
  std::unordered_set<Problem> seen;
  std::int64_t misses = 0;
  while (out.problems.size() < count) {
    GemmSizes sizes;
    draw_sizes(sizes);
    draw_kind(sampling, rng, sizes);
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::create(sizes));
    const Problem problem = gemm.to_problem();
    if (!within(gemm, sampling.limits)) {
      ++out.skipped_by_limit;
    } else if (!seen.insert(problem).second) {
      ++out.skipped_as_repeat;
    } else {
      out.problems.push_back(problem);
      misses = 0;
      continue;
    }
    if (++misses >= kPatience) {
      return fail(ErrorCode::kInvalidArgument, "after ", out.problems.size(), " of ", count,
                  " problems, ", kPatience,
                  " draws in a row were over the limits or repeats; widen the sizes or the limits");
    }
  }
  return out;
}

}  // namespace

Result<SampledProblems> sample_log_normal(std::size_t count, const LogNormalSizes& sizes,
                                          const GemmSampling& sampling, Rng& rng) {
  for (const double deviation : {sizes.m_std, sizes.n_std, sizes.k_std}) {
    if (!(deviation >= 0)) {
      return fail(ErrorCode::kInvalidArgument, "a standard deviation is negative");
    }
  }
  return sample(count, sampling, rng, [&](GemmSizes& out) {
    out.m = rounded_to_eight(std::exp(sizes.m_mean + sizes.m_std * rng.normal()));
    out.n = rounded_to_eight(std::exp(sizes.n_mean + sizes.n_std * rng.normal()));
    out.k = rounded_to_eight(std::exp(sizes.k_mean + sizes.k_std * rng.normal()));
  });
}

namespace {

std::int64_t draw_uniform_size(const UniformSizes& sizes, Rng& rng) {
  if (sizes.power_of_two) {
    const auto low = static_cast<std::int64_t>(std::ceil(std::log2(sizes.min_size)));
    const auto high = static_cast<std::int64_t>(std::floor(std::log2(sizes.max_size)));
    return std::int64_t{1} << rng.between(low, high);
  }
  if (!sizes.odd_sizes) {
    return 8 * rng.between((sizes.min_size + 7) / 8, sizes.max_size / 8);
  }
  return rng.between(sizes.min_size, sizes.max_size);
}

Status check_uniform(const UniformSizes& sizes) {
  if (sizes.min_size < 1 || sizes.min_size > sizes.max_size || sizes.max_size > kLargestSize) {
    return fail(ErrorCode::kInvalidArgument, "sizes from ", sizes.min_size, " to ", sizes.max_size,
                " are not a range within 1 and ", kLargestSize);
  }
  const double low = std::ceil(std::log2(sizes.min_size));
  if (sizes.power_of_two && std::exp2(low) > static_cast<double>(sizes.max_size)) {
    return fail(ErrorCode::kInvalidArgument, "no power of two lies between ", sizes.min_size,
                " and ", sizes.max_size);
  }
  if (!sizes.power_of_two && !sizes.odd_sizes && (sizes.min_size + 7) / 8 > sizes.max_size / 8) {
    return fail(ErrorCode::kInvalidArgument, "no multiple of 8 lies between ", sizes.min_size,
                " and ", sizes.max_size);
  }
  return {};
}

}  // namespace

Result<SampledProblems> sample_uniform(std::size_t count, const UniformSizes& sizes,
                                       const GemmSampling& sampling, Rng& rng) {
  FORETUNE_TRY_STATUS(check_uniform(sizes));
  return sample(count, sampling, rng, [&](GemmSizes& out) {
    out.m = draw_uniform_size(sizes, rng);
    out.n = sizes.rectangular ? draw_uniform_size(sizes, rng) : out.m;
    out.k = sizes.rectangular ? draw_uniform_size(sizes, rng) : out.m;
  });
}

SampledProblems sample_shape_set(const std::vector<Problem>& shapes, std::size_t count,
                                 const GemmSampling& sampling, Rng& rng) {
  SampledProblems out;
  std::unordered_set<Problem> seen;
  for (const Problem& shape : shapes) {
    const Result<GemmProblem> gemm = GemmProblem::from(shape);
    if (!gemm || std::find(sampling.operations.begin(), sampling.operations.end(),
                           gemm->operation()) == sampling.operations.end()) {
      continue;
    }
    if (!within(*gemm, sampling.limits)) {
      ++out.skipped_by_limit;
    } else if (!seen.insert(shape).second) {
      ++out.skipped_as_repeat;
    } else {
      out.problems.push_back(shape);
    }
  }
  if (count > 0 && count < out.problems.size()) {
    std::vector<std::size_t> order(out.problems.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    rng.shuffle(std::span(order));
    order.resize(count);
    std::sort(order.begin(), order.end());
    std::vector<Problem> kept;
    kept.reserve(count);
    for (const std::size_t index : order) {
      kept.push_back(out.problems[index]);
    }
    out.problems = std::move(kept);
  }
  return out;
}

}  // namespace foretune
