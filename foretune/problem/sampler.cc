#include "foretune/problem/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>
#include <utility>

namespace foretune {
namespace {

constexpr std::int64_t kLargestSize = 0x7fffffff;
// Unusable draws in a row before the limits count as impossible.
constexpr std::int64_t kPatience = 20000;

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
    } else if (sampling.excluded_groups.contains(problem.group())) {
      ++out.skipped_by_group;
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
                  " draws in a row were over the limits, excluded or repeats; widen the sizes or "
                  "the limits");
    }
  }
  return out;
}

}  // namespace

Result<SampledProblems> sample_log_normal(std::size_t count, const LogNormalSizes& sizes,
                                          const GemmSampling& sampling, Rng& rng) {
  for (const double mean : {sizes.m_mean, sizes.n_mean, sizes.k_mean}) {
    if (!std::isfinite(mean)) {
      return fail(ErrorCode::kInvalidArgument, "a log-normal mean is ", mean, ", not a number");
    }
  }
  for (const double deviation : {sizes.m_std, sizes.n_std, sizes.k_std}) {
    if (!std::isfinite(deviation) || deviation < 0) {
      return fail(ErrorCode::kInvalidArgument, "a log-normal standard deviation is ", deviation,
                  "; it must be at least 0");
    }
  }
  return sample(count, sampling, rng, [&](GemmSizes& out) {
    out.m = rounded_to_eight(std::exp(sizes.m_mean + sizes.m_std * rng.normal()));
    out.n = rounded_to_eight(std::exp(sizes.n_mean + sizes.n_std * rng.normal()));
    out.k = rounded_to_eight(std::exp(sizes.k_mean + sizes.k_std * rng.normal()));
  });
}

namespace {

// The sizes that may be drawn, as low, low + 1, ..., high of some unit.
struct SizeRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Exponents of powers of two; without odd sizes, only those that are multiples of 8.
SizeRange power_range(const UniformSizes& sizes) {
  const auto low = static_cast<std::uint64_t>(std::max<std::int64_t>(sizes.min_size, 1));
  const auto high = static_cast<std::uint64_t>(sizes.max_size);
  const std::int64_t lowest = sizes.odd_sizes ? 0 : 3;
  return {.low = std::max(static_cast<std::int64_t>(std::bit_width(low - 1)), lowest),
          .high = static_cast<std::int64_t>(std::bit_width(high)) - 1};
}

SizeRange eights_range(const UniformSizes& sizes) {
  return {.low = (sizes.min_size + 7) / 8, .high = sizes.max_size / 8};
}

std::int64_t draw_uniform_size(const UniformSizes& sizes, Rng& rng) {
  if (sizes.power_of_two) {
    const SizeRange powers = power_range(sizes);
    return std::int64_t{1} << rng.between(powers.low, powers.high);
  }
  if (!sizes.odd_sizes) {
    const SizeRange eights = eights_range(sizes);
    return 8 * rng.between(eights.low, eights.high);
  }
  return rng.between(sizes.min_size, sizes.max_size);
}

Status check_uniform(const UniformSizes& sizes) {
  if (sizes.min_size < 1 || sizes.min_size > sizes.max_size || sizes.max_size > kLargestSize) {
    return fail(ErrorCode::kInvalidArgument, "sizes from ", sizes.min_size, " to ", sizes.max_size,
                " are not a range within 1 and ", kLargestSize);
  }
  const SizeRange range = sizes.power_of_two ? power_range(sizes) : eights_range(sizes);
  if ((sizes.power_of_two || !sizes.odd_sizes) && range.low > range.high) {
    return fail(ErrorCode::kInvalidArgument, "no ", sizes.power_of_two ? "power of two" : "size",
                sizes.odd_sizes ? "" : " that is a multiple of 8", " lies between ", sizes.min_size,
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
    } else if (sampling.excluded_groups.contains(shape.group())) {
      ++out.skipped_by_group;
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
