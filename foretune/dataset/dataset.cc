#include "foretune/dataset/dataset.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/dataset/records.h"

namespace foretune {
namespace {

std::uint16_t clamp_samples(std::uint32_t samples) {
  return static_cast<std::uint16_t>(
      std::min<std::uint32_t>(samples, std::numeric_limits<std::uint16_t>::max()));
}

}  // namespace

std::string_view to_string(DatasetRole role) {
  return role == DatasetRole::kValidation ? "validation" : "training";
}

std::uint32_t Dataset::intern_problem(const Problem& problem) {
  const auto [found, is_new] =
      problem_ids_.emplace(problem, static_cast<std::uint32_t>(problems_.size()));
  if (is_new) {
    problems_.push_back(problem);
  }
  return found->second;
}

std::uint32_t Dataset::intern_config(const Config& config) {
  const auto [found, is_new] =
      config_ids_.emplace(config, static_cast<std::uint32_t>(configs_.size()));
  if (is_new) {
    configs_.push_back(config);
  }
  return found->second;
}

std::uint32_t Dataset::intern_context(const Context& context) {
  // A data set has a handful of contexts: a search beats a table.
  const auto found = std::find(contexts_.begin(), contexts_.end(), context);
  if (found == contexts_.end()) {
    FORETUNE_CHECK(contexts_.size() < std::numeric_limits<std::uint16_t>::max());
    contexts_.push_back(context);
    return static_cast<std::uint32_t>(contexts_.size() - 1);
  }
  return static_cast<std::uint32_t>(found - contexts_.begin());
}

std::uint32_t Dataset::intern_reason(const std::string& reason) {
  if (reason.empty()) {
    return 0;
  }
  const auto [found, is_new] =
      reason_ids_.emplace(reason, static_cast<std::uint32_t>(reasons_.size()));
  if (is_new) {
    reasons_.push_back(reason);
  }
  return found->second;
}

void Dataset::add(const Measurement& measurement) {
  Row row;
  row.problem = intern_problem(measurement.problem);
  row.config = intern_config(measurement.config);
  row.context = static_cast<std::uint16_t>(intern_context(measurement.context));
  row.outcome = measurement.outcome;
  row.stage = measurement.stage;
  row.flags = measurement.flags;
  row.reason = intern_reason(measurement.reason);
  const auto index = static_cast<RowIndex>(rows_.size());
  for (const MetricValue& metric : measurement.metrics) {
    if (metric.metric == MetricId::kTimeNs) {
      row.time_ns = static_cast<float>(metric.value);
      row.spread = static_cast<float>(metric.spread);
      row.samples = clamp_samples(metric.samples);
    } else if (metric.metric == MetricId::kMedianNs) {
      row.median_ns = static_cast<float>(metric.value);
    } else {
      extras_.push_back({index, metric});
    }
  }
  add_rounded_row(row);
  if (!measurement.samples_ns.empty()) {
    samples_.push_back({index, measurement.samples_ns});
  }
}

Measurement Dataset::measurement(RowIndex index) const {
  const Row& row = rows_[index];
  Measurement out{.problem = problems_[row.problem],
                  .config = configs_[row.config],
                  .context = contexts_[row.context],
                  .outcome = row.outcome,
                  .stage = row.stage,
                  .flags = row.flags,
                  .reason = reasons_[row.reason],
                  .metrics = {},
                  .samples_ns = {}};
  if (row.outcome == Outcome::kOk || row.outcome == Outcome::kCensored) {
    const auto spread = static_cast<double>(row.spread);
    out.metrics.push_back({MetricId::kTimeNs, static_cast<double>(row.time_ns), spread,
                           row.samples});
    if (row.median_ns > 0) {
      out.metrics.push_back({MetricId::kMedianNs, static_cast<double>(row.median_ns), spread,
                             row.samples});
    }
  }
  const auto by_row = [](const auto& entry, RowIndex wanted) { return entry.row < wanted; };
  for (auto extra = std::lower_bound(extras_.begin(), extras_.end(), index, by_row);
       extra != extras_.end() && extra->row == index; ++extra) {
    out.metrics.push_back(extra->value);
  }
  const auto samples = std::lower_bound(samples_.begin(), samples_.end(), index, by_row);
  if (samples != samples_.end() && samples->row == index) {
    out.samples_ns = samples->values_ns;
  }
  return out;
}

void Dataset::add_rounded_row(const Row& row) {
  rows_.push_back(dataset_internal::rounded_for_storage(row));
}

std::vector<std::vector<RowIndex>> Dataset::rows_by_problem() const {
  std::vector<std::vector<RowIndex>> out(problems_.size());
  for (RowIndex i = 0; i < rows_.size(); ++i) {
    out[rows_[i].problem].push_back(i);
  }
  return out;
}

namespace {

int rank_of(Outcome outcome) {
  return outcome == Outcome::kOk ? 0 : outcome == Outcome::kCensored ? 1 : 2;
}

}  // namespace

std::size_t Dataset::deduplicate() {
  const auto key = [this](RowIndex i) {
    return std::tuple(rows_[i].problem, rows_[i].config, rows_[i].context);
  };
  std::vector<RowIndex> order(rows_.size());
  for (RowIndex i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::sort(order.begin(), order.end(), [&](RowIndex a, RowIndex b) {
    return std::tuple(key(a), rank_of(rows_[a].outcome), a) <
           std::tuple(key(b), rank_of(rows_[b].outcome), b);
  });
  std::vector<bool> keep(rows_.size(), false);
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && key(order[end]) == key(order[begin])) {
      ++end;
    }
    Row& first = rows_[order[begin]];
    keep[order[begin]] = true;
    std::vector<double> times;
    for (std::size_t i = begin; i < end; ++i) {
      const Row& row = rows_[order[i]];
      if (row.outcome == Outcome::kOk) {
        times.push_back(static_cast<double>(row.time_ns));
      } else if (row.outcome == Outcome::kCensored && first.outcome == Outcome::kCensored) {
        // Of several lower bounds the highest says most.
        first.time_ns = std::max(first.time_ns, row.time_ns);
      }
    }
    if (times.size() > 1) {
      first.time_ns = static_cast<float>(median(times));
      first.spread = std::max(first.spread, static_cast<float>(relative_spread(times)));
      first = dataset_internal::rounded_for_storage(first);
    }
    begin = end;
  }
  return keep_rows(keep);
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

Digest Dataset::fingerprint() const {
  // A sum does not care about order; each row enters by its values, never by ids.
  Digest sum{.high = header_.config_schema.id(), .low = hash64(header_.family)};
  for (const Row& row : rows_) {
    const std::uint64_t key =
        resume_key(problems_[row.problem], configs_[row.config], contexts_[row.context]);
    const std::uint64_t value =
        hash_combine(std::bit_cast<std::uint32_t>(row.time_ns),
                     static_cast<std::uint64_t>(row.outcome));
    sum.high += mix64(hash_combine(key, value));
    sum.low += mix64(hash_combine(value, key));
  }
  return sum;
}

Status Dataset::merge(const Dataset& other) {
  if (other.header_.family != header_.family) {
    return fail(ErrorCode::kMismatch, "family '", other.header_.family, "' cannot be merged with '",
                header_.family, "'");
  }
  if (other.header_.config_schema != header_.config_schema) {
    return fail(ErrorCode::kMismatch, "config schema ", other.header_.config_schema.name, " v",
                other.header_.config_schema.version, " cannot be merged with ",
                header_.config_schema.name, " v", header_.config_schema.version);
  }
  for (RowIndex i = 0; i < other.rows_.size(); ++i) {
    add(other.measurement(i));
  }
  for (const Baseline& baseline : other.baselines_) {
    Baseline own = baseline;
    own.problem = intern_problem(other.problems_[baseline.problem]);
    if (std::find(baselines_.begin(), baselines_.end(), own) == baselines_.end()) {
      baselines_.push_back(std::move(own));
    }
  }
  return {};
}

Dataset Dataset::filter_problems(const std::vector<bool>& keep) const {
  Dataset out(header_);
  for (RowIndex i = 0; i < rows_.size(); ++i) {
    if (keep[rows_[i].problem]) {
      out.add(measurement(i));
    }
  }
  for (const Baseline& baseline : baselines_) {
    if (keep[baseline.problem]) {
      Baseline own = baseline;
      own.problem = out.intern_problem(problems_[baseline.problem]);
      out.baselines_.push_back(std::move(own));
    }
  }
  return out;
}

}  // namespace foretune
