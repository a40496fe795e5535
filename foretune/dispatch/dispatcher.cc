#include "foretune/dispatch/dispatcher.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/fork.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/dispatch/bounded_map.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

constexpr std::string_view kFileHead = "foretune-choices 1";
// A trial this much slower than the best so far is not repeated.
constexpr double kHopeless = 2;

struct Candidate {
  Config config;
  ChoiceSource source = ChoiceSource::kModel;
};

// One way to run a problem, with what its trials showed.
struct Option {
  Candidate candidate;
  std::shared_ptr<const void> kernel;
  int started = 0;
  int finished = 0;
  double best_ns = std::numeric_limits<double>::infinity();
  bool is_hopeless = false;
};

}  // namespace

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

struct Dispatcher::State {
  struct Source {
    std::shared_ptr<const KernelProvider> provider;
    std::shared_ptr<const Selector> selector;  // null without a model
  };

  // What is known of a problem. `settled` is set once, after `chosen` was.
  struct Entry {
    std::atomic<bool> settled{false};
    Option chosen;
    std::shared_ptr<const KernelProvider> provider;
    std::string note;
    std::vector<Option> trials;  // under trials_mutex until settled, as what follows
    double spent_ns = 0;
    std::uint32_t generation = fork_generation();
  };

  struct Remembered {
    std::string family;
    Config config;
    double nanoseconds = 0;
  };

  explicit State(const DispatchOptions& given)
      : options(given), entries(given.max_problems), remembered(given.max_remembered) {
    options.measure_top = std::max(1, options.measure_top);
    options.measure_rounds = std::max(1, options.measure_rounds);
  }

  [[nodiscard]] std::vector<Candidate> candidates(const Source& source, const Problem& problem,
                                                  std::string& note) const;
  [[nodiscard]] bool start_trials(Entry& entry, const std::vector<Candidate>& candidates,
                                  const Problem& problem) const;
  Result<std::shared_ptr<Entry>> decide(const Problem& problem) const;
  Result<std::shared_ptr<Entry>> find(const Problem& problem);
  static void settle(Entry& entry);
  // The trial of the best time so far; before any time the first.
  static std::size_t best_trial(const Entry& entry);
  // What was chosen, or while trials go on the best of them: unless settled under trials_mutex.
  static const Option& best_option(const Entry& entry);
  static bool is_measured(const Entry& entry);
  // Of all families' machines, which are one: what a file of choices is for.
  [[nodiscard]] std::string machine_line() const;
  // Keeps what was measured when the entry goes.
  void remember(const Problem& problem, const Entry& entry);
  void forget_all();

  DispatchOptions options;
  ForkSafeMutex trials_mutex;         // of all entries' trials; taken only while there are any
  mutable ForkSafeSharedMutex mutex;  // of what follows
  std::uint64_t generation = 0;       // raised when decisions before would be made otherwise
  std::vector<Source> sources;
  BoundedMap<Problem, std::shared_ptr<Entry>> entries;
  BoundedMap<Problem, Remembered> remembered;
};

// Best first, each at most once, and only what is legal here. `note` says why the model's pick is
// not among them.
std::vector<Candidate> Dispatcher::State::candidates(const Source& source, const Problem& problem,
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
  // A few more than are tried: some may turn out to mean the same here.
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

const Option& Dispatcher::State::best_option(const Entry& entry) {
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
      // Nothing that anybody proposes can run here: any config that can.
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
      continue;  // by families or choices that have changed since
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
    for (Option& option : entry->trials) {
      option.started = option.finished;  // threads of the parent do not report here
    }
  }
  // The one tried least, in the model's order; when all are under way, the best so far.
  int least = -1;
  for (int i = 0; i < static_cast<int>(entry->trials.size()); ++i) {
    const Option& option = entry->trials[static_cast<std::size_t>(i)];
    if (!option.is_hopeless && option.started < state_->options.measure_rounds &&
        (least < 0 || option.started < entry->trials[static_cast<std::size_t>(least)].started)) {
      least = i;
    }
  }
  Option& option =
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
  Option& option = entry.trials[static_cast<std::size_t>(turn.trial_)];
  ++option.finished;
  option.best_ns = std::min(option.best_ns, nanoseconds);
  entry.spent_ns += nanoseconds;
  const double best = entry.trials[State::best_trial(entry)].best_ns;
  bool is_complete = true;
  for (Option& other : entry.trials) {
    other.is_hopeless = other.finished > 0 && other.best_ns > kHopeless * best;
    is_complete =
        is_complete && (other.is_hopeless || other.finished >= state_->options.measure_rounds);
  }
  if (is_complete || entry.spent_ns > 1e9 * state_->options.measure_seconds) {
    State::settle(entry);
  }
}

Result<Decision> Dispatcher::decision(const Problem& problem) {
  FORETUNE_TRY(const std::shared_ptr<State::Entry> entry, state_->find(problem));
  const std::lock_guard lock(state_->trials_mutex);
  const Option& option = State::best_option(*entry);
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

std::string Dispatcher::State::machine_line() const {
  std::string text = "machine";
  for (const Source& source : sources) {
    text += concat(" ", source.provider->family().info().fingerprint.digest());
  }
  return text;
}

Status Dispatcher::save_choices(const std::filesystem::path& path) const {
  return write_text_file_atomically(path, choices_text());
}

std::string Dispatcher::choices_text() const {
  std::vector<std::string> lines;
  const std::shared_lock lock(state_->mutex);
  const auto line = [](const FamilyInfo& info, const Problem& problem, const Config& config,
                       double nanoseconds) {
    return concat(info.name, "\t", problem.text(), "\t", to_text(info.config_schema, config), "\t",
                  nanoseconds);
  };
  state_->remembered.for_each([&](const Problem& problem, const State::Remembered& known) {
    const auto* const entry = state_->entries.find(problem);
    if (entry != nullptr && State::is_measured(**entry)) {
      return;  // anew: below
    }
    for (const State::Source& source : state_->sources) {
      const FamilyInfo& info = source.provider->family().info();
      if (info.name == known.family) {
        lines.push_back(line(info, problem, known.config, known.nanoseconds));
        break;
      }
    }
  });
  state_->entries.for_each([&](const Problem& problem, const auto& entry) {
    if (State::is_measured(*entry)) {
      lines.push_back(line(entry->provider->family().info(), problem,
                           entry->chosen.candidate.config, entry->chosen.best_ns));
    }
  });
  // The same choices, the same bytes.
  std::sort(lines.begin(), lines.end());
  std::string text = concat(kFileHead, "\n", state_->machine_line(), "\n");
  for (const std::string& each : lines) {
    text += concat(each, "\n");
  }
  return text;
}

Result<std::size_t> Dispatcher::load_choices(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  Result<std::size_t> taken = take_choices(text);
  if (!taken) {
    return fail_because(taken.error(), path.string());
  }
  return taken;
}

Result<std::size_t> Dispatcher::take_choices(std::string_view text) {
  const std::unique_lock lock(state_->mutex);
  BoundedMap<Problem, State::Remembered> loaded(state_->options.max_remembered);
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (number == 1 && line != kFileHead) {
      return fail(ErrorCode::kCorrupt, "this is not a file of choices");
    }
    if (number == 2 && line != state_->machine_line()) {
      return fail(ErrorCode::kMismatch, "these are choices of another machine");
    }
    if (number <= 2 || line.empty()) {
      continue;
    }
    const std::vector<std::string_view> fields = split(line, '\t');
    const auto nanoseconds = fields.size() == 4 ? parse_double(fields[3]) : std::nullopt;
    if (!nanoseconds || !(*nanoseconds > 0) || !std::isfinite(*nanoseconds)) {
      return fail(ErrorCode::kCorrupt, "line ", number,
                  ": family, problem, config and time were expected");
    }
    for (const State::Source& source : state_->sources) {
      const FamilyInfo& info = source.provider->family().info();
      if (info.name != fields[0]) {
        continue;
      }
      const auto problem = Problem::parse(fields[1]);
      const auto config = parse_config(info.config_schema, fields[2]);
      if (!problem || !config) {
        return fail_because(problem ? config.error() : problem.error(), "line ", number);
      }
      loaded.put(*problem, {.family = info.name, .config = *config, .nanoseconds = *nanoseconds});
    }
  }
  if (number < 2) {
    return fail(ErrorCode::kCorrupt, "this is not a file of choices");
  }
  ++state_->generation;
  loaded.for_each([this](const Problem& problem, const State::Remembered& known) {
    state_->entries.erase(problem);
    state_->remembered.put(problem, known);
  });
  return loaded.size();
}

}  // namespace foretune
