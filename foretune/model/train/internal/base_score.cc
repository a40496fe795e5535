#include "foretune/model/train/internal/base_score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace foretune::train_internal {
namespace {

// Points that have one value: from the lowest x to the highest, both included.
struct Step {
  double low = 0;
  double high = 0;
  double weight = 0;
  double mean = 0;

  static Step of(const BasePoint& point) { return {point.x, point.x, point.weight, point.value}; }
  void take(const Step& next) {
    const double both = weight + next.weight;
    mean = both > 0 ? (weight * mean + next.weight * next.mean) / both : (mean + next.mean) / 2;
    weight = both;
    high = next.high;
  }
};

// Joins points in order of x to at most kMaxBaseSteps steps of equally many points. Points of the
// same x stay together.
std::vector<Step> binned(const std::vector<BasePoint>& points) {
  const std::size_t size = (points.size() + kMaxBaseSteps - 1) / kMaxBaseSteps;
  std::vector<Step> out;
  std::size_t held = 0;
  for (const BasePoint& point : points) {
    const bool is_same = !out.empty() && out.back().high == point.x;
    if (out.empty() || (held >= size && !is_same)) {
      out.push_back(Step::of(point));
      held = 1;
    } else {
      out.back().take(Step::of(point));
      ++held;
    }
  }
  return out;
}

// Pools adjacent steps until none lies below the one before it; for `sign` -1 above.
std::vector<Step> monotone(const std::vector<Step>& steps, double sign) {
  std::vector<Step> out;
  for (const Step& step : steps) {
    out.push_back(step);
    while (out.size() > 1 && sign * out[out.size() - 2].mean >= sign * out.back().mean) {
      out[out.size() - 2].take(out.back());
      out.pop_back();
    }
  }
  return out;
}

// Returns the squared error that pooling added.
double added_error(const std::vector<Step>& before, const std::vector<Step>& pooled) {
  double sum = 0;
  std::size_t at = 0;
  for (const Step& step : before) {
    while (step.low > pooled[at].high) {
      ++at;
    }
    sum += step.weight * (step.mean - pooled[at].mean) * (step.mean - pooled[at].mean);
  }
  return sum;
}

std::vector<Step> best_steps(const std::vector<BasePoint>& points) {
  const std::vector<Step> steps = binned(points);
  std::vector<Step> rising = monotone(steps, 1);
  std::vector<Step> falling = monotone(steps, -1);
  return added_error(steps, rising) <= added_error(steps, falling) ? rising : falling;
}

// Writes one tree, node by node; the steps become its leaves, in their order.
class TreeWriter {
 public:
  TreeWriter(std::uint32_t column, Forest::Missing missing, Forest& out)
      : column_(column), missing_(missing), out_(out) {}

  // Returns the child's number of what it wrote.
  std::int32_t write(std::span<const Step> steps) {
    if (steps.size() == 1) {
      return leaf(steps.front().mean);
    }
    const std::size_t half = steps.size() / 2;
    const double low = steps[half - 1].high;
    const double high = steps[half].low;
    const double middle = low + (high - low) / 2;
    const std::size_t at = node(middle < high ? middle : low);
    out_.left[at] = write(steps.first(half));
    out_.right[at] = write(steps.subspan(half));
    return static_cast<std::int32_t>(at);
  }

  // Sends rows without a value right.
  void write_with_missing(std::span<const Step> steps, double missing_value) {
    const std::size_t at = node(std::numeric_limits<double>::infinity());
    out_.left[at] = write(steps);
    out_.right[at] = leaf(missing_value);
  }

 private:
  std::int32_t leaf(double value) {
    out_.leaf_value.push_back(value);
    return ~static_cast<std::int32_t>(out_.leaf_value.size() - 1);
  }

  std::size_t node(double threshold) {
    out_.feature.push_back(column_);
    out_.threshold.push_back(threshold);
    out_.left.push_back(0);
    out_.right.push_back(0);
    out_.default_left.push_back(0);
    out_.missing.push_back(missing_);
    return out_.feature.size() - 1;
  }

  std::uint32_t column_;
  Forest::Missing missing_;
  Forest& out_;
};

}  // namespace

Forest base_forest(std::vector<BasePoint> points, std::uint32_t column, std::uint32_t columns) {
  const auto known_end = std::partition(
      points.begin(), points.end(), [](const BasePoint& point) { return !std::isnan(point.x); });
  Step missing;
  for (const BasePoint& point : std::span(known_end, points.end())) {
    missing.take(Step::of(point));
  }
  const bool has_missing = known_end != points.end();
  points.erase(known_end, points.end());
  std::stable_sort(points.begin(), points.end(),
                   [](const BasePoint& a, const BasePoint& b) { return a.x < b.x; });
  const std::vector<Step> steps = points.empty() ? std::vector<Step>{missing} : best_steps(points);
  Forest out;
  out.feature_count = columns;
  TreeWriter writer(column, has_missing ? Forest::Missing::kNan : Forest::Missing::kNone, out);
  if (has_missing && !points.empty()) {
    writer.write_with_missing(steps, missing.mean);
  } else {
    writer.write(steps);
  }
  out.trees.push_back({.first_node = 0,
                       .node_count = static_cast<std::uint32_t>(out.feature.size()),
                       .first_leaf = 0,
                       .leaf_count = static_cast<std::uint32_t>(out.leaf_value.size())});
  return out;
}

}  // namespace foretune::train_internal
