#include "foretune/problem/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::int64_t kLargestSize = 0x7fffffff;
// The number of unusable draws in a row after which the limits count as impossible.
constexpr std::int64_t kPatience = 20000;

bool within(const Problem& problem, const ProblemLimits& limits) {
  if (!limits.max_flops && !limits.max_bytes) {
    return true;
  }
  const std::optional<ProblemWork> work = problem_work(problem);
  return !work || ((!limits.max_flops || work->flops <= *limits.max_flops) &&
                   (!limits.max_bytes || work->bytes <= *limits.max_bytes));
}

std::int64_t rounded(double size, std::int64_t multiple) {
  const auto unit = static_cast<double>(multiple);
  const double largest = static_cast<double>(kLargestSize - multiple + 1);
  return static_cast<std::int64_t>(std::clamp(std::round(size / unit) * unit, unit, largest));
}

// The values that an enumerated field may take.
struct Choice {
  std::size_t field = 0;
  std::vector<std::int64_t> values;
};

Result<Choice> choice_of(const ProblemSchema& schema, std::string_view name,
                         const std::vector<std::string>& labels) {
  const std::optional<std::size_t> field = schema.find(name);
  if (!field || schema.fields[*field].labels.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a ", schema.name, " problem has no field ",
                quoted(name, 40), " with labels");
  }
  Choice out{.field = *field, .values = {}};
  const std::span<const std::string_view> known = schema.fields[*field].labels;
  for (const std::string& label : labels) {
    const auto found = std::find(known.begin(), known.end(), label);
    if (found == known.end()) {
      return fail(ErrorCode::kInvalidArgument, quoted(label, 40), " is no ", name, " of a ",
                  schema.name, " problem (",
                  join(std::vector<std::string>(known.begin(), known.end()), ", "), ")");
    }
    out.values.push_back(found - known.begin());
  }
  if (out.values.empty()) {
    return fail(ErrorCode::kInvalidArgument, "sampling needs at least one ", name);
  }
  return out;
}

// Returns the choices in the order of the fields, which is that of the draws; a field that is not
// named has its default.
Result<std::vector<Choice>> choices_of(const ProblemSchema& schema,
                                       const ProblemSampling& sampling) {
  for (const auto& [name, labels] : sampling.labels) {
    FORETUNE_TRY(const Choice checked, choice_of(schema, name, labels));
    static_cast<void>(checked);
  }
  std::vector<Choice> out;
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    const ProblemField& field = schema.fields[i];
    if (field.labels.empty()) {
      continue;
    }
    const auto named = sampling.labels.find(field.name);
    // A field that was added later takes no draw of its own unless it is named: the same seed draws
    // the same problems as before.
    if (named == sampling.labels.end() && field.since > 1) {
      continue;
    }
    if (named == sampling.labels.end()) {
      out.push_back({.field = i, .values = {field.default_value.value_or(0)}});
    } else {
      FORETUNE_TRY(Choice choice, choice_of(schema, named->first, named->second));
      out.push_back(std::move(choice));
    }
  }
  return out;
}

Status check_drawn(const ProblemTypeInfo& type) {
  if (type.drawn_sizes.empty()) {
    return fail(ErrorCode::kUnsupported, "no sampler draws ", type.schema.name,
                " problems: name a shape set");
  }
  return {};
}

// Accepts a drawn or listed problem, or counts why not.
class Collector {
 public:
  explicit Collector(const ProblemSampling& sampling) : sampling_(sampling) {}

  // Returns true for a problem that was accepted.
  bool offer(const Problem& problem) {
    if (!within(problem, sampling_.limits)) {
      ++out.skipped_by_limit;
    } else if (sampling_.excluded_groups.contains(problem.group())) {
      ++out.skipped_by_group;
    } else if (!seen_.insert(problem).second) {
      ++out.skipped_as_repeat;
    } else {
      out.problems.push_back(problem);
      return true;
    }
    return false;
  }

  SampledProblems out;

 private:
  const ProblemSampling& sampling_;
  std::unordered_set<Problem> seen_;
};

// `draw_sizes(fields)` sets the drawn sizes.
template <class Draw>
Result<SampledProblems> sample(const ProblemTypeInfo& type, std::size_t count,
                               const ProblemSampling& sampling, Rng& rng, const Draw& draw_sizes) {
  FORETUNE_TRY(const std::vector<Choice> choices, choices_of(type.schema, sampling));
  Collector collector(sampling);
  std::int64_t misses = 0;
  while (collector.out.problems.size() < count) {
    Problem::Fields fields;
    for (const ProblemField& field : type.schema.fields) {
      fields.push_back(field.default_value.value_or(field.minimum));
    }
    const std::span<std::int64_t> values = fields.view();
    draw_sizes(values);
    for (const Choice& choice : choices) {
      values[choice.field] = choice.values[rng.below(choice.values.size())];
    }
    if (type.complete != nullptr) {
      type.complete(values, rng);
    }
    FORETUNE_TRY(const Problem problem, Problem::create(type.schema.type, std::move(fields)));
    if (collector.offer(problem)) {
      misses = 0;
    } else if (++misses >= kPatience) {
      return fail(ErrorCode::kInvalidArgument, "after ", collector.out.problems.size(), " of ",
                  count, " problems, ", kPatience,
                  " draws in a row were over the limits, excluded or repeats; widen the sizes or "
                  "the limits");
    }
  }
  return std::move(collector.out);
}

}  // namespace

Result<SampledProblems> sample_log_normal(const ProblemTypeInfo& type, std::size_t count,
                                          const LogNormalSizes& sizes,
                                          const ProblemSampling& sampling, Rng& rng) {
  FORETUNE_TRY_STATUS(check_drawn(type));
  for (const auto& [name, size] : sizes) {
    if (!std::isfinite(size.mean)) {
      return fail(ErrorCode::kInvalidArgument, "a log-normal mean is ", size.mean,
                  ", not a number");
    }
    if (!std::isfinite(size.deviation) || size.deviation < 0) {
      return fail(ErrorCode::kInvalidArgument, "a log-normal standard deviation is ",
                  size.deviation, "; it must be at least 0");
    }
    const std::optional<std::size_t> field = type.schema.find(name);
    if (!field || std::none_of(type.drawn_sizes.begin(), type.drawn_sizes.end(),
                               [&](const DrawnSize& drawn) { return drawn.field == *field; })) {
      return fail(ErrorCode::kInvalidArgument, "no sampler draws ", quoted(name, 40), " of a ",
                  type.schema.name, " problem");
    }
  }
  return sample(type, count, sampling, rng, [&](std::span<std::int64_t> out) {
    for (const DrawnSize& drawn : type.drawn_sizes) {
      const auto named = sizes.find(type.schema.fields[drawn.field].name);
      const LogNormalSize size =
          named == sizes.end() ? LogNormalSize{drawn.log_mean, drawn.log_deviation} : named->second;
      out[drawn.field] =
          rounded(std::exp(size.mean + size.deviation * rng.normal()), drawn.multiple);
      if (drawn.is_log_uniform) {
        out[drawn.field] = std::clamp(out[drawn.field], drawn.uniform_low, drawn.uniform_high);
      }
    }
  });
}

namespace {

// The sizes that may be drawn, as low, low + 1, ..., high of some unit.
struct SizeRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Returns the exponents of powers of two; without odd sizes, only of those that are multiples of 8.
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

// Draws every whole number with the share of the logarithms between its neighbours.
std::int64_t draw_log_uniform(const DrawnSize& drawn, Rng& rng) {
  const double low = std::log(static_cast<double>(drawn.uniform_low));
  const double high = std::log(static_cast<double>(drawn.uniform_high) + 1);
  const double size = std::floor(std::exp(low + (high - low) * rng.uniform()));
  return std::clamp(static_cast<std::int64_t>(size), drawn.uniform_low, drawn.uniform_high);
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

Result<SampledProblems> sample_uniform(const ProblemTypeInfo& type, std::size_t count,
                                       const UniformSizes& sizes, const ProblemSampling& sampling,
                                       Rng& rng) {
  FORETUNE_TRY_STATUS(check_drawn(type));
  FORETUNE_TRY_STATUS(check_uniform(sizes));
  return sample(type, count, sampling, rng, [&](std::span<std::int64_t> out) {
    std::optional<std::int64_t> side;
    for (const DrawnSize& drawn : type.drawn_sizes) {
      if (drawn.is_log_uniform) {
        out[drawn.field] = draw_log_uniform(drawn, rng);
        continue;
      }
      if (drawn.uniform_high > 0) {
        out[drawn.field] = rng.between(drawn.uniform_low, drawn.uniform_high);
        continue;
      }
      if (!side || sizes.rectangular) {
        side = draw_uniform_size(sizes, rng);
      }
      out[drawn.field] = *side;
    }
  });
}

Result<SampledProblems> sample_shape_set(const std::vector<Problem>& shapes, std::size_t count,
                                         const ProblemSampling& sampling, Rng& rng) {
  Collector collector(sampling);
  for (const Problem& shape : shapes) {
    bool is_chosen = true;
    for (const auto& [name, labels] : sampling.labels) {
      FORETUNE_TRY(const Choice choice, choice_of(shape.schema(), name, labels));
      is_chosen = is_chosen && std::find(choice.values.begin(), choice.values.end(),
                                         shape.field(choice.field)) != choice.values.end();
    }
    if (is_chosen) {
      collector.offer(shape);
    }
  }
  SampledProblems out = std::move(collector.out);
  if (count > 0 && count < out.problems.size()) {
    std::vector<std::size_t> order(out.problems.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
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

Result<Problem> with_label(const Problem& problem, std::string_view field, std::string_view label) {
  FORETUNE_TRY(const Choice choice, choice_of(problem.schema(), field, {std::string(label)}));
  Problem::Fields fields;
  for (const std::int64_t value : problem.fields()) {
    fields.push_back(value);
  }
  fields.view()[choice.field] = choice.values[0];
  return Problem::create(problem.type(), std::move(fields), problem.payload());
}

}  // namespace foretune
