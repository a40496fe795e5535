// Converts the values of a metric to z, the number that a model learns, and a predicted z back to a
// value. Smaller z is better, whatever the metric's direction:
//
//   logarithm     z = ln v             positive everywhere, to be minimised: differences are ratios
//   offset        z = ln(v + offset)   the same with zeros (no packing, no workspace)
//   linear        z = (v - reference) / step      anything else; step < 0 where larger is better
//
//   FORETUNE_TRY(const ValueScale scale, ValueScale::fit(info, values));
//   const double z = scale.to_z(41.5);
//   const double again = scale.to_value(z);
//
// Thread safety: a plain value. Cost: a logarithm or an exponential; fit() sorts the values.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "foretune/base/result.h"
#include "foretune/metrics/metric.h"

namespace foretune {

struct ValueScale {
  // Stored in files: never renumber.
  enum class Kind : std::uint8_t { kLog = 0, kOffsetLog = 1, kLinear = 2 };
  Kind kind = Kind::kLog;
  double offset = 0;     // of kOffsetLog, in the metric's unit: above 0
  double reference = 0;  // of kLinear: the value whose z is 0
  double step = 1;       // of kLinear: the value of one z, negative where larger is better

  // Returns the scale that fits these values; skips those that are not finite. The offset is a
  // hundredth of the median of the positive values, the reference the median, and the step half of
  // the distance between the tenth and the ninetieth percentile. Errors: kInvalidArgument when no
  // value is finite.
  static Result<ValueScale> fit(const MetricInfo& info, std::span<const double> values);

  // Returns a NaN for a NaN, and for a value without a logarithm.
  [[nodiscard]] double to_z(double value) const;
  // Returns at least 0 when the kind is kOffsetLog.
  [[nodiscard]] double to_value(double z) const;
  // Returns the size of a small error of z in the metric's unit, at this z: the magnitude of the
  // derivative.
  [[nodiscard]] double value_per_z(double z) const;
  // Returns "ln(v + 20)".
  [[nodiscard]] std::string text() const;
  // Errors: kCorrupt for numbers that are not a scale.
  [[nodiscard]] Status validate() const;
  bool operator==(const ValueScale&) const = default;
};

}  // namespace foretune
