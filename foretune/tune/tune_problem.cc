#include "foretune/tune/tune_problem.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_set>
#include <utility>

#include "foretune/base/significant.h"
#include "foretune/base/text.h"
#include "foretune/metrics/pareto.h"
#include "foretune/model/model_kind.h"
#include "foretune/model/proposer.h"
#include "foretune/tune/tree_guide.h"

namespace foretune {
namespace {

// Share of a time budget that the search may use; the rest is for the final comparison.
constexpr double kSearchShare = 0.85;

class Tuning {
 public:
  Tuning(const Family& family, Measurer& measurer, JournalWriter* journal, const Problem& problem,
         const TuneOptions& options, const CollectHooks& hooks, double search_share)
      : family_(family),
        measurer_(measurer),
        journal_(journal),
        problem_(problem),
        options_(options),
        hooks_(hooks),
        search_share_(search_share),
        start_s_(hooks.now_s ? hooks.now_s() : 0),
        only_time_(options.objective == Objective::time()) {}

  Result<TuneResult> run();
  Result<TuneResult> search_only();

 private:
  // Everything but the final comparison.
  Status search_space(const Space& space, std::vector<Config>& defaults);
  Result<std::unique_ptr<Strategy>> make_strategy(const Space& space);
  Status make_guide();
  Status make_proposer();
  void tell_defaults(Strategy& strategy) const;
  Status search(Strategy& strategy, Rng& rng);
  Status measure_first(const Space& space, std::span<const Config> configs, Strategy* strategy);
  Status measure(const Config& config);
  Status evaluate(TunedConfig& tuned);
  Status settle_objective(std::span<const Config> defaults);
  [[nodiscard]] Trial trial_of(const TunedConfig& tuned) const;
  [[nodiscard]] std::vector<std::size_t> chosen() const;
  [[nodiscard]] tl::unexpected<Error> nothing_feasible() const;
  Status compare_finalists(std::span<const Config> defaults);
  void describe_finalists(const Space& space);
  void order_finalists();
  Status record(const Measurement& measurement);
  bool may_go_on();
  void learn(const TunedConfig& tuned);

  const Family& family_;
  Measurer& measurer_;
  JournalWriter* journal_;
  const Problem& problem_;
  const TuneOptions& options_;
  const CollectHooks& hooks_;
  double search_share_;  // of a time budget
  double start_s_;
  bool only_time_;                      // nothing but the time counts
  std::vector<std::string> evaluated_;  // metrics of the objective that a later stage finds out
  TuneResult result_;
  std::optional<Trial> last_;  // of the config measured last
  std::unordered_set<Config> tried_;
  std::string last_failure_;
  std::unique_ptr<TreeGuide> guide_;          // of the strategy "guided"
  std::unique_ptr<ConfigProposer> proposer_;  // of the policy
};

bool Tuning::may_go_on() {
  if (hooks_.wants_stop()) {
    result_.stopped_by_request = true;
    return false;
  }
  const Budget& budget = options_.budget;
  return !(budget.measurements && result_.progress.measured >= *budget.measurements) &&
         !(budget.seconds && hooks_.now_s() - start_s_ >= search_share_ * *budget.seconds);
}

Status Tuning::record(const Measurement& measurement) {
  CollectProgress& progress = result_.progress;
  FORETUNE_TRY_STATUS(hooks_.may_keep());
  FORETUNE_TRY_STATUS(progress.keep(measurement, journal_));
  if (hooks_.now_s) {
    progress.elapsed_s = hooks_.now_s() - start_s_;
  }
  if (hooks_.on_progress) {
    hooks_.on_progress(progress);
  }
  return {};
}

TunedConfig tuned_of(const Measurement& measurement) {
  TunedConfig out{.config = measurement.config};
  out.values = measurement.metrics;
  if (const MetricValue* const time = measurement.find(kTimeNs)) {
    out.time_ns = time->value;
    out.spread = time->spread;
  }
  return out;
}

// Adds what a later stage finds out of a config that ran well.
Status Tuning::evaluate(TunedConfig& tuned) {
  const Measurement found =
      measurer_.measure({.problem = problem_, .config = tuned.config, .evaluate = evaluated_});
  if (found.outcome == Outcome::kOk) {
    tuned.values.insert(tuned.values.end(), found.metrics.begin(), found.metrics.end());
  } else {
    last_failure_ = found.reason;
  }
  return record(found);
}

// A trial without a value where the objective has none.
Trial Tuning::trial_of(const TunedConfig& tuned) const {
  Trial trial{.config = tuned.config};
  const Judgement& judgement = tuned.judgement;
  if (!judgement.has_targets()) {
    return trial;
  }
  trial.targets = judgement.targets;
  trial.feasible = judgement.is_feasible();
  trial.value =
      trial.feasible ? judgement.targets.view().front() : infeasible_value(judgement.violation);
  return trial;
}

void Tuning::learn(const TunedConfig& tuned) {
  CollectProgress& progress = result_.progress;
  const ConfigSchema& schema = family_.info().config_schema;
  if (!tuned.judgement.is_feasible()) {
    return;
  }
  if (only_time_) {
    progress.learn(tuned.time_ns, tuned.config, schema);
  } else if (!result_.judge->objective().is_pareto() &&
             (progress.best_text.empty() ||
              tuned.judgement.targets.view().front() < progress.best_target)) {
    const MetricInfo& target = result_.judge->metrics().front();
    progress.best_target = tuned.judgement.targets.view().front();
    progress.best_text =
        concat(target.name, " ", find_metric(tuned.values, target.name)->value, " ", target.unit);
    progress.best_config = shown_text(schema, tuned.config);
  }
}

// Measures a config unless it was; last_ is its trial where the strategy has something to learn.
Status Tuning::measure(const Config& config) {
  last_.reset();
  if (!tried_.insert(config).second) {
    return {};
  }
  CollectProgress& progress = result_.progress;
  const Measurement measurement = measurer_.measure(
      {.problem = problem_, .config = config, .incumbent_ns = only_time_ ? progress.best_ns : -1});
  FORETUNE_TRY_STATUS(record(measurement));
  last_ = Trial{.config = config};
  const MetricValue* const time = measurement.find(kTimeNs);
  result_.steps.push_back(
      {.config = config,
       .outcome = measurement.outcome,
       .time_ns = time == nullptr ? std::numeric_limits<double>::infinity() : time->value,
       .elapsed_s = progress.elapsed_s});
  if (measurement.outcome == Outcome::kCensored && time != nullptr && only_time_) {
    last_->value = time->value;
    last_->censored = true;
  }
  if (measurement.outcome != Outcome::kOk) {
    last_failure_ = last_->censored ? last_failure_ : measurement.reason;
    return {};
  }
  TunedConfig tuned = tuned_of(measurement);
  if (!evaluated_.empty()) {
    FORETUNE_TRY_STATUS(evaluate(tuned));
  }
  if (result_.judge) {
    tuned.judgement = result_.judge->judge(tuned.values);
    last_ = trial_of(tuned);
    learn(tuned);
  }
  result_.measured.push_back(std::move(tuned));
  return {};
}

Status Tuning::measure_first(const Space& space, std::span<const Config> configs,
                             Strategy* strategy) {
  for (const Config& config : configs) {
    if (space.why_not(config) && may_go_on()) {
      FORETUNE_TRY_STATUS(measure(space.canonical(config)));
      if (strategy != nullptr && last_) {
        strategy->tell(std::span(&*last_, 1));
      }
    }
  }
  return {};
}

// Judges what was measured so far, the default config above all: bounds may refer to its values.
Status Tuning::settle_objective(std::span<const Config> defaults) {
  for (const TunedConfig& tuned : result_.measured) {
    if (!defaults.empty() && tuned.config == defaults.front()) {
      result_.baseline = tuned.values;
    }
  }
  FORETUNE_TRY(result_.judge,
               Judge::create(options_.objective, family_.info().metrics, result_.baseline));
  for (TunedConfig& tuned : result_.measured) {
    tuned.judgement = result_.judge->judge(tuned.values);
    learn(tuned);
  }
  return {};
}

// None where only given configs are measured.
Result<std::unique_ptr<Strategy>> Tuning::make_strategy(const Space& space) {
  if (options_.strategy.empty()) {
    return std::unique_ptr<Strategy>();
  }
  if (options_.strategy == "guided") {
    FORETUNE_TRY_STATUS(make_guide());
  }
  FORETUNE_TRY_STATUS(make_proposer());
  return create_strategy(options_.strategy, problem_, space,
                         {.sample_size = options_.budget.measurements.value_or(0),
                          .scorer = options_.scorer,
                          .proposer = proposer_.get(),
                          .hardware = family_.info().fingerprint.hardware,
                          .max_steps = options_.max_steps,
                          .lookahead = options_.lookahead,
                          .width = options_.width,
                          .learner = guide_.get(),
                          .targets = options_.objective.targets.size()});
}

Status Tuning::make_proposer() {
  if (options_.policy == nullptr) {
    return {};
  }
  FORETUNE_TRY(const ModelKind* const kind, find_model_kind(options_.policy->kind));
  if (kind->make_proposer == nullptr) {
    return fail(ErrorCode::kMismatch, "a model of kind '", kind->name, "' proposes no configs");
  }
  FORETUNE_TRY(proposer_, kind->make_proposer(*options_.policy, problem_,
                                              family_.info().fingerprint.hardware));
  return {};
}

Status Tuning::make_guide() {
  const FamilyInfo& info = family_.info();
  FORETUNE_TRY(const FeatureTable* const table, find_feature_table(info.feature_table));
  GuidePrior prior;
  if (options_.prior != nullptr) {
    FORETUNE_TRY(prior, model_prior(*options_.prior, problem_));
  }
  guide_ = std::make_unique<TreeGuide>(table_rows(*table, problem_, info.fingerprint.hardware),
                                       GuideOptions{}, std::move(prior));
  return {};
}

// Failed ones, too: a strategy that begins there has to know that it leads nowhere.
void Tuning::tell_defaults(Strategy& strategy) const {
  std::vector<Trial> trials;
  for (const TuneStep& step : result_.steps) {
    const auto found =
        std::find_if(result_.measured.begin(), result_.measured.end(),
                     [&](const TunedConfig& tuned) { return tuned.config == step.config; });
    trials.push_back(found == result_.measured.end() ? Trial{.config = step.config}
                                                     : trial_of(*found));
  }
  strategy.tell(trials);
}

Status Tuning::search(Strategy& strategy, Rng& rng) {
  while (may_go_on()) {
    // One at a time: a strategy that learns should learn soon.
    const std::vector<Config> next = strategy.ask(1, rng);
    if (next.empty()) {
      result_.exhausted = true;
      return {};
    }
    FORETUNE_TRY_STATUS(measure(next.front()));
    if (last_) {
      strategy.tell(std::span(&*last_, 1));
    }
  }
  return {};
}

// Positions among what was measured of those that meet the bounds and are worth a comparison.
std::vector<std::size_t> Tuning::chosen() const {
  const auto most = static_cast<std::size_t>(std::max(1, options_.finalists));
  std::vector<std::size_t> feasible;
  std::vector<double> targets;
  for (std::size_t i = 0; i < result_.measured.size(); ++i) {
    const Judgement& judgement = result_.measured[i].judgement;
    if (judgement.is_feasible()) {
      feasible.push_back(i);
      targets.insert(targets.end(), judgement.targets.begin(), judgement.targets.end());
    }
  }
  if (feasible.empty()) {
    return {};
  }
  if (options_.objective.is_pareto()) {
    const PointSet points{targets, options_.objective.targets.size()};
    const std::vector<std::size_t> front = pareto_front(points);
    std::vector<std::size_t> out;
    for (const std::size_t taken : take_best(points, std::min(most, front.size()))) {
      out.push_back(feasible[taken]);
    }
    return out;
  }
  std::sort(feasible.begin(), feasible.end(), [&](std::size_t a, std::size_t b) {
    const TunedConfig& first = result_.measured[a];
    const TunedConfig& second = result_.measured[b];
    const double left = first.judgement.targets[0];
    const double right = second.judgement.targets[0];
    return left != right ? left < right : first.config < second.config;
  });
  feasible.resize(std::min(most, feasible.size()));
  return feasible;
}

tl::unexpected<Error> Tuning::nothing_feasible() const {
  const TunedConfig* nearest = nullptr;
  for (const TunedConfig& tuned : result_.measured) {
    if (tuned.judgement.has_targets() &&
        (nearest == nullptr || tuned.judgement.violation < nearest->judgement.violation)) {
      nearest = &tuned;
    }
  }
  const std::string because =
      last_failure_.empty() ? "" : concat("; the last failure: ", last_failure_);
  if (nearest == nullptr) {
    return fail(ErrorCode::kUnsupported, "no config of ", result_.progress.measured,
                " measured ones gave a right result", because);
  }
  std::string values;
  for (const MetricBound& bound : options_.objective.bounds) {
    const MetricValue* const value = find_metric(nearest->values, bound.metric);
    values += concat(values.empty() ? "" : ", ", bound.metric, " ",
                     value == nullptr ? std::string("unknown") : significant(value->value, 4));
  }
  return fail(ErrorCode::kUnsupported, "no config of ", result_.measured.size(),
              " that ran meets the bounds of '", options_.objective.text(), "'; the nearest has ",
              values, ": ", to_text(family_.info().config_schema, nearest->config));
}

Status Tuning::compare_finalists(std::span<const Config> defaults) {
  const std::vector<std::size_t> finalists = chosen();
  if (finalists.empty()) {
    return nothing_feasible();
  }
  std::vector<Config> compared;
  std::vector<const TunedConfig*> before;
  for (const std::size_t index : finalists) {
    compared.push_back(result_.measured[index].config);
    before.push_back(&result_.measured[index]);
  }
  std::size_t by_default = compared.size();
  if (!defaults.empty()) {
    by_default = static_cast<std::size_t>(
        std::find(compared.begin(), compared.end(), defaults.front()) - compared.begin());
    if (by_default == compared.size()) {
      compared.push_back(defaults.front());
      const auto known =
          std::find_if(result_.measured.begin(), result_.measured.end(),
                       [&](const TunedConfig& tuned) { return tuned.config == defaults.front(); });
      before.push_back(known == result_.measured.end() ? nullptr : &*known);
    }
  }
  std::vector<Measurement> measurements = measurer_.compare(problem_, compared, options_.rounds);
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    Measurement& measurement = measurements[i];
    measurement.context.fidelity = kReferenceFidelity;
    FORETUNE_TRY_STATUS(record(measurement));
    if (measurement.outcome != Outcome::kOk) {
      continue;
    }
    TunedConfig tuned = tuned_of(measurement);
    // Another stage found out the rest.
    for (const std::string& name : evaluated_) {
      const MetricValue* const value =
          before[i] == nullptr ? nullptr : find_metric(before[i]->values, name);
      if (value != nullptr) {
        tuned.values.push_back(*value);
      }
    }
    tuned.judgement = result_.judge->judge(tuned.values);
    if (i == by_default) {
      result_.by_default = tuned;
    }
    if (i < finalists.size()) {
      result_.finalists.push_back(std::move(tuned));
    }
  }
  order_finalists();
  return {};
}

void Tuning::describe_finalists(const Space& space) {
  for (TunedConfig& tuned : result_.finalists) {
    tuned.text = space.describe(tuned.config);
  }
  if (result_.by_default) {
    result_.by_default->text = space.describe(result_.by_default->config);
  }
}

void Tuning::order_finalists() {
  std::vector<TunedConfig>& finalists = result_.finalists;
  // A metric that could not be found out a second time.
  std::erase_if(finalists, [](const TunedConfig& tuned) { return !tuned.judgement.has_targets(); });
  // One that met a bound barely may miss it now: it stays only where nothing else is left.
  const auto misses = [](const TunedConfig& tuned) { return !tuned.judgement.is_feasible(); };
  if (!std::all_of(finalists.begin(), finalists.end(), misses)) {
    std::erase_if(finalists, misses);
  }
  std::stable_sort(finalists.begin(), finalists.end(),
                   [](const TunedConfig& a, const TunedConfig& b) {
                     return a.judgement.targets < b.judgement.targets;
                   });
  if (!options_.objective.is_pareto() || finalists.empty()) {
    return;
  }
  std::vector<double> targets;
  for (const TunedConfig& tuned : finalists) {
    targets.insert(targets.end(), tuned.judgement.targets.begin(), tuned.judgement.targets.end());
  }
  std::vector<TunedConfig> front;
  for (const std::size_t index : pareto_front({targets, options_.objective.targets.size()})) {
    front.push_back(std::move(finalists[index]));
  }
  finalists = std::move(front);
}

Status Tuning::search_space(const Space& space, std::vector<Config>& defaults) {
  if (options_.budget.seconds && !hooks_.now_s) {
    return fail(ErrorCode::kInvalidArgument, "a time budget needs a clock");
  }
  FORETUNE_TRY_STATUS(check_objective(options_.objective, family_.info()));
  for (const std::string& name : options_.objective.metrics()) {
    const MetricInfo* const info = find_metric(family_.info().metrics, name);
    if (info != nullptr && info->stage == MetricStage::kEvaluation) {
      evaluated_.push_back(name);
    }
  }
  if (const EnumerableSpace* const listed = space.enumerable(); listed != nullptr) {
    result_.legal_configs = listed->count();
  }
  FORETUNE_TRY(const std::unique_ptr<Strategy> strategy, make_strategy(space));
  result_.progress.problem = problem_.text();
  result_.progress.problems_total = 1;
  // A stream for each problem: the order of a list of them changes nothing.
  Rng rng = Rng(options_.seed).split(problem_.hash());
  defaults = family_.default_configs(problem_);
  // Before there are values of the default config nothing can be judged by them.
  FORETUNE_TRY_STATUS(measure_first(space, defaults, nullptr));
  for (Config& config : defaults) {
    config = space.canonical(config);
  }
  FORETUNE_TRY_STATUS(settle_objective(defaults));
  if (strategy != nullptr) {
    tell_defaults(*strategy);
  }
  FORETUNE_TRY_STATUS(measure_first(space, options_.first, strategy.get()));
  if (proposer_ != nullptr && options_.strategy != "policy") {
    FORETUNE_TRY_STATUS(
        measure_first(space, proposer_->propose(options_.policy_proposals, rng), strategy.get()));
  }
  if (strategy == nullptr) {
    result_.exhausted = !result_.stopped_by_request;
    return {};
  }
  return search(*strategy, rng);
}

Result<TuneResult> Tuning::search_only() {
  FORETUNE_TRY(const std::unique_ptr<Space> space, family_.space(problem_));
  std::vector<Config> defaults;
  FORETUNE_TRY_STATUS(search_space(*space, defaults));
  for (const std::size_t index : chosen()) {
    result_.finalists.push_back(result_.measured[index]);
  }
  describe_finalists(*space);
  return std::move(result_);
}

Result<TuneResult> Tuning::run() {
  FORETUNE_TRY(const std::unique_ptr<Space> space, family_.space(problem_));
  std::vector<Config> defaults;
  FORETUNE_TRY_STATUS(search_space(*space, defaults));
  FORETUNE_TRY_STATUS(compare_finalists(defaults));
  describe_finalists(*space);
  if (result_.finalists.empty()) {
    return fail(ErrorCode::kUnsupported, "no finalist gave a right result a second time");
  }
  return std::move(result_);
}

}  // namespace

Status check_objective(const Objective& objective, const FamilyInfo& info) {
  std::vector<std::string> names{std::string(kTimeNs), std::string(kMedianNs)};
  for (const MetricInfo& metric : info.metrics) {
    names.push_back(metric.name);
  }
  for (const std::string& name : objective.metrics()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return fail(ErrorCode::kNotFound, info.name, " does not measure ", quoted(name, 40),
                  "; its metrics are ", join(names, ", "));
    }
  }
  return {};
}

Result<TuneResult> tune_problem(const Family& family, Measurer& measurer, JournalWriter* journal,
                                const Problem& problem, const TuneOptions& options,
                                const CollectHooks& hooks) {
  return Tuning(family, measurer, journal, problem, options, hooks, kSearchShare).run();
}

Result<TuneResult> search_problem(const Family& family, Measurer& measurer, JournalWriter* journal,
                                  const Problem& problem, const TuneOptions& options,
                                  const CollectHooks& hooks) {
  return Tuning(family, measurer, journal, problem, options, hooks, 1).search_only();
}

}  // namespace foretune
