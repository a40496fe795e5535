// The predicted front of a Pareto objective.
#include <algorithm>
#include <cmath>
#include <utility>

#include "foretune/evaluate/internal/packing.h"
#include "foretune/evaluate/prediction.h"
#include "foretune/metrics/pareto.h"
#include "foretune/model/objective_scorer.h"

namespace foretune {
namespace {

// Legal candidates with what is predicted of them, as the objective sees it.
struct Judged {
  std::vector<std::size_t> feasible;  // positions in the ranking
  std::vector<double> points;         // of those, targets in z: ratios count, not units
};

std::vector<std::size_t> places_of(const Judge& judge, std::span<const ScoreColumn> columns) {
  std::vector<std::size_t> out;
  for (const MetricInfo& metric : judge.metrics()) {
    out.push_back(*column_of(columns, metric.name));
  }
  return out;
}

Judged judge_all(const Judge& judge, std::span<const std::size_t> places,
                 const std::vector<std::vector<PredictedMetric>>& predicted) {
  Judged out;
  const bool is_bounded = !judge.objective().bounds.empty();
  const std::size_t targets = judge.objective().targets.size();
  std::vector<double> values(places.size());
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    for (std::size_t m = 0; m < places.size(); ++m) {
      values[m] = predicted[i][places[m]].value;
    }
    if (is_bounded && !judge.judge(std::span<const double>(values)).is_feasible()) {
      continue;
    }
    out.feasible.push_back(i);
    for (std::size_t t = 0; t < targets; ++t) {
      out.points.push_back(predicted[i][places[t]].z);
    }
  }
  return out;
}

}  // namespace

Result<Prediction> predict_front(const Selector& selector, const Problem& problem,
                                 const Objective& objective, const PredictOptions& options) {
  FORETUNE_TRY(const Judge judge, judge_of(objective, selector.columns()));
  FORETUNE_TRY(Prediction out, predict(selector, problem, {.top = 0, .explain = false}));
  out.objective = objective.text();
  // No single time, margin or chance says which config is better by several targets.
  out.is_absolute = false;
  out.has_rates = false;
  out.margin = PredictedConfig::kUnknown;
  out.confidence = PredictedConfig::kUnknown;
  const std::vector<RankedCandidate> ranked = selector.rank(problem);
  std::vector<std::uint32_t> candidates;
  for (const RankedCandidate& entry : ranked) {
    candidates.push_back(entry.candidate);
  }
  std::vector<std::vector<PredictedMetric>> predicted =
      selector.predict_metrics(problem, candidates);
  const std::vector<std::size_t> places = places_of(judge, selector.columns());
  const Judged judged = judge_all(judge, places, predicted);
  const PointSet points{judged.points, objective.targets.size()};
  out.feasible = judged.feasible.size();
  out.target = selector.columns()[places[0]];
  std::vector<std::size_t> front = pareto_front(points);
  out.front = front.size();
  const std::optional<std::size_t> middle = knee(points);
  if (middle && out.choice.reason != AbstainReason::kOutsideTraining) {
    out.choice = {.has_candidate = true, .candidate = candidates[judged.feasible[*middle]]};
    out.choice_text = selector.describe(out.choice.candidate, problem);
    out.reason.clear();
  } else if (!middle && out.choice.picked()) {
    out.choice = {.reason = AbstainReason::kNoFeasibleConfig};
    out.reason = std::string(to_string(out.choice.reason));
  }
  if (front.size() > options.top) {
    front = take_best(points, options.top);
  }
  std::sort(front.begin(), front.end(),
            [&](std::size_t a, std::size_t b) { return points[a][0] < points[b][0]; });
  for (const std::size_t point : front) {
    const std::size_t at = judged.feasible[point];
    PredictedConfig& entry = out.ranked.emplace_back();
    entry.candidate = candidates[at];
    entry.config = selector.describe(entry.candidate, problem);
    entry.score = predicted[at][places[0]].z;
    entry.slower = std::expm1(entry.score - points[front.front()][0]);
    entry.metrics = predicted[at];
  }
  evaluate_internal::add_packing(predicted, out);
  return out;
}

}  // namespace foretune
