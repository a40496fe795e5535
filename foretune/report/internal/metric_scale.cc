#include "foretune/report/internal/metric_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "foretune/base/quantities.h"
#include "foretune/base/significant.h"
#include "foretune/base/text.h"

namespace foretune::report_internal {
namespace {

using formats::Range;
using formats::Tick;

constexpr double kLogSpan = 10;
constexpr int kTicks = 6;

struct StepUnit {
  std::string_view name;
  double size;
};
using StepUnits = std::array<StepUnit, 4>;
constexpr StepUnits kTimeUnits{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr StepUnits kByteUnits{{{"B", 1}, {"KiB", 1024}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}};

// The position of a unit; the number of units where it is none of them.
std::size_t position_of(const StepUnits& units, std::string_view unit) {
  return static_cast<std::size_t>(
      std::find_if(units.begin(), units.end(),
                   [&](const StepUnit& each) { return each.name == unit; }) -
      units.begin());
}

bool is_time(std::string_view unit) { return position_of(kTimeUnits, unit) < kTimeUnits.size(); }

// The largest unit of which a value has at least one.
const StepUnit& unit_for(const StepUnits& units, double value) {
  std::size_t chosen = 0;
  // Rounded, a value may lie a little below.
  while (chosen + 1 < units.size() && std::fabs(value) >= 0.999 * units[chosen + 1].size) {
    ++chosen;
  }
  return units[chosen];
}

// At least a hundredth of the values wide: less is noise.
Range with_margins(double low, double high) {
  constexpr double kMinWidth = 0.01;
  const double size = std::max(std::fabs(low), std::fabs(high));
  const double width = high - low;
  const double least = size > 0 ? kMinWidth * size : 1;
  const double margin = 0.05 * width + std::max(0.0, least - width) / 2;
  return {low - margin, high + margin};
}

}  // namespace

MetricScale::MetricScale(std::span<const double> values, std::span<const double> limits,
                         std::string_view unit)
    : unit_(unit) {
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  double positive = HUGE_VAL;
  for (const double value : values) {
    if (std::isfinite(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
      positive = value > 0 ? std::min(positive, value) : positive;
    }
  }
  if (low > high) {
    low = 0;
    high = 1;
  }
  if (low >= 0 && high > kLogSpan * positive) {
    kind_ = low > 0 ? Kind::kLog : Kind::kLogWithZero;
    Range wide{positive, high};
    for (const double limit : limits) {
      if (limit >= positive / kLogSpan && limit <= high * kLogSpan) {
        wide = {std::min(wide.low, limit), std::max(wide.high, limit)};
      }
    }
    range_ = formats::log_range(wide.low, wide.high);
    return;
  }
  // Near equal values is a tenth of them.
  const double span = high > low ? high - low : 0.1 * std::fabs(high);
  Range wide{low, high};
  for (const double limit : limits) {
    if (limit >= low - span && limit <= high + span) {
      wide = {std::min(wide.low, limit), std::max(wide.high, limit)};
    }
  }
  range_ = with_margins(wide.low, wide.high);
}

bool MetricScale::shows(double value) const {
  return (value >= range_.low && value <= range_.high) ||
         (kind_ == Kind::kLogWithZero && value == 0);
}

formats::Axis MetricScale::axis(double from, double to) const {
  return kind_ == Kind::kLogWithZero ? formats::Axis::log_with_zero(range_, from, to)
                                     : formats::Axis(range_, kind_ == Kind::kLog, from, to);
}

std::string MetricScale::tick_text(double value) const {
  if (is_time(unit_) && value >= 0) {
    const double nanoseconds = value * kTimeUnits[position_of(kTimeUnits, unit_)].size;
    const StepUnit& unit = unit_for(kTimeUnits, nanoseconds);
    return concat(significant(nanoseconds / unit.size, 4), " ", unit.name);
  }
  if (unit_ == "B") {
    return bytes_text(value);
  }
  return concat(significant(value, 6), unit_.empty() ? "" : " ", unit_);
}

// Powers of two.
std::vector<Tick> MetricScale::byte_ticks() const {
  const double octaves = std::log2(range_.high / range_.low);
  const int every = std::max(1, static_cast<int>(std::ceil(octaves / kTicks)));
  std::vector<Tick> out;
  for (int power = static_cast<int>(std::ceil(std::log2(range_.low)));
       std::exp2(power) <= range_.high; ++power) {
    if (power % every == 0) {
      out.push_back({std::exp2(power), tick_text(std::exp2(power))});
    }
  }
  return out;
}

// All of them in one unit.
std::vector<Tick> MetricScale::even_ticks() const {
  if (!is_time(unit_) && unit_ != "B") {
    std::vector<Tick> out = formats::linear_ticks(range_, kTicks);
    for (Tick& tick : out) {
      const double size = std::max(std::fabs(range_.low), std::fabs(range_.high));
      // Fixed digits of very large and very small numbers have no room.
      tick.text = concat(size >= 1e6 || size < 1e-2 ? significant(tick.value, 4) : tick.text,
                         unit_.empty() ? "" : " ", unit_);
    }
    return out;
  }
  const StepUnits& units = is_time(unit_) ? kTimeUnits : kByteUnits;
  const double own = units[position_of(units, unit_)].size;
  const StepUnit& unit = unit_for(units, own * range_.high);
  const double scale = unit.size / own;
  std::vector<Tick> out = formats::linear_ticks({range_.low / scale, range_.high / scale}, kTicks,
                                                concat(" ", unit.name));
  for (Tick& tick : out) {
    tick.value *= scale;
  }
  return out;
}

std::vector<Tick> MetricScale::ticks() const {
  if (kind_ == Kind::kLinear) {
    return even_ticks();
  }
  std::vector<Tick> out =
      unit_ == "B" ? byte_ticks()
                   : formats::log_ticks(range_, [this](double value) { return tick_text(value); });
  if (kind_ == Kind::kLogWithZero) {
    out.insert(out.begin(), {0, "0"});
  }
  return out;
}

}  // namespace foretune::report_internal
