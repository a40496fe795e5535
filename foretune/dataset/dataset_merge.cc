// Data sets joined, and cut down to some of their problems.
#include <algorithm>
#include <limits>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/dataset/dataset.h"

namespace foretune {
namespace {

// Copies rows between data sets. Values are interned when first met, so that the receiving side
// holds only what its rows use. By index throughout: both may be the same data set.
class RowCopier {
 public:
  RowCopier(const Dataset& from, Dataset& to)
      : from_(from),
        to_(to),
        problems_(from.problems().size(), kUnknown),
        configs_(from.configs().size(), kUnknown),
        contexts_(from.contexts().size(), kUnknown) {}

  // Copies what belongs to problems that are kept; an empty `keep` keeps all.
  void copy(const std::vector<bool>& keep) {
    const auto is_kept = [&](std::uint32_t problem) { return keep.empty() || keep[problem]; };
    const std::size_t rows = from_.size();
    const std::size_t extras = from_.extras().size();
    const std::size_t samples = from_.samples().size();
    const std::size_t baselines = from_.baselines().size();
    if (keep.empty()) {
      to_.reserve(to_.size() + rows);
    }
    std::vector<RowIndex> moved_to(rows, kUnknown);
    for (std::size_t i = 0; i < rows; ++i) {
      if (is_kept(from_.rows()[i].problem)) {
        moved_to[i] = static_cast<RowIndex>(to_.size());
        to_.add_row(translated(from_.rows()[i]));
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
      if (!is_kept(own.problem)) {
        continue;
      }
      own.problem = problem_of(own.problem);
      for (Dataset::Baseline::Metric& metric : own.metrics) {
        metric.metric = metric_of(metric.metric);
      }
      sort_by_metric(own.metrics);
      if (std::find(to_.baselines().begin(), to_.baselines().end(), own) == to_.baselines().end()) {
        to_.add_baseline(std::move(own));
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

  std::uint32_t problem_of(std::uint32_t id) {
    if (problems_[id] == kUnknown) {
      problems_[id] = to_.intern_problem(Problem(from_.problems()[id]));
    }
    return problems_[id];
  }

  Dataset::Row translated(Dataset::Row row) {
    row.problem = problem_of(row.problem);
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
  std::vector<std::uint32_t> problems_;
  std::vector<std::uint32_t> configs_;
  std::vector<std::uint32_t> contexts_;
};

}  // namespace

Status Dataset::check_mergeable(const Dataset& other) const {
  if (other.header_.family != header_.family) {
    return fail(ErrorCode::kMismatch, "family '", other.header_.family, "' cannot be merged with '",
                header_.family, "'");
  }
  if (other.header_.problem_type != header_.problem_type) {
    return fail(ErrorCode::kMismatch, "data sets of different problem types cannot be merged");
  }
  if (other.header_.config_schema != header_.config_schema) {
    return fail(ErrorCode::kMismatch, "config schema ", other.header_.config_schema.name, " v",
                other.header_.config_schema.version, " cannot be merged with ",
                header_.config_schema.name, " v", header_.config_schema.version,
                other.header_.config_schema.name == header_.config_schema.name &&
                        other.header_.config_schema.version == header_.config_schema.version
                    ? ": their parameters differ"
                    : "");
  }
  return check_declarable(other.header_.metrics);
}

Status Dataset::merge(const Dataset& other) {
  const Status mergeable = check_mergeable(other);
  if (!mergeable && other.holds_nothing()) {
    return {};
  }
  if (!mergeable && holds_nothing()) {
    *this = other;
    return {};
  }
  FORETUNE_TRY_STATUS(mergeable);
  FORETUNE_TRY_STATUS(declare_metrics(std::vector<MetricInfo>(other.header_.metrics)));
  RowCopier(other, *this).copy({});
  notes_.insert(other.notes_.begin(), other.notes_.end());
  return {};
}

Dataset Dataset::filter_problems(const std::vector<bool>& keep) const {
  FORETUNE_CHECK(keep.size() == problems_.size());
  Dataset out(header_);
  out.notes_ = notes_;
  if (!keep.empty()) {
    RowCopier(*this, out).copy(keep);
  }
  return out;
}

}  // namespace foretune
