#include "foretune/dataset/metric_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

struct MetricCell {
  RowIndex row = 0;
  std::string_view metric;
  double value = 0;
  double spread = 0;
  std::uint32_t samples = 0;
};

// Calls use(cell) for every value of the rows beyond time, in row order.
template <class Use>
void for_each_extra(const Dataset& dataset, const Use& use) {
  for (const Dataset::ExtraMetric& extra : dataset.extras()) {
    use(MetricCell{.row = extra.row,
                   .metric = dataset.metric(extra.metric).name,
                   .value = extra.value,
                   .spread = extra.spread,
                   .samples = extra.samples});
  }
}

// exp(z) has to be a time that a float can hold.
constexpr double kLargestZ = 80;

bool is_own_column(std::string_view metric) { return metric == kTimeNs || metric == kMedianNs; }

double own_value(const Dataset::Row& row, std::string_view metric) {
  const float value = metric == kTimeNs ? row.time_ns : row.median_ns;
  return row.has_time() && value > 0 ? static_cast<double>(value) : kNotANumber;
}

std::vector<std::optional<MetricCell>> cells_of(const Dataset& dataset, std::string_view metric) {
  std::vector<std::optional<MetricCell>> out(dataset.size());
  if (is_own_column(metric)) {
    for (RowIndex i = 0; i < dataset.size(); ++i) {
      const Dataset::Row& row = dataset.rows()[i];
      if (const double value = own_value(row, metric); !std::isnan(value)) {
        out[i] = MetricCell{i, metric, value, static_cast<double>(row.spread), row.samples};
      }
    }
    return out;
  }
  for_each_extra(dataset, [&](const MetricCell& cell) {
    if (cell.metric == metric && std::isfinite(cell.value)) {
      out[cell.row] = cell;
    }
  });
  return out;
}

// The same header, problems, configs and contexts by the same numbers; no rows.
Dataset same_numbers(const Dataset& dataset) {
  Dataset out(dataset.header());
  out.tell_apart_as(dataset);
  for (const Problem& problem : dataset.problems()) {
    out.intern_problem(problem);
  }
  for (const Config& config : dataset.configs()) {
    out.intern_config(config);
  }
  for (const Context& context : dataset.contexts()) {
    out.intern_context(context);
  }
  return out;
}

bool ran(Outcome outcome) { return outcome == Outcome::kOk || outcome == Outcome::kCensored; }

// A row of the view, or nothing where the metric says nothing of it.
std::optional<Dataset::Row> viewed(const Dataset::Row& row, const std::optional<MetricCell>& cell,
                                   bool is_time, const ValueScale& scale) {
  Dataset::Row out = row;
  if (!ran(row.outcome) || is_time) {
    // A row of a later stage says nothing about the time.
    return ran(row.outcome) && !row.has_time() ? std::nullopt : std::optional(out);
  }
  out.stage = Stage::kNone;
  const double z = cell ? scale.to_z(cell->value) : kNotANumber;
  if (row.outcome == Outcome::kCensored || !std::isfinite(z)) {
    return std::nullopt;
  }
  out.time_ns = static_cast<float>(std::exp(std::clamp(z, -kLargestZ, kLargestZ)));
  out.median_ns = 0;
  out.spread = static_cast<float>(cell->spread * std::fabs(cell->value) / scale.value_per_z(z));
  out.samples = static_cast<std::uint16_t>(
      std::min<std::uint32_t>(cell->samples, std::numeric_limits<std::uint16_t>::max()));
  // Values of the metric are compared as they are, however they were taken.
  out.flags = static_cast<std::uint8_t>(out.flags & ~unsigned{kFlagReference});
  return out;
}

bool is_plain_time(std::string_view metric, const ValueScale& scale) {
  return metric == kTimeNs && scale.kind == ValueScale::Kind::kLog;
}

bool has_relative_bound(const Objective& objective) {
  return std::any_of(objective.bounds.begin(), objective.bounds.end(),
                     [](const MetricBound& bound) {
                       return bound.bound.kind != BoundValue::Kind::kAbsolute ||
                              (bound.keep && bound.keep->kind != BoundValue::Kind::kAbsolute);
                     });
}

// The measured values of the first default config that ran.
std::vector<MetricValue> measured_default(const Dataset& dataset, std::uint32_t problem,
                                          std::span<const RowIndex> rows,
                                          std::span<const MetricInfo> metrics,
                                          std::span<const std::vector<double>> columns,
                                          const DefaultConfigs& default_configs) {
  std::vector<MetricValue> out;
  for (const Config& config : default_configs(dataset.problems()[problem])) {
    const std::optional<std::uint32_t> id = dataset.find_config(config);
    for (std::size_t m = 0; id && m < metrics.size(); ++m) {
      std::vector<double> values;
      for (const RowIndex row : rows) {
        const bool counts = dataset.rows()[row].config == *id &&
                            dataset.rows()[row].outcome == Outcome::kOk &&
                            std::isfinite(columns[m][row]);
        if (counts) {
          values.push_back(columns[m][row]);
        }
      }
      if (!values.empty()) {
        out.emplace_back(metrics[m].name, median(values));
      }
    }
    if (!out.empty()) {
      break;
    }
  }
  return out;
}

}  // namespace

Result<MetricInfo> find_metric(const Dataset& dataset, std::string_view name) {
  const std::vector<MetricInfo> all = dataset.present_metrics();
  if (const MetricInfo* found = find_metric(all, name)) {
    return *found;
  }
  if (name == kMedianNs) {
    return metric_info(name);
  }
  std::vector<std::string> names;
  for (const MetricInfo& info : all) {
    names.push_back(info.name);
  }
  return fail(ErrorCode::kNotFound, "the data set has no metric ", quoted(name, 40), "; it has ",
              names.empty() ? "none" : join(names, ", "));
}

std::vector<double> metric_values(const Dataset& dataset, std::string_view metric) {
  std::vector<double> out(dataset.size(), kNotANumber);
  const std::vector<std::optional<MetricCell>> cells = cells_of(dataset, metric);
  for (RowIndex i = 0; i < out.size(); ++i) {
    if (cells[i]) {
      out[i] = cells[i]->value;
    }
  }
  return out;
}

Result<ValueScale> fit_scale(const Dataset& dataset, const MetricInfo& info) {
  std::vector<double> values = metric_values(dataset, info.name);
  for (RowIndex i = 0; i < values.size(); ++i) {
    if (dataset.rows()[i].outcome != Outcome::kOk) {
      values[i] = kNotANumber;
    }
  }
  return ValueScale::fit(info, values);
}

namespace {

// Rows of configs that have all these metrics, in this row or in another one: a later stage has
// rows of its own.
std::vector<bool> rows_with_all(const Dataset& dataset, std::span<const MetricInfo> infos) {
  std::vector<bool> out(dataset.size(), true);
  const auto key = [&](RowIndex i) {
    return (std::uint64_t{dataset.rows()[i].problem} << 32U) | dataset.rows()[i].config;
  };
  for (const MetricInfo& info : infos) {
    const std::vector<double> values = metric_values(dataset, info.name);
    std::unordered_set<std::uint64_t> have;
    for (RowIndex i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) {
        have.insert(key(i));
      }
    }
    for (RowIndex i = 0; i < values.size(); ++i) {
      out[i] = out[i] && have.contains(key(i));
    }
  }
  return out;
}

}  // namespace

Dataset metric_view(const Dataset& dataset, std::string_view metric, const ValueScale& scale,
                    std::span<const MetricInfo> only_with, std::vector<RowIndex>* rows) {
  Dataset out = same_numbers(dataset);
  const bool is_time = is_plain_time(metric, scale);
  const std::vector<std::optional<MetricCell>> cells = cells_of(dataset, metric);
  const std::vector<bool> is_complete = rows_with_all(dataset, only_with);
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    if (ran(row.outcome) && !is_complete[i]) {
      continue;
    }
    if (std::optional<Dataset::Row> seen = viewed(row, cells[i], is_time, scale)) {
      seen->reason = out.intern_reason(dataset.reason(row.reason));
      out.add_row(*seen);
      if (rows != nullptr) {
        rows->push_back(i);
      }
    }
  }
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    if (is_time) {
      out.add_baseline(baseline);
    }
  }
  return out;
}

Result<DatasetJudge> DatasetJudge::create(const Dataset& dataset, const Objective& objective,
                                          const DefaultConfigs& default_configs) {
  std::vector<MetricInfo> infos;
  for (const std::string& name : objective.metrics()) {
    FORETUNE_TRY(infos.emplace_back(), find_metric(dataset, name));
  }
  DatasetJudge out;
  const std::size_t problems = dataset.problems().size();
  if (!has_relative_bound(objective)) {
    FORETUNE_TRY(out.judges_.emplace_back(), Judge::create(objective, infos, {}));
    out.place_of_problem_.assign(problems, 0);
    return out;
  }
  if (!default_configs) {
    return fail(ErrorCode::kInvalidArgument,
                "bounds relative to the baseline need a family that says what it runs by default");
  }
  out.place_of_problem_.assign(problems, -1);
  std::vector<std::vector<double>> columns;
  for (const MetricInfo& info : infos) {
    columns.push_back(metric_values(dataset, info.name));
  }
  const std::vector<std::vector<RowIndex>> rows = dataset.rows_by_problem();
  std::optional<Error> why;
  for (std::uint32_t problem = 0; problem < problems; ++problem) {
    const std::vector<MetricValue> baseline =
        measured_default(dataset, problem, rows[problem], infos, columns, default_configs);
    Result<Judge> judge = Judge::create(objective, infos, baseline);
    if (judge) {
      out.place_of_problem_[problem] = static_cast<std::int64_t>(out.judges_.size());
      out.judges_.push_back(*std::move(judge));
    } else if (!why) {
      why = judge.error();
    }
  }
  if (out.judges_.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no problem of the data set can be judged",
                why ? concat(": ", why->message) : std::string());
  }
  return out;
}

JudgedRows::JudgedRows(const Dataset& dataset, const DatasetJudge& judge)
    : dataset_(dataset), judge_(judge), width_(judge.metrics().size()) {
  std::unordered_map<std::uint64_t, std::size_t> groups;
  for (const Dataset::Row& row : dataset.rows()) {
    const std::uint64_t key = (std::uint64_t{row.problem} << 32U) | row.config;
    group_of_row_.push_back(groups.emplace(key, groups.size()).first->second);
  }
  values_.assign(groups.size() * width_, kNotANumber);
  for (std::size_t m = 0; m < width_; ++m) {
    const std::vector<double> column = metric_values(dataset, judge.metrics()[m].name);
    std::vector<std::vector<double>> of_group(groups.size());
    for (RowIndex i = 0; i < column.size(); ++i) {
      if (dataset.rows()[i].outcome == Outcome::kOk && std::isfinite(column[i])) {
        of_group[group_of_row_[i]].push_back(column[i]);
      }
    }
    for (RowIndex i = 0; i < column.size(); ++i) {
      double& value = values_[group_of_row_[i] * width_ + m];
      if (!of_group[group_of_row_[i]].empty()) {
        value = median(of_group[group_of_row_[i]]);
      } else if (dataset.rows()[i].outcome == Outcome::kCensored && std::isfinite(column[i])) {
        value = std::isnan(value) ? column[i] : std::max(value, column[i]);
      }
    }
  }
}

Judgement JudgedRows::judge(RowIndex row) const {
  const Judge* const judge = judge_.of(dataset_.rows()[row].problem);
  if (judge == nullptr) {
    Judgement none;
    none.violation = std::numeric_limits<double>::infinity();
    none.keep_violation = none.violation;
    return none;
  }
  return judge->judge(values(row));
}

std::string JudgedRows::why_not(RowIndex row) const {
  const Judge* const judge = judge_.of(dataset_.rows()[row].problem);
  if (judge == nullptr) {
    return "no baseline of the problem was measured";
  }
  const std::span<const double> of_row = values(row);
  const std::vector<MetricBound>& bounds = judge->objective().bounds;
  for (std::size_t b = 0; b < bounds.size(); ++b) {
    const MetricInfo* const info = find_metric(judge->metrics(), bounds[b].metric);
    const double value = of_row[static_cast<std::size_t>(info - judge->metrics().data())];
    if (std::isnan(value)) {
      return concat(info->name, " was not measured");
    }
    if (bounds[b].is_upper ? value > judge->limit(b) : value < judge->limit(b)) {
      return concat("misses ", info->name, bounds[b].is_upper ? " <= " : " >= ", judge->limit(b),
                    info->unit.empty() ? "" : " ", info->unit);
    }
  }
  return {};
}

Result<Dataset> objective_view(const Dataset& dataset, const DatasetJudge& judge,
                               const ValueScale& scale) {
  if (judge.objective().is_pareto()) {
    return fail(ErrorCode::kInvalidArgument,
                "a Pareto objective has no single value by which configs could be ordered");
  }
  const std::string& target = judge.objective().targets.front();
  const bool is_time = is_plain_time(target, scale);
  const bool is_bounded = !judge.objective().bounds.empty();
  const JudgedRows judged(dataset, judge);
  const std::vector<std::optional<MetricCell>> cells = cells_of(dataset, target);
  Dataset out = same_numbers(dataset);
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    const std::string reason = ran(row.outcome) ? judged.why_not(i) : std::string();
    if (!reason.empty()) {
      Dataset::Row refused = row;
      refused.outcome = Outcome::kUnsupported;
      refused.reason = out.intern_reason(reason);
      out.add_row(refused);
    } else if (std::optional<Dataset::Row> seen = viewed(row, cells[i], is_time, scale)) {
      seen->reason = out.intern_reason(dataset.reason(row.reason));
      out.add_row(*seen);
    }
  }
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    // A choice of somebody else's has nothing but its time.
    if (is_time && !is_bounded) {
      out.add_baseline(baseline);
    }
  }
  return out;
}

}  // namespace foretune
