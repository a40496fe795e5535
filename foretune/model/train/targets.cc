#include "foretune/model/train/targets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "foretune/problem/problem_type.h"

namespace foretune {
namespace {

struct TargetName {
  Target target;
  std::string_view name;
};
constexpr std::array<TargetName, 5> kTargets{{{Target::kRelativeLog, "relative-log"},
                                              {Target::kLog, "log"},
                                              {Target::kTflops, "tflops"},
                                              {Target::kLatency, "latency"},
                                              {Target::kBandwidth, "bandwidth"}}};
constexpr std::array<std::string_view, 4> kObjectives{"regression", "lambdarank", "regret", "auto"};

}  // namespace

std::string_view to_string(Target target) {
  return kTargets.at(static_cast<std::size_t>(target)).name;
}

std::optional<Target> parse_target(std::string_view name) {
  for (const TargetName& entry : kTargets) {
    if (entry.name == name) {
      return entry.target;
    }
  }
  return std::nullopt;
}

std::string_view to_string(TrainObjective objective) {
  return kObjectives.at(static_cast<std::size_t>(objective));
}

std::optional<TrainObjective> parse_objective(std::string_view name) {
  for (std::size_t i = 0; i < kObjectives.size(); ++i) {
    if (kObjectives.at(i) == name) {
      return static_cast<TrainObjective>(i);
    }
  }
  return std::nullopt;
}

namespace train_internal {
namespace {

double value_of(Target target, const ProblemWork& work, double time_ns) {
  switch (target) {
    case Target::kTflops:
      return work.flops / time_ns * 1e-3;
    case Target::kBandwidth:
      return work.bytes / time_ns;
    default:
      return time_ns * 1e-6;
  }
}

}  // namespace

Result<Learned> learned_values(const Dataset& dataset, const TrainingSet& set, Target target,
                               bool log_transform) {
  Learned out;
  out.target = target;
  if (target == Target::kRelativeLog || target == Target::kLog) {
    out.value = target == Target::kLog ? set.log_time : set.relative;
    return out;
  }
  out.log1p = log_transform;
  out.larger_is_better = target != Target::kLatency;
  out.value.reserve(set.size());
  for (std::size_t i = 0; i < set.size(); ++i) {
    const std::optional<ProblemWork> work = problem_work(dataset.problems()[set.problem[i]]);
    if (!work && target != Target::kLatency) {
      return fail(ErrorCode::kUnsupported, "nothing says how many operations and bytes ",
                  dataset.problems()[set.problem[i]].shown_text(), " takes, so there is no ",
                  to_string(target), " to learn");
    }
    const double value = value_of(target, work.value_or(ProblemWork{}),
                                  static_cast<double>(dataset.rows()[set.row[i]].time_ns));
    out.value.push_back(static_cast<float>(log_transform ? std::log1p(value) : value));
  }
  return out;
}

double score_sign(const Learned& learned, TrainObjective objective) {
  return learned.larger_is_better || objective == TrainObjective::kLambdaRank ? -1 : 1;
}

bool predicts_log_time(const Learned& learned, TrainObjective objective) {
  const bool is_log_time = learned.target == Target::kRelativeLog || learned.target == Target::kLog;
  return is_log_time && objective != TrainObjective::kLambdaRank;
}

double score_factor(const TrainingSet& set, const Learned& learned, TrainObjective objective,
                    std::span<const double> predictions) {
  if (predicts_log_time(learned, objective)) {
    return 1;
  }
  struct Sums {
    double rows = 0;
    double x = 0;
    double y = 0;
  };
  const auto counts = [&](std::size_t i) {
    return !set.censored[i] && std::isfinite(predictions[i]);
  };
  std::vector<Sums> of_problem;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (counts(i)) {
      of_problem.resize(std::max<std::size_t>(of_problem.size(), set.problem[i] + 1U));
      Sums& sums = of_problem[set.problem[i]];
      sums.rows += 1;
      sums.x += predictions[i];
      sums.y += static_cast<double>(set.log_time[i]);
    }
  }
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (counts(i)) {
      const Sums& sums = of_problem[set.problem[i]];
      const double x = predictions[i] - sums.x / sums.rows;
      products += x * (static_cast<double>(set.log_time[i]) - sums.y / sums.rows);
      squares += x * x;
    }
  }
  const double sign = score_sign(learned, objective);
  const double slope = squares > 0 ? products / squares : 0;
  // A slope of the other sign would turn the order that was learned around.
  return std::isfinite(slope) && slope * sign > 0 ? slope : sign;
}

}  // namespace train_internal
}  // namespace foretune
