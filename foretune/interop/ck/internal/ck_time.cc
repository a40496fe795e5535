#include "foretune/interop/ck/internal/ck_time.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

namespace foretune::dataset_internal {
namespace {

constexpr double kNsPerMs = 1e6;
constexpr std::ptrdiff_t kPrintedDecimals = 2;
// Rates are computed from the unrounded time, so they agree with it except in the last bits.
constexpr double kSlack = 1e-3;

struct Interval {
  double low = 0;
  double value = 0;
  double high = 0;

  [[nodiscard]] double relative_error() const { return (high - low) / 2 / value; }
  [[nodiscard]] bool meets(const Interval& other) const {
    return low <= other.high * (1 + kSlack) && other.low <= high * (1 + kSlack);
  }
};

Interval of_latency(double latency_ms) {
  const double half = rounding_half_width(latency_ms);
  return {std::max(0.0, latency_ms - half) * kNsPerMs, latency_ms * kNsPerMs,
          (latency_ms + half) * kNsPerMs};
}

// Returns the interval of times in which `work` is done at the printed rate; nothing when the rate
// is missing, or was rounded to 0 or may have been.
std::optional<Interval> of_rate(const std::optional<double>& rate, double factor, double work) {
  if (!rate || !(work > 0)) {
    return std::nullopt;
  }
  const double half = rounding_half_width(*rate);
  if (!(*rate - half > 0)) {
    return std::nullopt;
  }
  return Interval{work / ((*rate + half) * factor), work / (*rate * factor),
                  work / ((*rate - half) * factor)};
}

bool makes_sense(const std::optional<double>& figure) {
  return !figure || (std::isfinite(*figure) && *figure >= 0);
}

}  // namespace

double rounding_half_width(double printed) {
  // The longest double takes 309 digits before the point, the smallest 1,074 after it.
  std::array<char, 1500> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), printed,
                                 std::chars_format::fixed);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t point = text.find('.');
  const std::ptrdiff_t decimals =
      point == std::string_view::npos ? 0 : static_cast<std::ptrdiff_t>(text.size() - point - 1);
  return 0.5 * std::pow(10.0, -static_cast<double>(std::max(decimals, kPrintedDecimals)));
}

Result<RestoredTime> restore_time(const CkFigures& figures) {
  if (!makes_sense(figures.latency_ms) || !makes_sense(figures.tflops) ||
      !makes_sense(figures.gb_s)) {
    return fail(ErrorCode::kCorrupt, "a time or a rate that makes no sense");
  }
  std::optional<Interval> best = of_rate(figures.tflops, 1e3, figures.flops);
  // A program's count of moved bytes is less certain than its count of operations.
  const std::optional<Interval> moved = of_rate(figures.gb_s, 1, figures.bytes);
  if (moved &&
      (!best || (moved->meets(*best) && moved->relative_error() < best->relative_error()))) {
    best = moved;
  }
  if (!figures.latency_ms) {
    if (!best) {
      return fail(ErrorCode::kCorrupt, "a run without a time");
    }
    return RestoredTime{best->value, best->relative_error(), true, false};
  }
  const Interval latency = of_latency(*figures.latency_ms);
  const bool disagree = best && !best->meets(latency);
  if (latency.value > 0) {
    if (!best || disagree || latency.relative_error() <= best->relative_error()) {
      return RestoredTime{latency.value, latency.relative_error(), false, disagree};
    }
    return RestoredTime{best->value, best->relative_error(), true, false};
  }
  if (!best) {
    return fail(ErrorCode::kCorrupt,
                "its latency and its rates are rounded to 0: how long it took is lost");
  }
  if (disagree) {
    return fail(ErrorCode::kCorrupt, "its rates contradict its latency of 0.00");
  }
  return RestoredTime{best->value, best->relative_error(), true, false};
}

}  // namespace foretune::dataset_internal
