// Describes single problems: predictions, the worst cases, the map.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/internal/diagnosis.h"
#include "foretune/problem/problem_type.h"

namespace foretune::evaluate_internal {
namespace {

// Streams of the evaluation's seed.
constexpr std::uint64_t kPointsStream = 1;

// Scores and logarithms of the times of one problem's candidates that have both.
struct Pairs {
  std::vector<double> scores;
  std::vector<double> logs;
  std::vector<double> times_ns;
};

// Orders pairs by config id, since the order of the ranking would break ties in the model's favour.
Pairs pairs_of(const MeasuredTimes& times, const RankedProblem& ranked) {
  Pairs out;
  std::vector<std::size_t> order(ranked.scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return ranked.configs[a] < ranked.configs[b]; });
  for (const std::size_t i : order) {
    const MeasuredCandidate* candidate = times.find(ranked.problem, ranked.configs[i]);
    if (candidate != nullptr && candidate->state == MeasuredState::kOk &&
        std::isfinite(ranked.scores[i])) {
      out.scores.push_back(ranked.scores[i]);
      out.logs.push_back(std::log(candidate->time_ns));
      out.times_ns.push_back(candidate->time_ns);
    }
  }
  return out;
}

// A uniform sample of a stream of unknown length (Vitter 1985, algorithm R).
class PointSample {
 public:
  explicit PointSample(std::uint64_t seed) : rng_(Rng(seed).split(kPointsStream)) {}
  void add(const PredictionPoint& point) {
    ++seen_;
    if (points_.size() < kMaxPoints) {
      points_.push_back(point);
    } else if (const std::uint64_t place = rng_.below(seen_); place < kMaxPoints) {
      points_[place] = point;
    }
  }
  std::vector<PredictionPoint> take() { return std::move(points_); }

 private:
  Rng rng_;
  std::uint64_t seen_ = 0;
  std::vector<PredictionPoint> points_;
};

WorstCase worst_case(const BaselineInput& input, const RankedProblem& ranked) {
  const Dataset& dataset = input.dataset;
  const ConfigSchema& schema = dataset.header().config_schema;
  const auto config_text = [&](std::uint32_t id) { return to_text(schema, dataset.configs()[id]); };
  WorstCase out;
  out.problem = dataset.problems()[ranked.problem].text();
  const MeasuredCandidate* pick =
      ranked.configs.empty() ? nullptr : input.times.find(ranked.problem, ranked.configs[0]);
  const Comparison comparison =
      pick == nullptr ? Comparison{} : input.times.compare(ranked.problem, *pick);
  out.pick = ranked.configs.empty() ? "none" : config_text(ranked.configs[0]);
  out.pick_ns = comparison.pick_ns;
  out.efficiency = comparison.efficiency;
  out.best_ns = pick == nullptr ? input.times.oracle_ns(ranked.problem) : comparison.best_ns;
  out.best = config_text(pick == nullptr ? input.times.oracle_config(ranked.problem)
                                         : comparison.best_config);
  for (const MeasuredCandidate& candidate : input.times.candidates(ranked.problem)) {
    out.candidates += candidate.state != MeasuredState::kRefused ? 1 : 0;
    if (pick != nullptr && pick->state == MeasuredState::kOk &&
        candidate.state == MeasuredState::kOk && candidate.time_ns < pick->time_ns) {
      ++out.rank;
    }
  }
  if (pick == nullptr) {
    out.note = ranked.configs.empty() ? "no pick" : "not measured";
  } else if (pick->state == MeasuredState::kOk) {
    ++out.rank;
  } else if (pick->state == MeasuredState::kBound) {
    out.note = "stopped early";
  } else {
    out.note =
        pick->outcome == Outcome::kOk ? "no valid time" : std::string(to_string(pick->outcome));
  }
  return out;
}

// Returns the two fields of the map: those that the type names, or else those with the most values.
std::pair<std::size_t, std::size_t> map_fields(const BaselineInput& input) {
  const ProblemType type = input.dataset.header().problem_type;
  const ProblemTypeInfo* info = find_problem_type(type);
  if (info != nullptr && info->map_fields[0] != info->map_fields[1]) {
    return {info->map_fields[0], info->map_fields[1]};
  }
  const ProblemSchema* schema = find_problem_schema(type);
  std::vector<std::pair<std::size_t, std::size_t>> fields;  // (minus the count of values, field)
  for (std::size_t field = 0; schema != nullptr && field < schema->fields.size(); ++field) {
    std::set<std::int64_t> values;
    for (const std::uint32_t id : input.evaluated) {
      values.insert(input.dataset.problems()[id].field(field));
    }
    if (schema->fields[field].labels.empty()) {
      fields.emplace_back(input.evaluated.size() - values.size(), field);
    }
  }
  std::sort(fields.begin(), fields.end());
  return fields.size() < 2 ? std::pair<std::size_t, std::size_t>{0, 0}
                           : std::pair{std::min(fields[0].second, fields[1].second),
                                       std::max(fields[0].second, fields[1].second)};
}

}  // namespace

void describe_predictions(const DiagnosisInput& diagnosis, Evaluation& out) {
  const Model* model = diagnosis.input.model;
  const bool is_absolute = model != nullptr && model->target == "log";
  const double stated = model == nullptr ? 0 : model->residual_std;
  std::vector<double> correlations;
  double within = 0;
  double within_twice = 0;
  double squares = 0;
  double absolute_squares = 0;
  std::size_t count = 0;
  PointSample sample(diagnosis.input.options.seed);
  CkMetricsBuilder ck;
  for (const RankedProblem* ranked : diagnosis.ranked) {
    const Pairs pairs = pairs_of(diagnosis.input.times, *ranked);
    if (pairs.scores.empty()) {
      continue;
    }
    const double correlation = spearman(pairs.scores, pairs.logs);
    if (!std::isnan(correlation)) {
      correlations.push_back(correlation);
    }
    const double constant = mean(pairs.logs) - mean(pairs.scores);
    std::vector<double> predicted_logs;
    for (std::size_t i = 0; i < pairs.scores.size(); ++i) {
      const double error = pairs.scores[i] - pairs.logs[i];
      absolute_squares += error * error;
      squares += (error + constant) * (error + constant);
      const double size = std::fabs(is_absolute ? error : error + constant);
      within += size <= stated ? 1 : 0;
      within_twice += size <= 2 * stated ? 1 : 0;
      const double predicted = pairs.scores[i] + (is_absolute ? 0 : constant);
      sample.add({static_cast<float>(predicted), static_cast<float>(pairs.logs[i])});
      predicted_logs.push_back(predicted);
    }
    const auto work = problem_work(diagnosis.input.dataset.problems()[ranked->problem]);
    ck.add(pairs.times_ns, predicted_logs, work ? work->flops : 0);
    count += pairs.scores.size();
  }
  const auto divisor = static_cast<double>(count);
  out.rmse_log = count == 0 ? kNotANumber : std::sqrt(squares / divisor);
  out.rmse_log_absolute =
      count == 0 || !is_absolute ? kNotANumber : std::sqrt(absolute_squares / divisor);
  out.within_stated_error = count == 0 || !(stated > 0) ? kNotANumber : within / divisor;
  out.within_twice_stated_error =
      count == 0 || !(stated > 0) ? kNotANumber : within_twice / divisor;
  out.spearman_mean = correlations.empty() ? kNotANumber : mean(correlations);
  out.spearman_median = correlations.empty() ? kNotANumber : median(correlations);
  out.points = sample.take();
  out.ck = ck.take();
}

void describe_problems(const DiagnosisInput& diagnosis, Evaluation& out) {
  const BaselineInput& input = diagnosis.input;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < out.model.efficiency.size(); ++i) {
    if (out.model.efficiency[i] < 1) {
      order.push_back(i);
    }
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(out.model.efficiency[a], a) < std::pair(out.model.efficiency[b], b);
  });
  for (std::size_t i = 0; i < std::min(order.size(), input.options.top_n_worst); ++i) {
    out.worst.push_back(worst_case(input, *diagnosis.ranked[order[i]]));
  }
  for (std::size_t i = 0; i < out.model.problem_ids.size(); ++i) {
    const std::uint32_t id = out.model.problem_ids[i];
    const std::vector<std::uint32_t>& configs = diagnosis.ranked[i]->configs;
    out.picks.push_back({input.dataset.problems()[id].text(),
                         configs.empty() ? ""
                                         : to_text(input.dataset.header().config_schema,
                                                   input.dataset.configs()[configs.front()]),
                         input.times.oracle_ns(id), out.model.efficiency[i]});
  }
  const auto [x, y] = map_fields(input);
  const ProblemSchema* schema = find_problem_schema(input.dataset.header().problem_type);
  if (schema == nullptr || x == y) {
    return;
  }
  out.map_x = schema->fields[x].name;
  out.map_y = schema->fields[y].name;
  for (std::size_t i = 0; i < out.model.problem_ids.size(); ++i) {
    const Problem& problem = input.dataset.problems()[out.model.problem_ids[i]];
    out.map.push_back({problem.text(), static_cast<double>(problem.field(x)),
                       static_cast<double>(problem.field(y)),
                       input.times.oracle_ns(out.model.problem_ids[i]), out.model.efficiency[i]});
  }
}

}  // namespace foretune::evaluate_internal
