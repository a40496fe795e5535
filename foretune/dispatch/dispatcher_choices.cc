#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"
#include "foretune/dataset/records.h"
#include "foretune/dispatch/internal/dispatcher_state.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/measure/timing.h"
#include "foretune/model/later_schema.h"

namespace foretune {
namespace {

using dataset_internal::kMagic;

constexpr std::string_view kFileHead = "foretune-choices 1";
// Fidelity of rows that are single calls on a caller's operands. Stored in files: never change.
constexpr std::int32_t kTrialFidelity = 1;

Context trial_context(const FamilyInfo& info) {
  return {.machine = info.fingerprint.digest(),
          .device = info.fingerprint.device,
          .threads = info.max_threads,
          .fidelity = kTrialFidelity};
}

// Opens a data set for appending; waits up to a second while another process writes it.
Result<std::unique_ptr<JournalWriter>> open_when_free(const std::filesystem::path& path,
                                                      const DatasetHeader& header) {
  constexpr int kAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    auto journal = JournalWriter::open(path, header);
    if (journal || journal.error().code != ErrorCode::kIo || attempt == kAttempts) {
      return journal;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

std::string Dispatcher::State::machine_line() const {
  std::string text = "machine";
  for (const Source& source : sources) {
    text += concat(" ", source.provider->info().fingerprint.digest());
  }
  return text;
}

std::string Dispatcher::choices_text() const {
  struct Known {
    double nanoseconds = 0;
    std::string config;
  };
  // Sorted, so that the same choices give the same bytes. Several kinds of calls may have one
  // problem; the fastest choice stands for all.
  std::map<std::string, Known> lines;
  const std::shared_lock lock(state_->mutex);
  const auto add = [&](const FamilyInfo& info, const Problem& problem, const Config& config,
                       double nanoseconds) {
    const auto [place, is_new] = lines.try_emplace(concat(info.name, "\t", problem.text()));
    if (is_new || nanoseconds < place->second.nanoseconds) {
      place->second = {nanoseconds, to_text(info.config_schema, config)};
    }
  };
  std::unordered_set<Problem> anew;
  state_->entries.for_each([&](const State::CallKind& kind, const auto& entry) {
    if (kind.problem && State::is_measured(*entry)) {
      anew.insert(*kind.problem);
      add(entry->provider->info(), *kind.problem, entry->chosen.config, entry->chosen.best_ns);
    }
  });
  state_->remembered.for_each([&](const Problem& problem, const State::Remembered& known) {
    const KernelProvider* const provider = state_->provider_of(known.family);
    if (provider != nullptr && !anew.contains(problem)) {
      add(provider->info(), problem, known.config, known.nanoseconds);
    }
  });
  std::string text = concat(kFileHead, "\n", state_->machine_line(), "\n");
  for (const auto& [key, known] : lines) {
    text += concat(key, "\t", known.config, "\t", known.nanoseconds, "\n");
  }
  return text;
}

Result<std::size_t> Dispatcher::load_choices(const std::filesystem::path& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  Result<std::size_t> taken = [&]() -> Result<std::size_t> {
    if (!text.starts_with(std::string_view(kMagic.data(), kMagic.size()))) {
      return take_choices(text);
    }
    FORETUNE_TRY(Dataset trials, read_dataset_bytes(std::as_bytes(std::span(text))));
    return take_choices(std::move(trials));
  }();
  if (!taken) {
    return fail_because(taken.error(), path.string());
  }
  return taken;
}

Result<std::size_t> Dispatcher::take_choices(Dataset trials) {
  return state_->take_trials(std::move(trials));
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
    if (const KernelProvider* const provider = state_->provider_of(fields[0])) {
      const FamilyInfo& info = provider->info();
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
  return state_->take(loaded);
}

std::size_t Dispatcher::State::take(const BoundedMap<Problem, Remembered>& loaded) {
  ++generation;
  std::vector<CallKind> stale;
  entries.for_each([&](const CallKind& kind, const auto&) {
    if (kind.problem && loaded.find(*kind.problem) != nullptr) {
      stale.push_back(kind);
    }
  });
  for (const CallKind& kind : stale) {
    entries.erase(kind);
  }
  loaded.for_each(
      [this](const Problem& problem, const Remembered& known) { remembered.put(problem, known); });
  return loaded.size();
}

const KernelProvider* Dispatcher::State::provider_of(std::string_view family) const {
  const auto found = std::find_if(sources.begin(), sources.end(), [&](const Source& source) {
    return source.provider->info().name == family;
  });
  return found == sources.end() ? nullptr : found->provider.get();
}

void Dispatcher::State::keep_trials(Entry& entry) {
  const FamilyInfo& info = entry.provider->info();
  const double best_ns = entry.trials[best_trial(entry)].best_ns;
  KeptTrials trials{.family = info.name, .rows = {}};
  for (const Option& option : entry.trials) {
    if (option.finished == 0 || option.is_refused || option.config.words.empty()) {
      continue;  // it did not run, or names no config
    }
    Measurement row{
        .problem = *entry.kind->problem, .config = option.config, .context = trial_context(info)};
    if (option.finished < options.measure_rounds && option.is_hopeless) {
      row.outcome = Outcome::kCensored;
      row.metrics = {{kTimeNs, std::max(kHopelessTrial * best_ns, kBoundShare * option.best_ns)}};
    } else {
      row.metrics = timing_metrics({option.samples_ns.begin(), option.samples_ns.end()});
    }
    trials.rows.push_back(std::move(row));
  }
  kept.put(*entry.kind, std::move(trials));
  entry.kind.reset();
}

Result<std::size_t> Dispatcher::append_trials(const std::filesystem::path& path,
                                              std::string_view family) {
  DatasetHeader header;
  {
    const std::shared_lock lock(state_->mutex);
    const KernelProvider* const provider = state_->provider_of(family);
    if (provider == nullptr) {
      return fail(ErrorCode::kNotFound, "the dispatcher has no family ", family);
    }
    header = header_of(provider->info());
    header.created_by = "dispatcher";
  }
  FORETUNE_TRY(const std::unique_ptr<JournalWriter> journal, open_when_free(path, header));
  std::vector<Measurement> rows;
  {
    const std::lock_guard lock(state_->trials_mutex);
    state_->kept.for_each([&](const State::CallKind&, const State::KeptTrials& trials) {
      if (trials.family == family) {
        rows.insert(rows.end(), trials.rows.begin(), trials.rows.end());
      }
    });
  }
  std::size_t appended = 0;
  for (const Measurement& row : rows) {
    if (!journal->contains(row.problem, row.config, row.context)) {
      FORETUNE_TRY_STATUS(journal->append(row));
      ++appended;
    }
  }
  // The rows in the file are forgotten; of trials that ended meanwhile, none is.
  const std::lock_guard lock(state_->trials_mutex);
  std::vector<State::CallKind> written;
  state_->kept.for_each([&](const State::CallKind& kind, const State::KeptTrials& trials) {
    if (trials.family == family && std::ranges::all_of(trials.rows, [&](const Measurement& each) {
          return journal->contains(each.problem, each.config, each.context);
        })) {
      written.push_back(kind);
    }
  });
  for (const State::CallKind& kind : written) {
    state_->kept.erase(kind);
  }
  return appended;
}

Result<std::size_t> Dispatcher::State::take_trials(Dataset trials) {
  trials.deduplicate();
  const DatasetHeader& header = trials.header();
  const std::unique_lock lock(mutex);
  const KernelProvider* const provider = provider_of(header.family);
  if (provider == nullptr) {
    return fail(ErrorCode::kMismatch, "these are measurements of ", header.family,
                ", which is no family of this dispatcher");
  }
  const FamilyInfo& info = provider->info();
  if (!adds_labels_only(info.config_schema, header.config_schema)) {
    return fail(ErrorCode::kMismatch, "these are measurements of another version of ", info.name);
  }
  if (header.fingerprint.digest() != info.fingerprint.digest()) {
    return fail(ErrorCode::kMismatch, "these are measurements of another machine");
  }
  BoundedMap<Problem, Remembered> loaded(options.max_remembered);
  for (const std::vector<RowIndex>& of_problem : trials.rows_by_problem()) {
    const Dataset::Row* best = nullptr;
    for (const RowIndex index : of_problem) {
      const Dataset::Row& row = trials.rows()[index];
      const Context& context = trials.contexts()[row.context];
      // A comparison's times mean something only beside each other.
      if (row.is_timed() && !row.is_evaluation() && (row.flags & kFlagReference) == 0 &&
          context.machine == info.fingerprint.digest() && context.threads == info.max_threads &&
          (best == nullptr ||
           std::pair(context.fidelity, row.time_ns) <
               std::pair(trials.contexts()[best->context].fidelity, best->time_ns))) {
        best = &row;
      }
    }
    if (best != nullptr) {
      loaded.put(trials.problems()[best->problem],
                 {.family = info.name,
                  .config = {.schema = info.config_schema.id(),
                             .words = trials.configs()[best->config].words},
                  .nanoseconds = static_cast<double>(best->time_ns)});
    }
  }
  return take(loaded);
}

}  // namespace foretune
