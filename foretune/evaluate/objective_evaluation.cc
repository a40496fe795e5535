#include "foretune/evaluate/objective_evaluation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/metrics/pareto.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/objective_scorer.h"

namespace foretune {
namespace {

std::uint64_t key_of(std::uint32_t problem, std::uint32_t config) {
  return (std::uint64_t{problem} << 32U) | config;
}

bool ran_to_the_end(const Dataset::Row& row) { return row.outcome == Outcome::kOk; }

Status check_predicts(std::span<const ScoreColumn> columns, const Objective& objective) {
  std::vector<std::string> names;
  for (const ScoreColumn& column : columns) {
    names.push_back(column.metric.name);
  }
  for (const std::string& metric : objective.metrics()) {
    if (std::find(names.begin(), names.end(), metric) == names.end()) {
      return fail(ErrorCode::kNotFound, "the model predicts ", join(names, ", "), " and no ",
                  metric);
    }
  }
  return {};
}

// One problem's measured configs and what is known and predicted of them.
class Front {
 public:
  Front(const Model& model, const Scorer& scorer, const Dataset& dataset, const DatasetJudge& judge,
        const JudgedRows& rows)
      : model_(model),
        scorer_(scorer),
        dataset_(dataset),
        judge_(judge),
        rows_(rows),
        targets_(judge.objective().targets.size()) {
    for (const MetricInfo& metric : judge.metrics()) {
      places_.push_back(*column_of(scorer.columns(), metric.name));
    }
  }

  // Nothing where no measured config keeps the bounds.
  Result<std::optional<FrontProblem>> judge(std::uint32_t problem, std::span<const RowIndex> rows) {
    take_measured(problem, rows);
    FrontProblem out{.problem = dataset_.problems()[problem].text(), .measured = configs_.size()};
    std::vector<std::size_t> feasible;
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      if (is_feasible_[i]) {
        feasible.push_back(i);
      }
    }
    if (feasible.empty()) {
      return std::optional<FrontProblem>();
    }
    FORETUNE_TRY(const std::vector<std::size_t> predicted, predicted_front(problem));
    const std::vector<double> reference = worst_point();
    const std::vector<double> all = points_of(feasible);
    std::vector<std::size_t> kept;
    for (const std::size_t i : predicted) {
      if (is_feasible_[i]) {
        kept.push_back(i);
      }
    }
    const std::vector<double> own = points_of(kept);
    out.front = pareto_front({all, targets_}).size();
    out.predicted = predicted.size();
    out.missed = predicted.size() - kept.size();
    const double volume = hypervolume({all, targets_}, reference);
    out.volume_share = kept.empty() ? 0 : hypervolume({own, targets_}, reference) / volume;
    return std::optional(std::move(out));
  }

 private:
  void take_measured(std::uint32_t problem, std::span<const RowIndex> rows) {
    configs_.clear();
    is_feasible_.clear();
    points_.clear();
    const Judge* const judge = judge_.of(problem);
    std::unordered_set<std::uint32_t> seen;
    const std::uint64_t schema = model_.config_schema.id();
    for (const RowIndex row : rows) {
      const Dataset::Row& measured = dataset_.rows()[row];
      if (judge == nullptr || !ran_to_the_end(measured) ||
          dataset_.configs()[measured.config].schema != schema) {
        continue;
      }
      const Judgement judgement = rows_.judge(row);
      if (!judgement.has_targets() || !seen.insert(measured.config).second) {
        continue;
      }
      configs_.push_back(measured.config);
      is_feasible_.push_back(judgement.is_feasible());
      for (std::size_t t = 0; t < targets_; ++t) {
        points_.push_back(scorer_.columns()[places_[t]].scale.to_z(rows_.values(row)[t]));
      }
    }
  }

  // Behind all measured points, so that the ends of a front count.
  [[nodiscard]] std::vector<double> worst_point() const {
    constexpr double kMargin = 0.1;
    std::vector<double> out;
    for (std::size_t t = 0; t < targets_; ++t) {
      double low = points_[t];
      double high = points_[t];
      for (std::size_t i = 0; i < configs_.size(); ++i) {
        low = std::min(low, points_[i * targets_ + t]);
        high = std::max(high, points_[i * targets_ + t]);
      }
      out.push_back(high + (high > low ? kMargin * (high - low) : kMargin));
    }
    return out;
  }

  [[nodiscard]] std::vector<double> points_of(std::span<const std::size_t> chosen) const {
    std::vector<double> out;
    for (const std::size_t i : chosen) {
      for (std::size_t t = 0; t < targets_; ++t) {
        out.push_back(points_[i * targets_ + t]);
      }
    }
    return out;
  }

  // Where nothing is predicted to keep the bounds, what misses them least.
  Result<std::vector<std::size_t>> predicted_front(std::uint32_t problem) {
    ConfigList list(model_.config_schema);
    for (const std::uint32_t config : configs_) {
      list.add(dataset_.configs()[config].words.view());
    }
    const Hardware& hardware = seen_hardware(model_, dataset_, dataset_.problems()[problem]);
    FORETUNE_TRY(const std::unique_ptr<PreparedPool> pool, scorer_.prepare(list, hardware));
    std::vector<std::byte> workspace(pool->workspace_bytes());
    const std::size_t size = configs_.size();
    std::vector<double> scores(pool->column_count() * size);
    pool->score_columns(dataset_.problems()[problem], workspace, scores, {});
    const Judge& judge = *judge_.of(problem);
    std::vector<std::size_t> feasible;
    std::vector<double> points;
    std::vector<double> values(places_.size());
    std::pair<double, std::size_t> nearest{kInfeasibleScore, 0};
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t m = 0; m < places_.size(); ++m) {
        values[m] = scorer_.columns()[places_[m]].scale.to_value(scores[places_[m] * size + i]);
      }
      const Judgement judgement = judge.judge(std::span<const double>(values));
      nearest = std::min(nearest, {judgement.violation, i});
      if (!judge.objective().bounds.empty() && !judgement.is_feasible()) {
        continue;
      }
      feasible.push_back(i);
      for (std::size_t t = 0; t < targets_; ++t) {
        points.push_back(scores[places_[t] * size + i]);
      }
    }
    if (feasible.empty()) {
      return std::vector<std::size_t>{nearest.second};
    }
    std::vector<std::size_t> front = pareto_front({points, targets_});
    for (std::size_t& place : front) {
      place = feasible[place];
    }
    return front;
  }

  const Model& model_;
  const Scorer& scorer_;
  const Dataset& dataset_;
  const DatasetJudge& judge_;
  const JudgedRows& rows_;
  std::size_t targets_;
  std::vector<std::size_t> places_;     // of the judge's metrics among the columns
  std::vector<std::uint32_t> configs_;  // measured of one problem
  std::vector<bool> is_feasible_;
  std::vector<double> points_;
};

void summarise_fronts(FrontEvaluation& fronts) {
  std::vector<double> shares;
  fronts.predicted = 0;
  fronts.missed = 0;
  for (const FrontProblem& problem : fronts.problems) {
    shares.push_back(problem.volume_share);
    fronts.predicted += problem.predicted;
    fronts.missed += problem.missed;
  }
  fronts.mean_share = mean(shares);
  fronts.p10_share = quantile(shares, 0.1);
  fronts.min_share = quantile(shares, 0);
}

}  // namespace

void describe_objective(const Dataset& dataset, const DatasetJudge& judge, const ValueScale& scale,
                        Evaluation& evaluation) {
  const JudgedRows rows(dataset, judge);
  std::unordered_set<std::uint64_t> missing;
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    const Dataset::Row& row = dataset.rows()[i];
    const double violation = ran_to_the_end(row) ? rows.judge(i).violation : 0;
    if (violation > 0 && std::isfinite(violation)) {
      missing.insert(key_of(row.problem, row.config));
    }
  }
  evaluation.objective = judge.objective().text();
  std::unordered_map<std::string, std::uint32_t> configs;
  for (std::uint32_t c = 0; c < dataset.configs().size(); ++c) {
    configs.emplace(to_text(dataset.header().config_schema, dataset.configs()[c]), c);
  }
  for (std::size_t i = 0; i < evaluation.picks.size(); ++i) {
    const auto found = configs.find(evaluation.picks[i].pick);
    if (found != configs.end() &&
        missing.contains(key_of(evaluation.model.problem_ids[i], found->second))) {
      ++evaluation.missed_bounds;
    }
  }
  evaluation.facts.insert(evaluation.facts.begin(), {"objective", evaluation.objective});
  const MetricInfo& target = judge.metrics().front();
  if (target.name != kTimeNs) {
    evaluation.facts.insert(
        evaluation.facts.begin() + 1,
        {"times", concat("stand for exp(z) of ", target.name, ", z = ", scale.text())});
  }
  if (!judge.objective().bounds.empty()) {
    evaluation.facts.insert(
        evaluation.facts.begin() + 1,
        {"missed bound",
         concat(evaluation.missed_bounds, " of ", evaluation.model.problems, " picks (",
                fixed(100 * static_cast<double>(evaluation.missed_bounds) /
                          static_cast<double>(evaluation.model.problems),
                      1),
                " %)")});
  }
}

Result<Evaluation> evaluate_objective(const Model& model, const Dataset& dataset,
                                      const Objective& objective, EvaluateOptions options) {
  const std::vector<ScoreColumn> columns = columns_of(model);
  FORETUNE_TRY_STATUS(check_predicts(columns, objective));
  FORETUNE_TRY(const DatasetJudge judge,
               DatasetJudge::create(dataset, objective, options.default_configs));
  const std::size_t target = *column_of(columns, judge.metrics().front().name);
  const ValueScale& scale = columns[target].scale;
  FORETUNE_TRY(const Dataset view, objective_view(dataset, judge, scale));
  const std::vector<double> oracles = oracle_times_ns(view);
  if (std::none_of(oracles.begin(), oracles.end(), [](double best) { return best > 0; })) {
    return fail(ErrorCode::kInvalidArgument,
                "no problem of the data set has a measured config that keeps the bounds of '",
                objective.text(), "'");
  }
  std::optional<Dataset> training;
  if (options.training != nullptr) {
    FORETUNE_TRY(const DatasetJudge of_training,
                 DatasetJudge::create(*options.training, objective, options.default_configs));
    FORETUNE_TRY(training, objective_view(*options.training, of_training, scale));
    options.training = &*training;
  }
  FORETUNE_TRY(const std::vector<RankedProblem> ranked, rank_with_model(model, view, &judge));
  const Model& scored = column_model(model, target);
  FORETUNE_TRY(Evaluation out, evaluate(view, ranked, &scored, options));
  describe_objective(dataset, judge, scale, out);
  return out;
}

Result<FrontEvaluation> evaluate_fronts(const Model& model, const Dataset& dataset,
                                        const Objective& objective,
                                        const DefaultConfigs& default_configs) {
  if (!objective.is_pareto()) {
    return fail(ErrorCode::kInvalidArgument, "'", objective.text(), "' has no front");
  }
  if (dataset.header().config_schema != model.config_schema ||
      dataset.header().family != model.family) {
    return fail(ErrorCode::kMismatch, "the model is not for the configs of the data set");
  }
  FORETUNE_TRY(const std::unique_ptr<Scorer> scorer, make_scorer(model));
  FORETUNE_TRY_STATUS(check_predicts(scorer->columns(), objective));
  FORETUNE_TRY(const DatasetJudge judge, DatasetJudge::create(dataset, objective, default_configs));
  const JudgedRows rows(dataset, judge);
  Front front(model, *scorer, dataset, judge, rows);
  FrontEvaluation out;
  out.objective = objective.text();
  const std::vector<std::vector<RowIndex>> by_problem = dataset.rows_by_problem();
  for (std::uint32_t problem = 0; problem < by_problem.size(); ++problem) {
    FORETUNE_TRY(std::optional<FrontProblem> judged, front.judge(problem, by_problem[problem]));
    if (judged) {
      out.problems.push_back(*std::move(judged));
    } else {
      ++out.skipped_problems;
    }
  }
  if (out.problems.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "no problem of the data set has a measured config with all targets that keeps the "
                "bounds");
  }
  summarise_fronts(out);
  return out;
}

FrontEvaluation merged(std::vector<FrontEvaluation> parts) {
  FrontEvaluation out;
  for (FrontEvaluation& part : parts) {
    out.objective = part.objective;
    out.skipped_problems += part.skipped_problems;
    std::move(part.problems.begin(), part.problems.end(), std::back_inserter(out.problems));
  }
  if (!out.problems.empty()) {
    summarise_fronts(out);
  }
  return out;
}

std::vector<PickedProblem> front_picks(const FrontEvaluation& fronts) {
  std::vector<PickedProblem> out;
  for (const FrontProblem& problem : fronts.problems) {
    // All have the same measured front to be judged by.
    out.push_back(
        {problem.problem, concat(problem.predicted, " configs"), 1, problem.volume_share});
  }
  return out;
}

}  // namespace foretune
