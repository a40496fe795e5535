#include "foretune/graph/run/latency_controller.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace foretune::graph {

namespace {

// Shares of the window. A step of the machine's speed shows in a mean for as long as the memory of
// the speed lasts: with twice the time per call, 30 ms of memory cost some 2 % of a window of 1 s.
constexpr double kSpeedMemory = 0.03;
// The debt is paid back within this time.
constexpr double kPayback = 0.1;
// Windows may begin and end with any debt, so that twice this limit shows in a mean.
constexpr double kMostDebt = 0.05;
// A scheduler lets other processes run for several milliseconds at once; a call that waits for them
// must count, or the speed would be that of the calls between.
constexpr double kLeastBurst = 0.008;
constexpr double kBurstsRemembered = 3;
// Single calls vary by so much without being bursts.
constexpr double kUsual = 3;

[[nodiscard]] bool is_time(double ns) { return std::isfinite(ns) && ns > 0; }

}  // namespace

Result<LatencyController> LatencyController::create(std::span<const TimedAlternative> alternatives,
                                                    const LatencyOptions& options) {
  if (alternatives.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a controller needs an alternative");
  }
  if (!is_time(options.window_ns)) {
    return fail(ErrorCode::kInvalidArgument, "a controller's window cannot be ", options.window_ns,
                " ns");
  }
  LatencyController controller;
  std::vector<Point> points;
  for (const TimedAlternative& each : alternatives) {
    if (!is_time(each.expected_ns) || !std::isfinite(each.quality)) {
      return fail(ErrorCode::kInvalidArgument, "an alternative cannot take ", each.expected_ns,
                  " ns with a quality of ", each.quality);
    }
    points.push_back({each.expected_ns, each.quality, points.size()});
  }
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.expected_ns != b.expected_ns ? a.expected_ns < b.expected_ns : a.quality > b.quality;
  });
  std::vector<Point>& front = controller.front_;
  for (const Point& point : points) {
    if (!front.empty() && point.quality <= front.back().quality) {
      continue;
    }
    // Turns of the neighbours reach every point of the line between them.
    const auto is_below_line = [&] {
      const Point& a = front[front.size() - 2];
      const Point& b = front.back();
      return (b.quality - a.quality) * (point.expected_ns - a.expected_ns) <=
             (point.quality - a.quality) * (b.expected_ns - a.expected_ns);
    };
    while (front.size() > 1 && is_below_line()) {
      front.pop_back();
    }
    front.push_back(point);
  }
  controller.window_ns_ = options.window_ns;
  controller.burst_ns_ = kLeastBurst * options.window_ns;
  FORETUNE_TRY_STATUS(controller.set_target(options.target_ns));
  return controller;
}

std::vector<std::size_t> LatencyController::front() const {
  std::vector<std::size_t> positions;
  for (const Point& point : front_) {
    positions.push_back(point.position);
  }
  return positions;
}

Status LatencyController::set_target(double ns) {
  if (!is_time(ns)) {
    return fail(ErrorCode::kInvalidArgument, "a call cannot be wanted to take ", ns, " ns");
  }
  target_ns_ = ns;
  debt_ns_ = 0;
  rest_ns_ = 0;
  choose();
  return {};
}

void LatencyController::finished(double ns) {
  if (!std::isfinite(ns) || ns < 0) {
    return;
  }
  observe_speed(ns);
  // A single call of a slow network may be off by as much as it takes.
  const double limit = std::max(kMostDebt * window_ns_, target_ns_);
  debt_ns_ = std::clamp(debt_ns_ + ns - target_ns_, -limit, limit);
  choose();
}

void LatencyController::observe_speed(double ns) {
  const double expected = front_[chosen_].expected_ns;
  // A single long stop says nothing about the calls to come. When stops come again, they do.
  const double most = kUsual * expected / speed_ + burst_ns_;
  double counted = ns;
  if (ns > most) {
    counted = most;
    burst_ns_ = std::min(2 * burst_ns_, window_ns_);
  } else {
    burst_ns_ = std::max(kLeastBurst * window_ns_, burst_ns_ * window_ns_ / (window_ns_ + ns));
  }
  // The mean of the work done in a moment, over moments; each call fills the time that it took.
  const double memory = std::max(kSpeedMemory * window_ns_, kBurstsRemembered * burst_ns_);
  speed_ = memory / (memory + counted) * (speed_ + expected / memory);
}

void LatencyController::choose() {
  const double payback = std::max(kPayback * window_ns_, 4 * target_ns_);
  const double wanted = target_ns_ * (1 - debt_ns_ / payback) * speed_;
  const auto above =
      std::upper_bound(front_.begin(), front_.end(), wanted,
                       [](double value, const Point& point) { return value < point.expected_ns; });
  if (above == front_.begin() || above == front_.end()) {
    rest_ns_ = 0;
    chosen_ = above == front_.begin() ? 0 : front_.size() - 1;
    return;
  }
  const double slow = above->expected_ns;
  const double fast = (above - 1)->expected_ns;
  // The neighbours may have been others before.
  const double most = (slow - fast) / 2;
  const double owed = wanted + std::clamp(rest_ns_, -most, most);
  const bool takes_slow = owed >= (slow + fast) / 2;
  chosen_ = static_cast<std::size_t>(above - front_.begin()) - (takes_slow ? 0 : 1);
  rest_ns_ = owed - front_[chosen_].expected_ns;
}

}  // namespace foretune::graph
