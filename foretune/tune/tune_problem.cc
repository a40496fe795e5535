#include "foretune/tune/tune_problem.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

namespace foretune {
namespace {

// Share of a time budget that the search may use; the rest is for the final comparison.
constexpr double kSearchShare = 0.85;

class Tuning {
 public:
  Tuning(const Family& family, Measurer& measurer, JournalWriter* journal, const Problem& problem,
         const TuneOptions& options, const CollectHooks& hooks)
      : family_(family),
        measurer_(measurer),
        journal_(journal),
        problem_(problem),
        options_(options),
        hooks_(hooks),
        start_s_(hooks.now_s ? hooks.now_s() : 0) {}

  Result<TuneResult> run();

 private:
  Status search(Strategy& strategy, Rng& rng);
  Status measure(const Config& config, Strategy& strategy);
  Status compare_finalists(const std::vector<Config>& defaults);
  Status record(const Measurement& measurement);
  bool may_go_on();

  const Family& family_;
  Measurer& measurer_;
  JournalWriter* journal_;
  const Problem& problem_;
  const TuneOptions& options_;
  const CollectHooks& hooks_;
  double start_s_;
  TuneResult result_;
  std::vector<std::pair<double, Config>> known_;  // good times
  std::unordered_set<Config> tried_;
  std::string last_failure_;
};

bool Tuning::may_go_on() {
  if (hooks_.wants_stop()) {
    result_.stopped_by_request = true;
    return false;
  }
  const Budget& budget = options_.budget;
  return !(budget.measurements && result_.progress.measured >= *budget.measurements) &&
         !(budget.seconds && hooks_.now_s() - start_s_ >= kSearchShare * *budget.seconds);
}

Status Tuning::record(const Measurement& measurement) {
  CollectProgress& progress = result_.progress;
  FORETUNE_TRY_STATUS(progress.keep(measurement, journal_));
  if (hooks_.now_s) {
    progress.elapsed_s = hooks_.now_s() - start_s_;
  }
  if (hooks_.on_progress) {
    hooks_.on_progress(progress);
  }
  return {};
}

Status Tuning::measure(const Config& config, Strategy& strategy) {
  if (!tried_.insert(config).second) {
    return {};
  }
  CollectProgress& progress = result_.progress;
  const Measurement measurement =
      measurer_.measure({.problem = problem_, .config = config, .incumbent_ns = progress.best_ns});
  const MetricValue* const time = measurement.find(kTimeNs);
  Trial trial{.config = config};
  if (time != nullptr && measurement.outcome == Outcome::kOk) {
    trial.value = time->value;
    known_.emplace_back(time->value, config);
    progress.learn(time->value, config, family_.info().config_schema);
  } else if (time != nullptr && measurement.outcome == Outcome::kCensored) {
    trial.value = time->value;
    trial.censored = true;
  } else {
    last_failure_ = measurement.reason;
  }
  strategy.tell(std::span(&trial, 1));
  return record(measurement);
}

Status Tuning::search(Strategy& strategy, Rng& rng) {
  while (may_go_on()) {
    // One at a time: a strategy that learns should learn soon.
    const std::vector<Config> next = strategy.ask(1, rng);
    if (next.empty()) {
      result_.exhausted = true;
      return {};
    }
    FORETUNE_TRY_STATUS(measure(next.front(), strategy));
  }
  return {};
}

Status Tuning::compare_finalists(const std::vector<Config>& defaults) {
  std::sort(known_.begin(), known_.end());
  std::vector<Config> compared;
  for (const auto& [time, config] : known_) {
    if (compared.size() == static_cast<std::size_t>(std::max(1, options_.finalists))) {
      break;
    }
    compared.push_back(config);
  }
  const std::size_t finalists = compared.size();
  const Config* by_default = nullptr;
  if (!defaults.empty()) {
    const auto found = std::find(compared.begin(), compared.end(), defaults.front());
    by_default = &defaults.front();
    if (found == compared.end()) {
      compared.push_back(defaults.front());
    }
  }
  for (Measurement& measurement : measurer_.compare(problem_, compared, options_.rounds)) {
    measurement.context.fidelity = kReferenceFidelity;
    FORETUNE_TRY_STATUS(record(measurement));
    const MetricValue* const time = measurement.find(kTimeNs);
    if (time == nullptr || measurement.outcome != Outcome::kOk) {
      continue;
    }
    const TunedConfig tuned{
        .config = measurement.config, .time_ns = time->value, .spread = time->spread};
    if (by_default != nullptr && tuned.config == *by_default) {
      result_.by_default = tuned;
    }
    const auto end = compared.begin() + static_cast<std::ptrdiff_t>(finalists);
    if (std::find(compared.begin(), end, tuned.config) != end) {
      result_.finalists.push_back(tuned);
    }
  }
  std::stable_sort(
      result_.finalists.begin(), result_.finalists.end(),
      [](const TunedConfig& a, const TunedConfig& b) { return a.time_ns < b.time_ns; });
  return {};
}

Result<TuneResult> Tuning::run() {
  if (options_.budget.seconds && !hooks_.now_s) {
    return fail(ErrorCode::kInvalidArgument, "a time budget needs a clock");
  }
  FORETUNE_TRY(const std::unique_ptr<Space> space, family_.space(problem_));
  if (const EnumerableSpace* const listed = space->enumerable(); listed != nullptr) {
    result_.legal_configs = listed->count();
  }
  FORETUNE_TRY(const std::unique_ptr<Strategy> strategy,
               create_strategy(
                   options_.strategy, problem_, *space,
                   {.scorer = options_.scorer, .hardware = family_.info().fingerprint.hardware}));
  result_.progress.problem = problem_.text();
  result_.progress.problems_total = 1;
  // A stream for each problem: the order of a list of them changes nothing.
  Rng rng = Rng(options_.seed).split(problem_.hash());
  const std::vector<Config> defaults = family_.default_configs(problem_);
  for (const std::vector<Config>* configs : {&defaults, &options_.first}) {
    for (const Config& config : *configs) {
      if (space->why_not(config) && may_go_on()) {
        FORETUNE_TRY_STATUS(measure(space->canonical(config), *strategy));
      }
    }
  }
  FORETUNE_TRY_STATUS(search(*strategy, rng));
  if (known_.empty()) {
    return fail(ErrorCode::kUnsupported, "no config of ", result_.progress.measured,
                " measured ones gave a right result",
                last_failure_.empty() ? "" : "; the last one: ", last_failure_);
  }
  FORETUNE_TRY_STATUS(compare_finalists(defaults));
  if (result_.finalists.empty()) {
    return fail(ErrorCode::kUnsupported, "no finalist gave a right result a second time");
  }
  return std::move(result_);
}

}  // namespace

Result<TuneResult> tune_problem(const Family& family, Measurer& measurer, JournalWriter* journal,
                                const Problem& problem, const TuneOptions& options,
                                const CollectHooks& hooks) {
  return Tuning(family, measurer, journal, problem, options, hooks).run();
}

}  // namespace foretune
