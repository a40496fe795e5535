#include "foretune/dispatch/dispatcher.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/dispatch/internal/dispatcher_state.h"

namespace foretune {

std::string_view to_string(ChoiceSource source) {
  switch (source) {
    case ChoiceSource::kRemembered:
      return "remembered";
    case ChoiceSource::kMeasured:
      return "measured";
    case ChoiceSource::kModel:
      return "model";
    case ChoiceSource::kPortfolio:
      return "portfolio";
    case ChoiceSource::kDefault:
      return "default";
    case ChoiceSource::kFirstLegal:
      return "first legal";
  }
  return "unknown";
}

// Returns candidates, best first, each at most once, and only legal ones. `note` says why the
// model's pick is not among them.
std::vector<Dispatcher::State::Candidate> Dispatcher::State::candidates(const Source& source,
                                                                        const Problem& problem,
                                                                        std::string& note) const {
  const FamilyInfo& info = source.provider->family().info();
  std::vector<Candidate> out;
  const auto add = [&](const Config& config, ChoiceSource from) {
    const bool is_legal =
        info.space == nullptr ||
        info.space->is_legal(config.words.view(), problem.fields(), info.fingerprint.hardware);
    const bool is_known = std::any_of(
        out.begin(), out.end(), [&](const Candidate& known) { return known.config == config; });
    if (is_legal && !is_known) {
      out.push_back({config, from});
    }
  };
  // A few more candidates than are tried, because some may mean the same here.
  constexpr std::size_t kSpare = 16;
  const auto wanted = static_cast<std::size_t>(options.measure_top);
  if (source.selector != nullptr) {
    const Choice choice = source.selector->select(problem);
    if (choice.picked()) {
      add(source.selector->config(choice.candidate), ChoiceSource::kModel);
      if (out.size() < wanted) {
        for (const RankedCandidate& ranked : source.selector->rank(problem)) {
          if (out.size() >= wanted + kSpare) {
            break;
          }
          add(source.selector->config(ranked.candidate), ChoiceSource::kModel);
        }
      }
      if (out.empty()) {
        note = "No config that the model knows is legal on this machine.";
      }
    } else {
      note = to_string(choice.reason);
      if (choice.has_candidate) {
        add(source.selector->config(choice.candidate), ChoiceSource::kPortfolio);
      }
    }
    for (const std::uint32_t candidate : source.selector->model().portfolio) {
      add(source.selector->config(candidate), ChoiceSource::kPortfolio);
    }
  }
  for (const Config& config : source.provider->family().default_configs(problem)) {
    add(config, ChoiceSource::kDefault);
  }
  return out;
}

// Makes kernels of the first candidates that can be made; false when there is none.
bool Dispatcher::State::start_trials(Entry& entry, const std::vector<Candidate>& candidates,
                                     const Problem& problem) const {
  const auto wanted = static_cast<std::size_t>(options.measure_top);
  const CompiledSpace* space = entry.provider->family().info().space.get();
  for (const Candidate& candidate : candidates) {
    if (entry.trials.size() >= wanted) {
      break;
    }
    Candidate canonical = candidate;
    if (space != nullptr) {
      canonical.config = space->canonical(candidate.config, problem,
                                          entry.provider->family().info().fingerprint.hardware);
    }
    const bool is_known = std::any_of(
        entry.trials.begin(), entry.trials.end(),
        [&](const Option& option) { return option.candidate.config == canonical.config; });
    if (is_known) {
      continue;
    }
    if (auto kernel = entry.provider->make_kernel(problem, canonical.config)) {
      entry.trials.push_back({.candidate = std::move(canonical), .kernel = *std::move(kernel)});
    }
  }
  return !entry.trials.empty();
}

std::size_t Dispatcher::State::best_trial(const Entry& entry) {
  const auto best = std::min_element(
      entry.trials.begin(), entry.trials.end(),
      [](const Option& left, const Option& right) { return left.best_ns < right.best_ns; });
  return static_cast<std::size_t>(best - entry.trials.begin());
}

const Dispatcher::State::Option& Dispatcher::State::best_option(const Entry& entry) {
  return entry.settled.load(std::memory_order_acquire) ? entry.chosen
                                                       : entry.trials[best_trial(entry)];
}

bool Dispatcher::State::is_measured(const Entry& entry) {
  return entry.settled.load(std::memory_order_acquire) &&
         entry.chosen.candidate.source == ChoiceSource::kMeasured;
}

void Dispatcher::State::remember(const Problem& problem, const Entry& entry) {
  if (is_measured(entry)) {
    remembered.put(problem, {.family = entry.provider->family().info().name,
                             .config = entry.chosen.candidate.config,
                             .nanoseconds = entry.chosen.best_ns});
  }
}

void Dispatcher::State::forget_all() {
  entries.for_each(
      [this](const Problem& problem, const auto& entry) { remember(problem, *entry); });
  entries.clear();
  ++generation;
}

void Dispatcher::State::settle(Entry& entry) {
  entry.chosen = std::move(entry.trials[best_trial(entry)]);
  if (entry.chosen.finished > 0) {
    entry.chosen.candidate.source = ChoiceSource::kMeasured;
  }
  entry.trials.clear();
  entry.settled.store(true, std::memory_order_release);
}

Result<std::shared_ptr<Dispatcher::State::Entry>> Dispatcher::State::decide(
    const Problem& problem) const {
  std::string refusals;
  if (const Remembered* const known = remembered.find(problem)) {
    for (const Source& source : sources) {
      if (source.provider->family().info().name != known->family) {
        continue;
      }
      auto kernel = source.provider->make_kernel(problem, known->config);
      if (!kernel) {
        continue;
      }
      auto entry = std::make_shared<Entry>();
      entry->provider = source.provider;
      entry->chosen = {.candidate = {known->config, ChoiceSource::kRemembered},
                       .kernel = *std::move(kernel),
                       .best_ns = known->nanoseconds};
      entry->settled.store(true, std::memory_order_release);
      return entry;
    }
  }
  for (const Source& source : sources) {
    const Family& family = source.provider->family();
    if (const Support support = family.supports(problem); !support) {
      refusals += concat(refusals.empty() ? "" : "; ", family.info().name, ": ", support.reason());
      continue;
    }
    auto entry = std::make_shared<Entry>();
    entry->provider = source.provider;
    if (!start_trials(*entry, candidates(source, problem, entry->note), problem)) {
      // No proposed config can run here, so any config that can is taken.
      const auto space = family.space(problem);
      Rng rng(0);
      const auto any = space ? (*space)->sample(rng) : fail(ErrorCode::kUnsupported, "");
      if (!any || !start_trials(*entry, {{*any, ChoiceSource::kFirstLegal}}, problem)) {
        refusals += concat(refusals.empty() ? "" : "; ", family.info().name,
                           ": none of its configs can run");
        continue;
      }
    }
    if (entry->trials.size() == 1) {
      settle(*entry);
    } else if (options.keep_trials) {
      entry->problem = std::make_unique<const Problem>(problem);
    }
    return entry;
  }
  return fail(ErrorCode::kUnsupported, "nothing runs ", problem.text(),
              refusals.empty() ? std::string(": there is no family") : concat(" (", refusals, ")"));
}

Result<std::shared_ptr<Dispatcher::State::Entry>> Dispatcher::State::find(const Problem& problem) {
  {
    const std::shared_lock lock(mutex);
    if (const auto* const known = entries.find(problem)) {
      return *known;
    }
  }
  while (true) {
    // Two threads may decide the same problem at once; the first one's decision stays.
    std::uint64_t decided_at = 0;
    Result<std::shared_ptr<Entry>> decided = [&] {
      const std::shared_lock lock(mutex);
      decided_at = generation;
      return decide(problem);
    }();
    if (!decided) {
      return decided;
    }
    const std::unique_lock lock(mutex);
    if (decided_at != generation) {
      continue;  // the decision used families or choices that have changed since
    }
    if (const auto* const known = entries.find(problem)) {
      return *known;
    }
    if (const auto forgotten = entries.put(problem, *decided)) {
      remember(forgotten->first, *forgotten->second);
    }
    return *std::move(decided);
  }
}

Dispatcher::Dispatcher(const DispatchOptions& options) : state_(std::make_unique<State>(options)) {}
Dispatcher::~Dispatcher() = default;

Status Dispatcher::add(std::shared_ptr<const KernelProvider> provider, std::optional<Model> model) {
  const FamilyInfo& info = provider->family().info();
  State::Source source{.provider = std::move(provider), .selector = nullptr};
  if (model) {
    if (model->family != info.name || model->problem_type != info.problem_type ||
        model->config_schema != info.config_schema) {
      return fail(ErrorCode::kMismatch, "the model ranks configs of ", model->family, " (",
                  model->config_schema.name, "), not of this ", info.name);
    }
    FORETUNE_TRY(source.selector, Selector::create(*std::move(model)));
  }
  const std::unique_lock lock(state_->mutex);
  state_->sources.push_back(std::move(source));
  state_->forget_all();
  return {};
}

Result<Dispatcher::Turn> Dispatcher::next(const Problem& problem) {
  FORETUNE_TRY(std::shared_ptr<State::Entry> entry, state_->find(problem));
  Turn turn;
  if (entry->settled.load(std::memory_order_acquire)) {
    turn.kernel_ = entry->chosen.kernel;
    return turn;
  }
  const std::lock_guard lock(state_->trials_mutex);
  if (entry->settled.load(std::memory_order_acquire)) {
    turn.kernel_ = entry->chosen.kernel;
    return turn;
  }
  if (std::exchange(entry->generation, fork_generation()) != fork_generation()) {
    for (State::Option& option : entry->trials) {
      option.started = option.finished;  // threads of the parent do not report here
    }
  }
  // Picks the option with the fewest trials, in the model's order; when all are running, the best
  // so far.
  int least = -1;
  for (int i = 0; i < static_cast<int>(entry->trials.size()); ++i) {
    const State::Option& option = entry->trials[static_cast<std::size_t>(i)];
    if (!option.is_hopeless && option.started < state_->options.measure_rounds &&
        (least < 0 || option.started < entry->trials[static_cast<std::size_t>(least)].started)) {
      least = i;
    }
  }
  State::Option& option =
      entry->trials[least >= 0 ? static_cast<std::size_t>(least) : State::best_trial(*entry)];
  turn.kernel_ = option.kernel;
  if (least >= 0) {
    ++option.started;
    turn.trial_ = least;
    turn.entry_ = std::move(entry);
  }
  return turn;
}

Result<Dispatcher::Turn> Dispatcher::best(const Problem& problem) {
  FORETUNE_TRY(const std::shared_ptr<State::Entry> entry, state_->find(problem));
  Turn turn;
  if (entry->settled.load(std::memory_order_acquire)) {
    turn.kernel_ = entry->chosen.kernel;
    return turn;
  }
  const std::lock_guard lock(state_->trials_mutex);
  turn.kernel_ = State::best_option(*entry).kernel;
  return turn;
}

void Dispatcher::abandon(const Turn& turn) {
  if (turn.trial_ < 0) {
    return;
  }
  auto& entry = *static_cast<State::Entry*>(turn.entry_.get());
  const std::lock_guard lock(state_->trials_mutex);
  if (!entry.settled.load(std::memory_order_acquire)) {
    --entry.trials[static_cast<std::size_t>(turn.trial_)].started;
  }
}

void Dispatcher::report(const Turn& turn, double nanoseconds) {
  if (turn.trial_ < 0) {
    return;
  }
  auto& entry = *static_cast<State::Entry*>(turn.entry_.get());
  const std::lock_guard lock(state_->trials_mutex);
  if (entry.settled.load(std::memory_order_acquire)) {
    return;
  }
  State::Option& option = entry.trials[static_cast<std::size_t>(turn.trial_)];
  ++option.finished;
  option.best_ns = std::min(option.best_ns, nanoseconds);
  entry.spent_ns += nanoseconds;
  if (entry.problem != nullptr) {
    option.samples_ns.push_back(static_cast<float>(nanoseconds));
  }
  const double best = entry.trials[State::best_trial(entry)].best_ns;
  bool is_complete = true;
  for (State::Option& other : entry.trials) {
    other.is_hopeless = other.finished > 0 && other.best_ns > kHopelessTrial * best;
    is_complete =
        is_complete && (other.is_hopeless || other.finished >= state_->options.measure_rounds);
  }
  if (is_complete || entry.spent_ns > 1e9 * state_->options.measure_seconds) {
    if (entry.problem != nullptr) {
      state_->keep_trials(entry);
    }
    State::settle(entry);
  }
}

Result<Decision> Dispatcher::decision(const Problem& problem) {
  FORETUNE_TRY(const std::shared_ptr<State::Entry> entry, state_->find(problem));
  const std::lock_guard lock(state_->trials_mutex);
  const State::Option& option = State::best_option(*entry);
  const FamilyInfo& info = entry->provider->family().info();
  const bool is_timed = option.best_ns < std::numeric_limits<double>::infinity();
  return Decision{.family = info.name,
                  .config = option.candidate.config,
                  .config_text = to_text(info.config_schema, option.candidate.config),
                  .source = option.candidate.source,
                  .note = entry->note,
                  .measured_ns = is_timed ? option.best_ns : -1,
                  .is_settled = entry->settled.load(std::memory_order_acquire)};
}

}  // namespace foretune
