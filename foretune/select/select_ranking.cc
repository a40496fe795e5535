// Rankings, predicted values and reasons: the answers of selectors to people and tools.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/significant.h"
#include "foretune/base/text.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/objective_scorer.h"
#include "foretune/model/training_range.h"
#include "foretune/select/internal/selector_state.h"

namespace foretune {
namespace {

// The first feature out of its range.
std::string explain_range(const Model& model, const FeatureTable& table, const Problem& problem) {
  const std::vector<OutsideRange> outside = outside_ranges(model, table, problem);
  if (outside.empty()) {
    return {};
  }
  const OutsideRange& first = outside.front();
  return concat(first.feature, "=", fixed(first.value, 2), " lies outside of ", fixed(first.low, 2),
                " to ", fixed(first.high, 2), ", the range in training");
}

// The bound that the nearest candidate is predicted to miss by most.
std::string explain_bound(const Selector& selector, const Judge& judge, const Problem& problem,
                          const Choice& choice) {
  const std::vector<std::vector<PredictedMetric>> predicted =
      selector.predict_metrics(problem, std::span(&choice.candidate, 1));
  std::string out;
  double largest = 0;
  const std::vector<MetricBound>& bounds = judge.objective().bounds;
  for (std::size_t b = 0; b < bounds.size() && !predicted.empty(); ++b) {
    for (std::size_t c = 0; c < selector.columns().size(); ++c) {
      const MetricInfo& metric = selector.columns()[c].metric;
      if (metric.name != bounds[b].metric) {
        continue;
      }
      const double value = predicted.front()[c].value;
      const double limit = judge.limit(b);
      const double excess = bounds[b].is_upper ? value - limit : limit - value;
      const double relative = limit == 0 ? excess : excess / std::fabs(limit);
      if (relative > largest) {
        largest = relative;
        out = concat("of the nearest, ", metric.name, " is predicted to be ", significant(value, 4),
                     ", the bound is ", significant(limit, 4), metric.unit.empty() ? "" : " ",
                     metric.unit);
      }
    }
  }
  return out;
}

}  // namespace

Status Selector::State::follow(const Objective& objective) {
  FORETUNE_TRY(Judge judged, judge_of(objective, columns));
  FORETUNE_TRY_STATUS(check_followed(judged, columns));
  // The model's own order needs nothing more, and leaves its fast mode in force.
  const bool is_own = objective.bounds.empty() && objective.targets[0] == columns[0].metric.name;
  if (!is_own) {
    judge = std::move(judged);
  }
  return {};
}

std::string Selector::explain(const Problem& problem, const Choice& choice) const {
  const Model& model = state_->model;
  const std::string general(to_string(choice.reason));
  std::string detail;
  if (choice.reason == AbstainReason::kOutsideTraining && problem.type() == model.problem_type) {
    detail = model.domain ? model.domain->explain(problem.schema(), problem.fields())
                          : explain_range(model, *state_->table, problem);
  } else if (choice.reason == AbstainReason::kSmallMargin) {
    detail = concat("the runner-up is predicted to be ", fixed(100 * std::expm1(choice.margin), 2),
                    " % slower");
  } else if (choice.reason == AbstainReason::kNoFeasibleConfig) {
    detail = explain_bound(*this, *state_->judge, problem, choice);
  } else if (choice.reason == AbstainReason::kUnusableModel) {
    if (const Status prepared = prepare(); !prepared) {
      detail = prepared.error().message;
    }
  }
  return detail.empty() ? general
                        : concat(general.substr(0, general.size() - 1), ": ", detail, ".");
}

std::string Selector::describe(std::uint32_t candidate, const Problem& problem) const {
  const std::unique_ptr<Space> space = problem.type() == state_->model.problem_type
                                           ? state_->table->space(problem, state_->hardware())
                                           : nullptr;
  return space != nullptr ? space->describe(config(candidate)) : config_text(candidate);
}

std::vector<RankedCandidate> Selector::rank(const Problem& problem) const {
  std::vector<RankedCandidate> out;
  const State::Exact* const exact = state_->exact();
  if (exact == nullptr || problem.type() != state_->model.problem_type) {
    return out;
  }
  const WorkspacePool::Lease workspace = exact->workspaces->borrow();
  std::vector<double> scores(exact->scored.size());
  exact->pool->score(problem, workspace.bytes().subspan(exact->pool_offset), scores, {});
  // As in select(): all canonical ones before the rest, and of equal scores the earlier candidate.
  for (const State::Form form : {State::Form::kCanonical, State::Form::kAlone}) {
    const auto first = static_cast<std::ptrdiff_t>(out.size());
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const std::uint32_t candidate = exact->scored[i];
      if (state_->is_legal(candidate, problem) &&
          state_->form_of(*exact, candidate, problem).first == form) {
        out.push_back({.candidate = candidate, .score = scores[i]});
      }
    }
    std::stable_sort(out.begin() + first, out.end(),
                     [](const auto& a, const auto& b) { return a.score < b.score; });
  }
  return out;
}

std::vector<std::vector<PredictedMetric>> Selector::State::predict(
    const Exact& exact, const Problem& problem, std::span<const std::uint32_t> candidates) const {
  const std::size_t size = exact.scored.size();
  std::vector<double> scores(columns.size() * size);
  std::vector<double> uncertainty(scores.size());
  const WorkspacePool::Lease workspace = exact.workspaces->borrow();
  exact.columns->score_columns(problem, workspace.bytes().subspan(exact.pool_offset), scores,
                               uncertainty);
  constexpr double kStds = 1.96;
  std::vector<std::vector<PredictedMetric>> out;
  for (const std::uint32_t candidate : candidates) {
    std::vector<PredictedMetric>& of_candidate = out.emplace_back(columns.size());
    const auto found = std::lower_bound(exact.scored.begin(), exact.scored.end(), candidate);
    if (found == exact.scored.end() || *found != candidate) {
      continue;
    }
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::size_t at = c * size + static_cast<std::size_t>(found - exact.scored.begin());
      PredictedMetric& metric = of_candidate[c];
      metric.z = scores[at];
      metric.z_std = uncertainty[at];
      if (columns[c].is_absolute) {
        const ValueScale& scale = columns[c].scale;
        metric.value = scale.to_value(metric.z);
        const double low_z = scale.to_value(metric.z - kStds * metric.z_std);
        const double high_z = scale.to_value(metric.z + kStds * metric.z_std);
        metric.low = std::min(low_z, high_z);
        metric.high = std::max(low_z, high_z);
      }
    }
  }
  return out;
}

std::vector<std::vector<PredictedMetric>> Selector::predict_metrics(
    const Problem& problem, std::span<const std::uint32_t> candidates) const {
  const State::Exact* const exact = state_->exact();
  if (exact == nullptr || problem.type() != state_->model.problem_type) {
    return {};
  }
  return state_->predict(*exact, problem, candidates);
}

std::span<const ScoreColumn> Selector::columns() const { return state_->columns; }

const Judge* Selector::judge() const { return state_->judge ? &*state_->judge : nullptr; }

}  // namespace foretune
