#include "foretune/model/objective_scorer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/model/pool_columns.h"

namespace foretune {
namespace {

constexpr std::size_t kMaxJudged = 32;

Status check_named(const Objective& objective, std::span<const ScoreColumn> columns) {
  std::vector<std::string> names;
  for (const ScoreColumn& column : columns) {
    names.push_back(column.metric.name);
  }
  for (const std::string& metric : objective.metrics()) {
    if (!column_of(columns, metric)) {
      return fail(ErrorCode::kNotFound, "the model predicts ", join(names, ", "), " and no ",
                  metric, ": foretune train --metrics makes one that does");
    }
  }
  return {};
}

Status check_absolute(const Objective& objective, std::span<const ScoreColumn> columns) {
  for (const MetricBound& bound : objective.bounds) {
    if (!columns[*column_of(columns, bound.metric)].is_absolute) {
      return fail(ErrorCode::kUnsupported, "the model predicts ", bound.metric,
                  " up to a factor only, so it knows no bound of it: foretune train --metrics ",
                  bound.metric, " makes one that does");
    }
  }
  return {};
}

// Where the judge's metrics stand among the columns, the target first.
struct Judged {
  std::size_t column = 0;
  ValueScale scale;
};

class ObjectivePool final : public PreparedPool {
 public:
  ObjectivePool(std::shared_ptr<const PreparedPool> pool, std::vector<Judged> judged, Judge judge)
      : pool_(std::move(pool)), judged_(std::move(judged)), judge_(std::move(judge)) {}

  std::size_t size() const override { return pool_->size(); }
  // A column for each bounded metric, then what the pool needs.
  std::size_t workspace_bytes() const override {
    return kPoolAlignment + (judged_.size() - 1) * column_bytes() + pool_->workspace_bytes();
  }

  void score(const Problem& problem, std::span<std::byte> workspace, std::span<double> scores,
             std::span<double> uncertainty) const noexcept override {
    FORETUNE_CHECK(workspace.size() >= workspace_bytes() && scores.size() == size());
    const std::size_t own = (judged_.size() - 1) * column_bytes();
    auto* base = pool_base(workspace, own);
    const std::span rest(base + own, pool_->workspace_bytes());
    std::array<const double*, kMaxJudged> columns{};
    columns[0] = scores.data();
    for (std::size_t m = 1; m < judged_.size(); ++m) {
      const std::span column(reinterpret_cast<double*>(base + (m - 1) * column_bytes()), size());
      pool_->score_column(judged_[m].column, problem, rest, column, {});
      columns[m] = column.data();
    }
    pool_->score_column(judged_[0].column, problem, rest, scores, uncertainty);
    if (!judge_.objective().bounds.empty()) {
      add_violations(std::span(columns).first(judged_.size()), scores);
    }
  }

 private:
  std::size_t column_bytes() const { return pool_aligned(size() * sizeof(double)); }

  void add_violations(std::span<const double* const> columns,
                      std::span<double> scores) const noexcept {
    constexpr double kMaxViolation = 1e12;
    constexpr double kLargestZ = 0.5 * kInfeasibleScore;
    std::array<double, kMaxJudged> values{};
    for (std::size_t i = 0; i < scores.size(); ++i) {
      for (std::size_t m = 0; m < columns.size(); ++m) {
        values[m] = judged_[m].scale.to_value(columns[m][i]);
      }
      const Judgement judgement =
          judge_.judge(std::span<const double>(values).first(columns.size()));
      if (judgement.is_feasible()) {
        scores[i] = std::min(scores[i], kLargestZ);
      } else {
        const double violation = std::min(judgement.violation, kMaxViolation);
        scores[i] = kInfeasibleScore * (1 + (violation >= 0 ? violation : kMaxViolation));
      }
    }
  }

  std::shared_ptr<const PreparedPool> pool_;
  std::vector<Judged> judged_;
  Judge judge_;
};

}  // namespace

std::optional<std::size_t> column_of(std::span<const ScoreColumn> columns,
                                     std::string_view metric) {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const ScoreColumn& column) {
    return column.metric.name == metric;
  });
  return found == columns.end() ? std::nullopt
                                : std::optional(static_cast<std::size_t>(found - columns.begin()));
}

Result<Judge> judge_of(const Objective& objective, std::span<const ScoreColumn> columns) {
  FORETUNE_TRY_STATUS(check_named(objective, columns));
  FORETUNE_TRY_STATUS(check_absolute(objective, columns));
  std::vector<MetricInfo> infos;
  for (const ScoreColumn& column : columns) {
    infos.push_back(column.metric);
  }
  for (const MetricBound& bound : objective.bounds) {
    for (const BoundValue* value : {&bound.bound, bound.keep ? &*bound.keep : &bound.bound}) {
      if (value->kind != BoundValue::Kind::kAbsolute) {
        return fail(ErrorCode::kInvalidArgument, "the bound of ", bound.metric,
                    " is relative to a baseline, of which a model alone knows nothing");
      }
    }
  }
  return Judge::create(objective, infos, {});
}

Status check_followed(const Judge& judge, std::span<const ScoreColumn> columns) {
  if (judge.objective().is_pareto()) {
    return fail(ErrorCode::kUnsupported, "'", judge.objective().text(),
                "' has several targets, so it puts configs in no single order; name one to "
                "minimise or maximise, and bounds for the others");
  }
  if (judge.metrics().size() > kMaxJudged) {
    return fail(ErrorCode::kUnsupported, "an objective of more than ", kMaxJudged, " metrics");
  }
  FORETUNE_TRY_STATUS(check_named(judge.objective(), columns));
  return check_absolute(judge.objective(), columns);
}

Result<std::unique_ptr<PreparedPool>> objective_pool(std::shared_ptr<const PreparedPool> pool,
                                                     std::span<const ScoreColumn> columns,
                                                     const Judge& judge) {
  FORETUNE_TRY_STATUS(check_followed(judge, columns));
  if (columns.size() != pool->column_count()) {
    return fail(ErrorCode::kInvalidArgument, "the pool has ", pool->column_count(),
                " columns instead of ", columns.size());
  }
  std::vector<Judged> judged;
  for (const MetricInfo& info : judge.metrics()) {
    const std::size_t column = *column_of(columns, info.name);
    judged.push_back({column, columns[column].scale});
  }
  return std::make_unique<ObjectivePool>(std::move(pool), std::move(judged), judge);
}

}  // namespace foretune
