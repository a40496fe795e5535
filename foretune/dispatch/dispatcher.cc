#include "foretune/dispatch/dispatcher.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/dispatch/internal/dispatcher_state.h"
#include "foretune/model/later_schema.h"

namespace foretune {

namespace dispatch_internal {

CallKind CallKind::of(const DispatchCall& call) {
  CallKind kind{.problem = call.problem == nullptr ? std::nullopt : std::optional(*call.problem),
                .variant = {call.variant.begin(), call.variant.end()}};
  // The call's owner may free the descriptor before the kind is forgotten.
  if (kind.problem) {
    kind.problem->set_descriptor(nullptr);
  }
  return kind;
}

std::size_t CallHash::operator()(const DispatchCall& call) const {
  std::uint64_t hash = call.problem == nullptr ? 0 : call.problem->hash();
  for (const std::uint64_t word : call.variant) {
    hash = hash_combine(hash, word);
  }
  return static_cast<std::size_t>(hash);
}

std::size_t CallHash::operator()(const CallKind& kind) const {
  DispatchCall call;
  call.problem = kind.problem ? &*kind.problem : nullptr;
  call.variant = kind.variant;
  return (*this)(call);
}

}  // namespace dispatch_internal

std::size_t Dispatcher::State::best_trial(const Entry& entry) {
  const auto best = std::min_element(entry.trials.begin(), entry.trials.end(),
                                     [](const Option& left, const Option& right) {
                                       return std::pair(left.is_refused, left.best_ns) <
                                              std::pair(right.is_refused, right.best_ns);
                                     });
  return static_cast<std::size_t>(best - entry.trials.begin());
}

const Dispatcher::State::Option& Dispatcher::State::best_option(const Entry& entry) {
  return entry.settled.load(std::memory_order_acquire) ? entry.chosen
                                                       : entry.trials[best_trial(entry)];
}

bool Dispatcher::State::is_measured(const Entry& entry) {
  return entry.settled.load(std::memory_order_acquire) &&
         entry.chosen.source == ChoiceSource::kMeasured;
}

void Dispatcher::State::remember(const CallKind& kind, const Entry& entry) {
  if (kind.problem && is_measured(entry)) {
    remembered.put(*kind.problem, {.family = entry.provider->info().name,
                                   .config = entry.chosen.config,
                                   .nanoseconds = entry.chosen.best_ns});
  }
}

void Dispatcher::State::forget_all() {
  entries.for_each([this](const CallKind& kind, const auto& entry) { remember(kind, *entry); });
  entries.clear();
  ++generation;
}

void Dispatcher::State::settle(Entry& entry) {
  entry.chosen = std::move(entry.trials[best_trial(entry)]);
  if (entry.chosen.finished > 0) {
    entry.chosen.source = ChoiceSource::kMeasured;
  }
  entry.trials.clear();
  entry.settled.store(true, std::memory_order_release);
}

Result<std::shared_ptr<Dispatcher::State::Entry>> Dispatcher::State::decide(
    const DispatchCall& call, const std::string& refusal) const {
  std::vector<Source> asked;
  std::optional<Remembered> known;
  {
    const std::shared_lock lock(mutex);
    asked = sources;
    if (call.problem != nullptr && refusal.empty()) {
      if (const Remembered* const found = remembered.find(*call.problem)) {
        known = *found;
      }
    }
  }
  for (const Source& source : asked) {
    if (!known || source.provider->info().name != known->family ||
        !source.provider->supports(call)) {
      continue;
    }
    const std::unique_ptr<KernelMaker> maker = source.provider->maker(call);
    auto kernel = maker->make(known->config);
    if (!kernel) {
      continue;
    }
    auto entry = std::make_shared<Entry>();
    entry->provider = source.provider;
    entry->may_be_kept = maker->may_be_kept();
    entry->chosen = {.config = known->config,
                     .source = ChoiceSource::kRemembered,
                     .kernel = *std::move(kernel),
                     .best_ns = known->nanoseconds};
    entry->settled.store(true, std::memory_order_release);
    return entry;
  }
  DispatchOptions wanted = options;
  wanted.measure_top = call.is_steady || !refusal.empty() ? 1 : options.measure_top;
  std::string refusals;
  const auto refuse = [&](const Source& source, std::string_view reason) {
    refusals += concat(refusals.empty() ? "" : "; ", source.provider->info().name, ": ", reason);
  };
  for (const Source& source : asked) {
    if (const Support support = source.provider->supports(call); !support) {
      refuse(source, support.reason());
      continue;
    }
    dispatch_internal::Options made =
        dispatch_internal::make_options(source, call, wanted, refusal);
    if (made.all.empty()) {
      refuse(source,
             concat("none of its configs can run", made.note.empty() ? "" : "; ", made.note));
      continue;
    }
    auto entry = std::make_shared<Entry>();
    entry->provider = source.provider;
    entry->note = std::move(made.note);
    entry->may_be_kept = made.may_be_kept;
    entry->trials = std::move(made.all);
    if (entry->trials.size() == 1 || !entry->may_be_kept) {
      settle(*entry);
    } else if (options.keep_trials && call.problem != nullptr) {
      entry->kind = std::make_unique<const CallKind>(CallKind::of(call));
    }
    return entry;
  }
  return fail(ErrorCode::kUnsupported, "nothing runs ",
              call.problem == nullptr ? "the call" : call.problem->text(),
              refusals.empty() ? std::string(": there is no family") : concat(" (", refusals, ")"));
}

Result<std::shared_ptr<Dispatcher::State::Entry>> Dispatcher::State::find(
    const DispatchCall& call) {
  {
    const std::shared_lock lock(mutex);
    if (const auto* const known = entries.find(call)) {
      return *known;
    }
  }
  while (true) {
    // Two threads may decide the same call at once; the first one's decision stays.
    const std::uint64_t decided_at = [this] {
      const std::shared_lock lock(mutex);
      return generation;
    }();
    Result<std::shared_ptr<Entry>> decided = decide(call, {});
    if (!decided || !(*decided)->may_be_kept) {
      return decided;
    }
    const std::unique_lock lock(mutex);
    if (decided_at != generation) {
      continue;  // the decision used providers or choices that have changed since
    }
    if (const auto* const known = entries.find(call)) {
      return *known;
    }
    if (const auto forgotten = entries.put(CallKind::of(call), *decided)) {
      remember(forgotten->first, *forgotten->second);
    }
    return *std::move(decided);
  }
}

Dispatcher::Dispatcher(const DispatchOptions& options) : state_(std::make_unique<State>(options)) {}
Dispatcher::~Dispatcher() = default;

Status Dispatcher::add(std::shared_ptr<const KernelProvider> provider, std::optional<Model> model) {
  const FamilyInfo& info = provider->info();
  State::Source source{.provider = std::move(provider), .selector = nullptr};
  if (model) {
    if (!source.provider->takes_models_of(model->family) ||
        model->problem_type != info.problem_type ||
        !adds_labels_only(info.config_schema, model->config_schema)) {
      return fail(ErrorCode::kMismatch, "the model ranks configs of ", model->family, " (",
                  model->config_schema.name, "), not of this ", info.name);
    }
    FORETUNE_TRY(Model known, with_later_schema(*std::move(model), info.config_schema));
    FORETUNE_TRY(source.selector, Selector::create(std::move(known)));
  }
  const std::unique_lock lock(state_->mutex);
  state_->sources.push_back(std::move(source));
  state_->forget_all();
  return {};
}

Result<Dispatcher::Turn> Dispatcher::next(const DispatchCall& call) {
  FORETUNE_TRY(std::shared_ptr<State::Entry> entry, state_->find(call));
  Turn turn;
  if (entry->settled.load(std::memory_order_acquire)) {
    turn.kernel_ = entry->chosen.kernel;
    turn.is_final_ = entry->may_be_kept;
    return turn;
  }
  const std::lock_guard lock(state_->trials_mutex);
  if (entry->settled.load(std::memory_order_acquire)) {
    turn.kernel_ = entry->chosen.kernel;
    turn.is_final_ = entry->may_be_kept;
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
    if (!option.is_hopeless && !option.is_refused &&
        option.started < state_->options.measure_rounds &&
        (least < 0 || option.started < entry->trials[static_cast<std::size_t>(least)].started)) {
      least = i;
    }
  }
  State::Option& option =
      entry->trials[least >= 0 ? static_cast<std::size_t>(least) : State::best_trial(*entry)];
  turn.kernel_ = option.kernel;
  turn.at_most_ns_ = option.bound_ns();
  if (least >= 0) {
    ++option.started;
    for (const State::Option& other : entry->trials) {
      turn.fastest_ns_ = std::min(turn.fastest_ns_, other.bound_ns());
    }
    turn.is_first_ = !std::exchange(option.has_run, true);
    turn.trial_ = least;
    turn.entry_ = std::move(entry);
  }
  return turn;
}

Result<Dispatcher::Turn> Dispatcher::best(const DispatchCall& call) {
  FORETUNE_TRY(const std::shared_ptr<State::Entry> entry, state_->find(call));
  Turn turn;
  if (entry->settled.load(std::memory_order_acquire)) {
    turn.kernel_ = entry->chosen.kernel;
    turn.is_final_ = entry->may_be_kept;
    return turn;
  }
  const std::lock_guard lock(state_->trials_mutex);
  const State::Option& best = State::best_option(*entry);
  turn.kernel_ = best.kernel;
  turn.at_most_ns_ = best.bound_ns();
  return turn;
}

Result<std::vector<std::shared_ptr<const void>>> Dispatcher::kernels(const DispatchCall& call) {
  FORETUNE_TRY(const std::shared_ptr<State::Entry> entry, state_->find(call));
  const std::lock_guard lock(state_->trials_mutex);
  std::vector<std::shared_ptr<const void>> found;
  if (entry->settled.load(std::memory_order_acquire)) {
    found.push_back(entry->chosen.kernel);
    return found;
  }
  for (const State::Option& option : entry->trials) {
    if (!option.is_refused) {
      found.push_back(option.kernel);
    }
  }
  return found;
}

Result<Dispatcher::Turn> Dispatcher::replace(const DispatchCall& call, const Turn& refused,
                                             const std::string& reason) {
  FORETUNE_TRY(const std::shared_ptr<State::Entry> entry, state_->find(call));
  {
    const std::lock_guard lock(state_->trials_mutex);
    if (!entry->settled.load(std::memory_order_acquire)) {
      const auto mine = std::ranges::find(entry->trials, refused.kernel_, &State::Option::kernel);
      if (mine != entry->trials.end()) {
        mine->is_refused = true;
      }
      state_->settle_if_complete(*entry);
    }
    const State::Option& best = State::best_option(*entry);
    if (!best.is_refused && best.kernel != refused.kernel_) {
      Turn turn;
      turn.kernel_ = best.kernel;
      turn.is_final_ = entry->may_be_kept && entry->settled.load(std::memory_order_acquire);
      return turn;
    }
  }
  FORETUNE_TRY(std::shared_ptr<State::Entry> other, state_->decide(call, reason));
  Turn turn;
  turn.kernel_ = other->chosen.kernel;
  turn.is_final_ = other->may_be_kept;
  if (turn.is_final_) {
    const std::unique_lock lock(state_->mutex);
    state_->entries.put(State::CallKind::of(call), std::move(other));
  }
  return turn;
}

void Dispatcher::abandon(const Turn& turn, double at_most_ns) {
  if (turn.trial_ < 0) {
    return;
  }
  auto& entry = *static_cast<State::Entry*>(turn.entry_.get());
  const std::lock_guard lock(state_->trials_mutex);
  if (!entry.settled.load(std::memory_order_acquire)) {
    State::Option& option = entry.trials[static_cast<std::size_t>(turn.trial_)];
    --option.started;
    option.at_most_ns = std::min(option.at_most_ns, at_most_ns);
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
  if (entry.kind != nullptr) {
    option.samples_ns.push_back(static_cast<float>(nanoseconds));
  }
  state_->settle_if_complete(entry);
}

void Dispatcher::State::settle_if_complete(Entry& entry) {
  const double best = entry.trials[best_trial(entry)].best_ns;
  bool is_complete = true;
  for (Option& option : entry.trials) {
    option.is_hopeless = option.finished > 0 && option.best_ns > kHopelessTrial * best;
    is_complete = is_complete && (option.is_refused || option.is_hopeless ||
                                  option.finished >= options.measure_rounds);
  }
  if (is_complete || entry.spent_ns > 1e9 * options.measure_seconds) {
    if (entry.kind != nullptr) {
      keep_trials(entry);
    }
    settle(entry);
  }
}

std::string Decision::text() const {
  return concat(to_string(source), ": ", config_text.empty() ? "left to the library" : config_text,
                note.empty() ? "" : "; ", note);
}

Decision Dispatcher::State::describe(const Entry& entry) {
  const Option& option = best_option(entry);
  const FamilyInfo& info = entry.provider->info();
  const bool is_timed = option.best_ns < std::numeric_limits<double>::infinity();
  return Decision{
      .family = info.name,
      .config = option.config,
      .config_text = option.config.words.empty() ? "" : to_text(info.config_schema, option.config),
      .source = option.source,
      .note = entry.note,
      .measured_ns = is_timed ? option.best_ns : -1,
      .is_settled = entry.settled.load(std::memory_order_acquire),
      .kernel = option.kernel};
}

Result<Decision> Dispatcher::decision(const DispatchCall& call) {
  FORETUNE_TRY(const std::shared_ptr<State::Entry> entry, state_->find(call));
  const std::lock_guard lock(state_->trials_mutex);
  return State::describe(*entry);
}

Result<Decision> Dispatcher::without_model(const DispatchCall& call,
                                           const std::string& reason) const {
  FORETUNE_TRY(const std::shared_ptr<State::Entry> entry, state_->decide(call, reason));
  return State::describe(*entry);
}

bool Dispatcher::remembers(const DispatchCall& call) const {
  const std::shared_lock lock(state_->mutex);
  return call.problem != nullptr && state_->remembered.find(*call.problem) != nullptr;
}

}  // namespace foretune
