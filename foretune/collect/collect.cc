#include "foretune/collect/collect.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "foretune/collect/selection.h"

namespace foretune {
Status CollectHooks::may_keep() const {
  if (may_go_on && !may_go_on()) {
    return fail(ErrorCode::kCancelled, "another process has taken this work over");
  }
  return {};
}

namespace {

// A good time known for a config of the current problem.
struct Known {
  double time_ns;
  Config config;
};

// The good times of an earlier run for every problem.
class PreviousTimes {
 public:
  PreviousTimes(const Dataset* dataset, const Context& context) : dataset_(dataset) {
    if (dataset_ == nullptr) {
      return;
    }
    const std::span<const Problem> problems = dataset_->problems();
    for (std::uint32_t i = 0; i < problems.size(); ++i) {
      ids_.emplace(problems[i], i);
    }
    rows_ = dataset_->rows_by_problem();
    for (const Context& known : dataset_->contexts()) {
      same_context_.push_back(known == context);
    }
  }

  [[nodiscard]] std::vector<Known> of(const Problem& problem) const {
    std::vector<Known> known;
    const auto id = ids_.find(problem);
    if (id == ids_.end()) {
      return known;
    }
    for (const RowIndex index : rows_[id->second]) {
      const Dataset::Row& row = dataset_->rows()[index];
      if (row.is_timed() && same_context_[row.context]) {
        known.push_back({static_cast<double>(row.time_ns), dataset_->configs()[row.config]});
      }
    }
    return known;
  }

 private:
  const Dataset* dataset_;
  std::unordered_map<Problem, std::uint32_t> ids_;
  std::vector<std::vector<RowIndex>> rows_;
  std::vector<bool> same_context_;
};

// The rows of other journals, to be asked for those that need no measurement.
class MeasuredElsewhere {
 public:
  explicit MeasuredElsewhere(const Dataset* dataset) : dataset_(dataset) {
    for (RowIndex i = 0; dataset_ != nullptr && i < dataset_->size(); ++i) {
      const Dataset::Row& row = dataset_->rows()[i];
      const Key key{row.problem, row.config, row.context};
      if (!row.is_evaluation()) {
        measured_.insert(key);
        continue;
      }
      if (row.outcome != Outcome::kOk) {
        failed_.insert(key);
      }
      for (const Dataset::ExtraMetric& extra : dataset_->extras(i)) {
        evaluated_.emplace(key, extra.metric);
      }
    }
  }

  [[nodiscard]] bool contains(const Problem& problem, const Config& config,
                              const Context& context) const {
    const std::optional<Key> key = key_of(problem, config, context);
    return key && measured_.contains(*key);
  }
  [[nodiscard]] bool contains(const Problem& problem, const Config& config, const Context& context,
                              const std::string& metric) const {
    const std::optional<Key> key = key_of(problem, config, context);
    if (!key) {
      return false;
    }
    const std::optional<MetricIndex> index = dataset_->find_metric(metric);
    return failed_.contains(*key) || (index && evaluated_.contains({*key, *index}));
  }

 private:
  using Key = std::array<std::uint32_t, 3>;

  [[nodiscard]] std::optional<Key> key_of(const Problem& problem, const Config& config,
                                          const Context& context) const {
    if (measured_.empty() && failed_.empty() && evaluated_.empty()) {
      return std::nullopt;
    }
    const auto problem_id = dataset_->find_problem(problem);
    const auto config_id = dataset_->find_config(config);
    const auto context_id = dataset_->find_context(context);
    if (!problem_id || !config_id || !context_id) {
      return std::nullopt;
    }
    return Key{*problem_id, *config_id, *context_id};
  }

  const Dataset* dataset_;
  std::set<Key> measured_;
  std::set<Key> failed_;
  std::set<std::pair<Key, MetricIndex>> evaluated_;
};

}  // namespace

Status CollectProgress::keep(const Measurement& measurement, JournalWriter* journal) {
  if (measurement.outcome == Outcome::kCrashed && measurement.stage == Stage::kNone) {
    return fail(ErrorCode::kIo, measurement.reason);
  }
  if (journal != nullptr) {
    FORETUNE_TRY_STATUS(journal->append(measurement));
  }
  ++measured;
  ++by_outcome[static_cast<std::size_t>(measurement.outcome)];
  return {};
}

void CollectProgress::learn(double time_ns, const Config& config, const ConfigSchema& schema) {
  if (best_ns < 0 || time_ns < best_ns) {
    best_ns = time_ns;
    best_config = shown_text(schema, config);
  }
}

namespace {

class Collection {
 public:
  Collection(const Family& family, Measurer& measurer, JournalWriter& journal,
             const CollectOptions& options, const CollectHooks& hooks)
      : family_(family),
        measurer_(measurer),
        journal_(journal),
        options_(options),
        hooks_(hooks),
        previous_(options.previous, measurer.context()),
        elsewhere_times_(options.elsewhere, measurer.context()),
        elsewhere_(options.elsewhere),
        reference_context_(measurer.context()),
        start_s_(hooks.now_s ? hooks.now_s() : 0) {
    reference_context_.fidelity = kReferenceFidelity;
  }

  Result<CollectResult> run(std::span<const Problem> problems);

 private:
  // Returns false when the collection must end here, and sets the reason in the result.
  bool may_go_on();
  Status collect_problem(const Problem& problem, const std::vector<Config>& configs);
  Status confirm(const Problem& problem, std::span<const Config> picks);
  Status evaluate(const Problem& problem);
  Status record(Measurement measurement, bool reference);
  [[nodiscard]] bool is_measured(const Problem& problem, const Config& config,
                                 const Context& context) const {
    return journal_.contains(problem, config, context) ||
           elsewhere_.contains(problem, config, context);
  }
  void plan(std::size_t selected, std::size_t problems_left);
  void report();
  [[nodiscard]] double elapsed_s() const { return hooks_.now_s ? hooks_.now_s() - start_s_ : 0; }
  void learn(double time_ns, const Config& config);

  const Family& family_;
  Measurer& measurer_;
  JournalWriter& journal_;
  const CollectOptions& options_;
  const CollectHooks& hooks_;
  PreviousTimes previous_;
  PreviousTimes elsewhere_times_;
  MeasuredElsewhere elsewhere_;
  Context reference_context_;
  double start_s_;
  CollectResult result_;
  std::map<std::string, std::uint64_t> skipped_;
  std::vector<Known> known_;  // of the current problem
  std::uint64_t selected_ = 0;
  std::uint64_t selected_problems_ = 0;
};

bool Collection::may_go_on() {
  if (hooks_.wants_stop()) {
    result_.stopped_by_request = true;
    return false;
  }
  const Budget& budget = options_.budget;
  if ((budget.measurements && result_.progress.measured >= *budget.measurements) ||
      (budget.seconds && elapsed_s() >= *budget.seconds)) {
    result_.stopped_by_budget = true;
    return false;
  }
  return true;
}

void Collection::learn(double time_ns, const Config& config) {
  known_.push_back({time_ns, config});
  result_.progress.learn(time_ns, config, family_.info().config_schema);
}

// Estimates the total measurements: those selected so far, and as many for each remaining problem.
void Collection::plan(std::size_t selected, std::size_t problems_left) {
  selected_ += options_.evaluate.empty() ? selected : 2 * selected;
  if (options_.confirm_top > 1) {
    selected_ += std::min(selected, static_cast<std::size_t>(options_.confirm_top));
  }
  ++selected_problems_;
  result_.progress.planned = selected_ + selected_ * problems_left / selected_problems_;
}

void Collection::report() {
  if (!hooks_.on_progress) {
    return;
  }
  CollectProgress& progress = result_.progress;
  progress.elapsed_s = elapsed_s();
  progress.eta_s = -1;
  if (progress.measured > 0 && progress.elapsed_s > 0) {
    const std::uint64_t done = progress.measured + progress.resumed;
    std::uint64_t left = progress.planned - std::min(progress.planned, done);
    if (options_.budget.measurements) {
      left = std::min(left, *options_.budget.measurements - progress.measured);
    }
    progress.eta_s =
        static_cast<double>(left) * progress.elapsed_s / static_cast<double>(progress.measured);
    if (options_.budget.seconds) {
      progress.eta_s =
          std::clamp(*options_.budget.seconds - progress.elapsed_s, 0.0, progress.eta_s);
    }
  }
  hooks_.on_progress(progress);
}

Status Collection::record(Measurement measurement, bool reference) {
  if (reference) {
    measurement.context = reference_context_;
  }
  FORETUNE_TRY_STATUS(hooks_.may_keep());
  FORETUNE_TRY_STATUS(result_.progress.keep(measurement, &journal_));
  const MetricValue* const time = measurement.find(kTimeNs);
  if (!reference && !measurement.is_evaluation() && measurement.outcome == Outcome::kOk &&
      time != nullptr) {
    learn(time->value, measurement.config);
  }
  report();
  return {};
}

// Re-measures the best of a problem, interleaved with the best of a model, since evaluations
// compare these.
Status Collection::confirm(const Problem& problem, std::span<const Config> picks) {
  std::sort(known_.begin(), known_.end(), [](const Known& a, const Known& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.config < b.config;
  });
  const std::size_t top =
      std::min(known_.size(), static_cast<std::size_t>(std::max(0, options_.confirm_top)));
  std::vector<Config> best;
  std::size_t already = 0;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    if (i >= top && std::ranges::find(picks, known_[i].config) == picks.end()) {
      continue;
    }
    best.push_back(known_[i].config);
    already += is_measured(problem, best.back(), reference_context_) ? 1U : 0U;
  }
  if (best.size() < 2 || already == best.size() || !may_go_on()) {
    result_.progress.resumed += already;
    return {};
  }
  // A comparison runs as a whole or not at all. A budget that is too small for any is exceeded
  // once; otherwise every run would end here.
  const CollectProgress& progress = result_.progress;
  if (options_.budget.measurements && progress.measured > 0 &&
      *options_.budget.measurements - progress.measured < best.size()) {
    result_.stopped_by_budget = true;
    return {};
  }
  std::vector<Measurement> measurements = measurer_.compare(problem, best, options_.confirm_rounds);
  // Records configs of an earlier comparison again, since they relate the machine's speed now to
  // that of then.
  for (Measurement& measurement : measurements) {
    FORETUNE_TRY_STATUS(record(std::move(measurement), true));
  }
  return {};
}

// Runs the later stages of the configs that ran well, each once.
Status Collection::evaluate(const Problem& problem) {
  CollectProgress& progress = result_.progress;
  if (options_.evaluate.empty()) {
    return {};
  }
  for (const Known& known : known_) {
    std::vector<std::string> missing;
    for (const std::string& metric : options_.evaluate) {
      if (!journal_.contains(problem, known.config, measurer_.context(), metric) &&
          !elsewhere_.contains(problem, known.config, measurer_.context(), metric)) {
        missing.push_back(metric);
      }
    }
    if (missing.empty()) {
      ++progress.resumed;
      continue;
    }
    if (!may_go_on()) {
      return {};
    }
    FORETUNE_TRY_STATUS(
        record(measurer_.measure(
                   {.problem = problem, .config = known.config, .evaluate = std::move(missing)}),
               false));
    ++progress.evaluated;
  }
  return {};
}

Status Collection::collect_problem(const Problem& problem, const std::vector<Config>& configs) {
  CollectProgress& progress = result_.progress;
  progress.problem = problem.text();
  progress.best_ns = -1;
  progress.best_config.clear();
  known_.clear();
  for (const Known& known : previous_.of(problem)) {
    learn(known.time_ns, known.config);
  }
  for (const Known& known : elsewhere_times_.of(problem)) {
    learn(known.time_ns, known.config);
  }
  for (const Config& config : configs) {
    if (is_measured(problem, config, measurer_.context())) {
      ++progress.resumed;
      continue;
    }
    if (!may_go_on()) {
      return {};
    }
    Measurement measurement =
        measurer_.measure({.problem = problem, .config = config, .incumbent_ns = progress.best_ns});
    FORETUNE_TRY_STATUS(record(std::move(measurement), false));
  }
  FORETUNE_TRY_STATUS(evaluate(problem));
  if (options_.confirm_top == 0) {
    return {};
  }
  // The configs of options.first come first.
  const std::size_t ranked = options_.first ? options_.first(problem).size() : 0;
  return confirm(problem,
                 std::span(configs).first(std::min({configs.size(), ranked, kComparedPicks})));
}

Result<CollectResult> Collection::run(std::span<const Problem> problems) {
  CollectProgress& progress = result_.progress;
  progress.problems_total = problems.size();
  std::unordered_set<Problem> seen;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (!may_go_on()) {
      break;
    }
    if (!seen.insert(problems[i]).second) {
      ++skipped_[std::string(kRepeatedProblem)];
    } else if (const auto configs = select_configs(family_, problems[i], options_); !configs) {
      ++skipped_[configs.error().message];
    } else {
      plan(configs->size(), problems.size() - i - 1);
      FORETUNE_TRY_STATUS(collect_problem(problems[i], *configs));
      if (result_.stopped_by_budget || result_.stopped_by_request) {
        break;
      }
    }
    ++progress.problems_done;
    if (hooks_.on_problem_done) {
      hooks_.on_problem_done(progress.problems_done);
    }
  }
  progress.elapsed_s = elapsed_s();
  progress.eta_s = 0;
  result_.skipped.assign(skipped_.begin(), skipped_.end());
  FORETUNE_TRY_STATUS(journal_.sync());
  return result_;
}

}  // namespace

Result<CollectResult> collect(const Family& family, Measurer& measurer, JournalWriter& journal,
                              std::span<const Problem> problems, const CollectOptions& options,
                              const CollectHooks& hooks) {
  if (options.budget.seconds && !hooks.now_s) {
    return fail(ErrorCode::kInvalidArgument, "a time budget needs a clock");
  }
  return Collection(family, measurer, journal, options, hooks).run(problems);
}

}  // namespace foretune
