// A data set seen through one of its metrics, or through an objective: the same problems, configs
// and contexts by the same numbers, and in the column of times exp(z) of the metric (ValueScale).
// So whatever learns from times, ranks by them or judges picks works on any metric unchanged, and
// efficiency is exp(best z - z of the pick): the ratio of values where the scale is a logarithm.
//
//   FORETUNE_TRY(const ValueScale scale, fit_scale(dataset, info));
//   const Dataset energy = metric_view(dataset, "energy_j", scale);
//
// Thread safety: free functions without state. Cost: a pass over the rows and a copy.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/metrics/metric.h"
#include "foretune/metrics/objective.h"
#include "foretune/metrics/value_scale.h"

namespace foretune {

// Returns the metric of that name among those that rows have. Errors: kNotFound, with those that
// there are.
Result<MetricInfo> find_metric(const Dataset& dataset, std::string_view name);

// One value per row; NaN where it has none. The time of a censored row is a lower bound.
std::vector<double> metric_values(const Dataset& dataset, std::string_view metric);

// The scale of the values of rows that ran to the end. Errors: kInvalidArgument for none.
Result<ValueScale> fit_scale(const Dataset& dataset, const MetricInfo& info);

// Rows without the metric, or without one of `only_with`, are left out; failed ones stay. Only of
// the time itself, whose column is the same to the bit, censored and interleaved rows stay what
// they are: of other metrics a run that was stopped says nothing. `rows`, unless null, gets the row
// of `dataset` behind each row of the view.
Dataset metric_view(const Dataset& dataset, std::string_view metric, const ValueScale& scale,
                    std::span<const MetricInfo> only_with = {},
                    std::vector<RowIndex>* rows = nullptr);

// The configs that somebody runs who does not tune, best first.
using DefaultConfigs = std::function<std::vector<Config>(const Problem&)>;

// Judges of the rows of a data set: one for all problems or, where a bound is relative to the
// baseline, one for each, whose baseline is what was measured of its default config.
class DatasetJudge {
 public:
  // Errors: those of Judge::create(); kInvalidArgument for relative bounds without
  // `default_configs`, and when none of them was measured on any problem.
  static Result<DatasetJudge> create(const Dataset& dataset, const Objective& objective,
                                     const DefaultConfigs& default_configs);
  // Without its baseline a problem has none: nullptr.
  [[nodiscard]] const Judge* of(std::uint32_t problem) const {
    const std::int64_t place = place_of_problem_[problem];
    return place < 0 ? nullptr : &judges_[static_cast<std::size_t>(place)];
  }
  [[nodiscard]] const Objective& objective() const { return judges_.front().objective(); }
  // Targets first.
  [[nodiscard]] std::span<const MetricInfo> metrics() const { return judges_.front().metrics(); }

 private:
  std::vector<Judge> judges_;
  std::vector<std::int64_t> place_of_problem_;
};

// The values of the judge's metrics that every (problem, config) of the data set has: the median
// over its rows that ran to the end, or of censored ones the time's bound. Looked up row by row.
class JudgedRows {
 public:
  JudgedRows(const Dataset& dataset, const DatasetJudge& judge);
  // In the order of judge.metrics(); NaN for what is missing.
  [[nodiscard]] std::span<const double> values(RowIndex row) const {
    return std::span(values_).subspan(group_of_row_[row] * width_, width_);
  }
  // Infinite violation without a judge.
  [[nodiscard]] Judgement judge(RowIndex row) const;
  // "misses pack_ns <= 2000 ns", "pack_ns was not measured"; empty for a row that keeps all bounds.
  [[nodiscard]] std::string why_not(RowIndex row) const;

 private:
  const Dataset& dataset_;
  const DatasetJudge& judge_;
  std::size_t width_;
  std::vector<std::size_t> group_of_row_;
  std::vector<double> values_;
};

// The metric_view() of an objective's only target, in which rows that miss a bound are refused
// (kUnsupported, with the reason), so that the best is the best of those that keep all, and a pick
// that misses one counts as a failed pick. Errors: kInvalidArgument for a Pareto objective.
Result<Dataset> objective_view(const Dataset& dataset, const DatasetJudge& judge,
                               const ValueScale& scale);

}  // namespace foretune
