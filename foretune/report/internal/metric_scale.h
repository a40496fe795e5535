// Axes of plots for the values of a metric: linear, logarithmic, or logarithmic with a place for
// zeros, with ticks in the metric's unit. Internal to the module.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/formats/svg.h"

namespace foretune::report_internal {

class MetricScale {
 public:
  enum class Kind : std::uint8_t { kLinear, kLog, kLogWithZero };

  // Logarithmic where the positive values span more than a factor of ten and none is negative.
  // Room is made for those `limits` that lie within one more span of the values (a factor of ten
  // where it is logarithmic). Values that are not finite are ignored.
  MetricScale(std::span<const double> values, std::span<const double> limits,
              std::string_view unit);

  [[nodiscard]] Kind kind() const { return kind_; }
  // The zero of kLogWithZero lies outside of it.
  [[nodiscard]] const formats::Range& range() const { return range_; }
  [[nodiscard]] bool shows(double value) const;
  [[nodiscard]] formats::Axis axis(double from, double to) const;
  [[nodiscard]] std::vector<formats::Tick> ticks() const;

 private:
  [[nodiscard]] std::string tick_text(double value) const;
  [[nodiscard]] std::vector<formats::Tick> byte_ticks() const;
  [[nodiscard]] std::vector<formats::Tick> even_ticks() const;

  std::string unit_;
  Kind kind_ = Kind::kLinear;
  formats::Range range_;
};

}  // namespace foretune::report_internal
