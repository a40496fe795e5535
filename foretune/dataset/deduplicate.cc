// Rows of the same config and context become one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/dataset/dataset.h"

namespace foretune {
namespace {

int rank_of(const Dataset::Row& row) {
  // A row of a later stage says nothing about whether the config works.
  const int stage = row.is_evaluation() ? 4 : 0;
  return stage + (row.is_timed()                      ? 0
                  : row.outcome == Outcome::kOk       ? 1
                  : row.outcome == Outcome::kCensored ? 2
                                                      : 3);
}

constexpr double kLargestSpread = 1e30;

// Values of one metric of one config, or of one baseline.
struct Repeated {
  std::vector<double> values;
  double spread = 0;
  std::uint32_t samples = 0;

  void add(double value, double spread_of_it = 0, std::uint32_t samples_of_it = 0) {
    values.push_back(value);
    spread = std::max(spread, spread_of_it);
    samples += samples_of_it;
  }
  // Values at the end of a double's range have a middle beyond it, and a spread.
  [[nodiscard]] double middle() const {
    const double value = median(values);
    return std::isfinite(value) ? value : values.front();
  }
  [[nodiscard]] double merged_spread() const {
    return std::max(spread, std::min(relative_spread(values), kLargestSpread));
  }
};

}  // namespace

struct Dataset::Merging {
  std::vector<bool> keep;
  std::vector<ExtraMetric> extras;  // of the rows that are kept
};

// Merges rows that say the same of one config, the best first: those that came out like it.
void Dataset::merge_group(std::span<const RowIndex> group, Merging& merging) {
  if (group.empty()) {
    return;
  }
  const RowIndex best = group.front();
  Row& first = rows_[best];
  merging.keep[best] = true;
  if (group.size() == 1) {
    const auto own = extras(best);
    merging.extras.insert(merging.extras.end(), own.begin(), own.end());
    return;
  }
  std::vector<double> times;
  std::vector<double> medians;
  std::map<MetricIndex, Repeated> metrics;
  for (const RowIndex index : group) {
    const Row& row = rows_[index];
    if (row.outcome != first.outcome) {
      continue;
    }
    if (row.is_timed()) {
      times.push_back(static_cast<double>(row.time_ns));
      if (row.median_ns > 0) {
        medians.push_back(static_cast<double>(row.median_ns));
      }
    } else if (row.outcome == Outcome::kCensored) {
      // The highest of several lower bounds says most.
      first.time_ns = std::max(first.time_ns, row.time_ns);
    }
    for (const ExtraMetric& extra : extras(index)) {
      metrics[extra.metric].add(extra.value, extra.spread, extra.samples);
    }
  }
  if (times.size() > 1) {
    first.time_ns = static_cast<float>(median(times));
    first.spread = std::max(first.spread,
                            static_cast<float>(std::min(relative_spread(times), kLargestSpread)));
    first.median_ns = medians.empty() ? 0.0F : static_cast<float>(median(medians));
  }
  for (const auto& [metric, repeated] : metrics) {
    merging.extras.push_back({.row = best,
                              .metric = metric,
                              .samples = repeated.samples,
                              .value = repeated.middle(),
                              .spread = repeated.merged_spread()});
  }
  first = rounded(first);
}

// Merges the rows of one config: those of its timing, best first, then those of later stages, best
// first.
void Dataset::merge_config(std::span<const RowIndex> group, Merging& merging) {
  const auto position = [&](const auto& wanted) {
    return static_cast<std::size_t>(std::find_if(group.begin(), group.end(), wanted) -
                                    group.begin());
  };
  const std::size_t timings = position([&](RowIndex i) { return rows_[i].is_evaluation(); });
  const std::size_t good = position(
      [&](RowIndex i) { return rows_[i].is_evaluation() && rows_[i].outcome != Outcome::kOk; });
  if (timings == 0 || rows_[group.front()].outcome != Outcome::kOk) {
    merge_group(group.first(timings), merging);
    merge_group(group.subspan(timings), merging);
    return;
  }
  merge_group(group.first(good), merging);
  if (good == timings) {
    merge_group(group.subspan(good), merging);
  }
}

std::size_t Dataset::deduplicate() {
  const auto key = [this](RowIndex i) {
    return std::tuple(rows_[i].problem, rows_[i].config, rows_[i].context);
  };
  Merging merging{.keep = std::vector<bool>(rows_.size(), false), .extras = {}};
  std::vector<RowIndex> order;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, Outcome, float, float,
                      std::vector<std::pair<MetricIndex, double>>>>
      compared;
  for (RowIndex i = 0; i < rows_.size(); ++i) {
    // Rows that were timed in turn belong together; only what is the same row is a repetition.
    const Row& row = rows_[i];
    if ((row.flags & kFlagReference) == 0) {
      order.push_back(i);
      continue;
    }
    const auto own = extras(i);
    std::vector<std::pair<MetricIndex, double>> values;
    for (const ExtraMetric& extra : own) {
      values.emplace_back(extra.metric, extra.value);
    }
    if (compared
            .emplace(row.problem, row.config, row.context, row.outcome, row.time_ns, row.spread,
                     std::move(values))
            .second) {
      merging.keep[i] = true;
      merging.extras.insert(merging.extras.end(), own.begin(), own.end());
    }
  }
  std::sort(order.begin(), order.end(), [&](RowIndex a, RowIndex b) {
    return std::tuple(key(a), rank_of(rows_[a]), a) < std::tuple(key(b), rank_of(rows_[b]), b);
  });
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && key(order[end]) == key(order[begin])) {
      ++end;
    }
    merge_config(std::span(order).subspan(begin, end - begin), merging);
    begin = end;
  }
  std::stable_sort(merging.extras.begin(), merging.extras.end(),
                   [](const ExtraMetric& a, const ExtraMetric& b) { return a.row < b.row; });
  extras_ = std::move(merging.extras);
  deduplicate_baselines();
  return keep_rows(merging.keep);
}

void Dataset::deduplicate_baselines() {
  struct Merged {
    std::vector<double> times;
    std::map<MetricIndex, Repeated> metrics;
  };
  std::map<std::pair<std::uint32_t, std::string>, Merged> merged;
  for (const Baseline& baseline : baselines_) {
    Merged& into = merged[{baseline.problem, baseline.name}];
    if (baseline.time_ns > 0) {
      into.times.push_back(static_cast<double>(baseline.time_ns));
    }
    for (const Baseline::Metric& metric : baseline.metrics) {
      into.metrics[metric.metric].add(metric.value);
    }
  }
  baselines_.clear();
  for (const auto& [key, from] : merged) {
    Baseline& baseline = baselines_.emplace_back();
    baseline.problem = key.first;
    baseline.name = key.second;
    baseline.time_ns = from.times.empty() ? 0.0F : static_cast<float>(median(from.times));
    for (const auto& [metric, repeated] : from.metrics) {
      baseline.metrics.push_back({metric, repeated.middle()});
    }
  }
}

std::size_t Dataset::keep_rows(const std::vector<bool>& keep) {
  std::vector<RowIndex> moved_to(rows_.size(), std::numeric_limits<RowIndex>::max());
  std::vector<Row> rows;
  for (RowIndex i = 0; i < rows_.size(); ++i) {
    if (keep[i]) {
      moved_to[i] = static_cast<RowIndex>(rows.size());
      rows.push_back(rows_[i]);
    }
  }
  const auto follow = [&](auto& entries) {
    std::erase_if(entries, [&](auto& entry) { return !keep[entry.row]; });
    for (auto& entry : entries) {
      entry.row = moved_to[entry.row];
    }
  };
  follow(extras_);
  follow(samples_);
  const std::size_t removed = rows_.size() - rows.size();
  rows_ = std::move(rows);
  return removed;
}

}  // namespace foretune
