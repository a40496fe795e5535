#include "foretune/metrics/value_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "foretune/base/significant.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr double kOffsetShare = 0.01;

ValueScale linear_scale(const MetricInfo& info, std::span<const double> values) {
  constexpr double kLow = 0.1;
  constexpr double kHigh = 0.9;
  ValueScale out{.kind = ValueScale::Kind::kLinear, .reference = median(values)};
  double step = 0.5 * (quantile(values, kHigh) - quantile(values, kLow));
  if (!(step > 0)) {
    // Nearly all values are equal; the few others say how far values lie apart.
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    step = 0.5 * *high - 0.5 * *low;
  }
  // A step smaller than a double resolves at this size would make z overflow.
  const double least = std::max(std::fabs(out.reference) * std::numeric_limits<double>::epsilon(),
                                std::numeric_limits<double>::min());
  step = step > least ? step : 1;
  out.step = info.direction == Direction::kMaximise ? -step : step;
  return out;
}

}  // namespace

Result<ValueScale> ValueScale::fit(const MetricInfo& info, std::span<const double> values) {
  std::vector<double> finite;
  std::vector<double> positive;
  for (const double value : values) {
    if (std::isfinite(value)) {
      finite.push_back(value);
      if (value > 0) {
        positive.push_back(value);
      }
    }
  }
  if (finite.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no value of ", info.name, " was measured");
  }
  const bool has_negative = *std::min_element(finite.begin(), finite.end()) < 0;
  if (info.direction == Direction::kMaximise || has_negative) {
    return linear_scale(info, finite);
  }
  if (positive.size() == finite.size()) {
    return ValueScale{};
  }
  const double offset = positive.empty() ? 1 : kOffsetShare * median(positive);
  return ValueScale{.kind = Kind::kOffsetLog, .offset = offset > 0 ? offset : 1};
}

double ValueScale::to_z(double value) const {
  switch (kind) {
    case Kind::kLog:
      return value > 0 ? std::log(value) : kNotANumber;
    case Kind::kOffsetLog:
      return value >= 0 ? std::log(value + offset) : kNotANumber;
    case Kind::kLinear:
      break;
  }
  return (value - reference) / step;
}

double ValueScale::to_value(double z) const {
  switch (kind) {
    case Kind::kLog:
      return std::exp(z);
    case Kind::kOffsetLog: {
      const double value = std::exp(z) - offset;
      return value < 0 ? 0 : value;
    }
    case Kind::kLinear:
      break;
  }
  return reference + step * z;
}

double ValueScale::value_per_z(double z) const {
  return kind == Kind::kLinear ? std::fabs(step) : std::exp(z);
}

std::string ValueScale::text() const {
  switch (kind) {
    case Kind::kLog:
      return "ln v";
    case Kind::kOffsetLog:
      return concat("ln(v + ", significant(offset, 4), ")");
    case Kind::kLinear:
      break;
  }
  const std::string zero = significant(reference, 4);
  const std::string unit = significant(std::fabs(step), 4);
  return step < 0 ? concat("(", zero, " - v) / ", unit) : concat("(v - ", zero, ") / ", unit);
}

Status ValueScale::validate() const {
  const bool is_known = kind == Kind::kLog || kind == Kind::kOffsetLog || kind == Kind::kLinear;
  if (!is_known) {
    return fail(ErrorCode::kUnsupported, "scales of kind ", static_cast<unsigned>(kind),
                " are not known to this version");
  }
  const bool is_right = std::isfinite(offset) && std::isfinite(reference) && std::isfinite(step) &&
                        step != 0 && (kind == Kind::kOffsetLog ? offset > 0 : offset == 0);
  return is_right ? Status() : fail(ErrorCode::kCorrupt, "the scale of a metric has no meaning");
}

}  // namespace foretune
