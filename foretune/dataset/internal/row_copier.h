// Copies rows between data sets, all or some, with all that belongs to them. Internal.
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "foretune/dataset/dataset.h"

namespace foretune::dataset_internal {

// Says which rows to copy. Empty functions keep all and tell nothing apart.
struct CopyRules {
  std::function<bool(const Dataset::Row& row)> keeps_row;
  std::function<bool(std::uint32_t problem)> keeps_baseline;
  // Return the machine whose problem it becomes (Problem::machine()); 0: as it is.
  std::function<std::uint64_t(const Dataset::Row& row)> machine_of_row;
  std::function<std::uint64_t(std::uint32_t problem)> machine_of_baseline;
};

// Values are interned when first met, so that the receiving side holds only what its rows use. By
// index throughout: both may be the same data set.
class RowCopier {
 public:
  RowCopier(const Dataset& from, Dataset& to)
      : from_(from),
        to_(to),
        configs_(from.configs().size(), kUnknown),
        contexts_(from.contexts().size(), kUnknown) {}

  void copy(const CopyRules& rules) {
    const std::size_t rows = from_.size();
    const std::size_t extras = from_.extras().size();
    const std::size_t samples = from_.samples().size();
    const std::size_t baselines = from_.baselines().size();
    if (!rules.keeps_row) {
      to_.reserve(to_.size() + rows);
    }
    std::vector<RowIndex> moved_to(rows, kUnknown);
    for (std::size_t i = 0; i < rows; ++i) {
      const Dataset::Row row = from_.rows()[i];
      if (!rules.keeps_row || rules.keeps_row(row)) {
        moved_to[i] = static_cast<RowIndex>(to_.size());
        to_.add_row(translated(row, rules.machine_of_row ? rules.machine_of_row(row) : 0));
      }
    }
    for (std::size_t i = 0; i < extras;) {
      i = copy_extras(i, moved_to[from_.extras()[i].row]);
    }
    for (std::size_t i = 0; i < samples; ++i) {
      if (const RowIndex row = moved_to[from_.samples()[i].row]; row != kUnknown) {
        to_.add_samples({row, std::vector<float>(from_.samples()[i].values_ns)});
      }
    }
    for (std::size_t i = 0; i < baselines; ++i) {
      Dataset::Baseline own = from_.baselines()[i];
      if (!rules.keeps_baseline || rules.keeps_baseline(own.problem)) {
        copy_baseline(std::move(own), rules);
      }
    }
  }

 private:
  static constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();

  // The other side may number metrics in another order, which is that of a row's values.
  template <class Metrics>
  static void sort_by_metric(Metrics& metrics) {
    std::stable_sort(metrics.begin(), metrics.end(),
                     [](const auto& a, const auto& b) { return a.metric < b.metric; });
  }

  void copy_baseline(Dataset::Baseline own, const CopyRules& rules) {
    own.problem = problem_of(
        own.problem, rules.machine_of_baseline ? rules.machine_of_baseline(own.problem) : 0);
    for (Dataset::Baseline::Metric& metric : own.metrics) {
      metric.metric = metric_of(metric.metric);
    }
    sort_by_metric(own.metrics);
    if (std::find(to_.baselines().begin(), to_.baselines().end(), own) == to_.baselines().end()) {
      to_.add_baseline(std::move(own));
    }
  }

  // Copies the metrics of one row, which begin at `first`, unless it stays behind; returns where
  // those of the next one begin.
  std::size_t copy_extras(std::size_t first, RowIndex moved_to) {
    const RowIndex row = from_.extras()[first].row;
    std::vector<Dataset::ExtraMetric> own;
    std::size_t next = first;
    for (; next < from_.extras().size() && from_.extras()[next].row == row; ++next) {
      own.push_back(from_.extras()[next]);
      own.back().row = moved_to;
      own.back().metric = metric_of(own.back().metric);
    }
    if (moved_to != kUnknown) {
      sort_by_metric(own);
      for (const Dataset::ExtraMetric& extra : own) {
        to_.add_extra(extra);
      }
    }
    return next;
  }

  // The other side has declared all metrics of this one.
  [[nodiscard]] MetricIndex metric_of(MetricIndex index) const {
    return *to_.find_metric(from_.metric(index).name);
  }

  std::uint32_t problem_of(std::uint32_t id, std::uint64_t machine) {
    std::vector<std::uint32_t>& known = problems_[machine];
    known.resize(from_.problems().size(), kUnknown);
    if (known[id] == kUnknown) {
      const Problem problem = from_.problems()[id];
      known[id] = to_.intern_problem(machine == 0 ? problem : problem.on_machine(machine));
    }
    return known[id];
  }

  Dataset::Row translated(Dataset::Row row, std::uint64_t machine) {
    row.problem = problem_of(row.problem, machine);
    std::uint32_t& config = configs_[row.config];
    if (config == kUnknown) {
      config = to_.intern_config(Config(from_.configs()[row.config]));
    }
    row.config = config;
    std::uint32_t& context = contexts_[row.context];
    if (context == kUnknown) {
      context = to_.intern_context(Context(from_.contexts()[row.context]));
    }
    row.context = static_cast<std::uint16_t>(context);
    row.reason = row.reason == 0 ? 0 : to_.intern_reason(std::string(from_.reason(row.reason)));
    return row;
  }

  const Dataset& from_;
  Dataset& to_;
  std::map<std::uint64_t, std::vector<std::uint32_t>> problems_;  // ids by machine
  std::vector<std::uint32_t> configs_;
  std::vector<std::uint32_t> contexts_;
};

}  // namespace foretune::dataset_internal
