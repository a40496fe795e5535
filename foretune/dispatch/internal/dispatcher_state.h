// The state of a dispatcher, which the files that implement it share.
//
// Thread safety: see the members.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/fork.h"
#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/measurement.h"
#include "foretune/dispatch/bounded_map.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/select/select.h"

namespace foretune {

// A trial this much slower than the best so far is not repeated.
inline constexpr double kHopelessTrial = 2;

namespace dispatch_internal {

// Identifies a kind of call.
struct CallKind {
  std::optional<Problem> problem;
  std::vector<std::uint64_t> variant;

  static CallKind of(const DispatchCall& call);
  friend bool operator==(const CallKind&, const CallKind&) = default;
  friend bool operator==(const CallKind& kind, const DispatchCall& call) {
    return kind.problem.has_value() == (call.problem != nullptr) &&
           (call.problem == nullptr || *kind.problem == *call.problem) &&
           std::ranges::equal(kind.variant, call.variant);
  }
};

struct CallHash {
  using is_transparent = void;
  std::size_t operator()(const DispatchCall& call) const;
  std::size_t operator()(const CallKind& kind) const;
};

// A provider with the model that ranks its configs.
struct Source {
  std::shared_ptr<const KernelProvider> provider;
  std::shared_ptr<const Selector> selector;  // null without a model
};

// A config of a call with its kernel, and the results of its trials.
struct Option {
  Config config;
  ChoiceSource source = ChoiceSource::kModel;
  std::shared_ptr<const void> kernel;
  bool has_run = false;
  int started = 0;
  int finished = 0;
  double best_ns = std::numeric_limits<double>::infinity();
  double at_most_ns = std::numeric_limits<double>::infinity();  // of its abandoned trials
  bool is_hopeless = false;
  bool is_refused = false;        // it could not run after all
  std::vector<float> samples_ns;  // of its finished trials; only with keep_trials

  [[nodiscard]] double bound_ns() const { return std::min(at_most_ns, best_ns); }
};

// The ways to run a call.
struct Options {
  std::vector<Option> all;  // best first, each config at most once
  std::string note;         // why the model's pick is not the first of them
  bool may_be_kept = true;
};
// Makes up to `wanted` options, by the chain of fallbacks that dispatcher.h describes; without the
// model where `refusal`, the reason for that, is not empty.
Options make_options(const Source& source, const DispatchCall& call, const DispatchOptions& options,
                     const std::string& refusal);

}  // namespace dispatch_internal

struct Dispatcher::State {
  using CallHash = dispatch_internal::CallHash;
  using CallKind = dispatch_internal::CallKind;
  using Option = dispatch_internal::Option;
  using Source = dispatch_internal::Source;

  // The state of a kind of call. `settled` is set once, after `chosen`.
  struct Entry {
    std::atomic<bool> settled{false};
    Option chosen;
    std::shared_ptr<const KernelProvider> provider;
    std::string note;
    bool may_be_kept = true;
    std::vector<Option> trials;  // under trials_mutex until settled, as are the next members
    double spent_ns = 0;
    std::uint32_t generation = fork_generation();
    std::unique_ptr<const CallKind> kind;  // until the trials end; only with keep_trials
  };

  struct Remembered {
    std::string family;
    Config config;
    double nanoseconds = 0;
  };

  // The trials of a kind of call as rows of a data set.
  struct KeptTrials {
    std::string family;
    std::vector<Measurement> rows;
  };

  explicit State(const DispatchOptions& given)
      : options(given),
        kept(given.max_remembered),
        entries(given.max_problems),
        remembered(given.max_remembered) {
    options.measure_top = std::max(1, options.measure_top);
    options.measure_rounds = std::max(1, options.measure_rounds);
  }

  // `refusal`: see make_options(). Takes `mutex` for a moment only: a kernel may take a second to
  // make.
  Result<std::shared_ptr<Entry>> decide(const DispatchCall& call, const std::string& refusal) const;
  static Decision describe(const Entry& entry);  // under trials_mutex, unless it is settled
  Result<std::shared_ptr<Entry>> find(const DispatchCall& call);
  static void settle(Entry& entry);
  // Settles an entry whose trials are over. Call it under trials_mutex.
  void settle_if_complete(Entry& entry);
  // Returns the trial with the best time so far; before there is any time, the first that was not
  // refused.
  static std::size_t best_trial(const Entry& entry);
  // Returns the chosen option, or while trials go on the best of them. Call it under trials_mutex
  // unless the entry is settled.
  static const Option& best_option(const Entry& entry);
  static bool is_measured(const Entry& entry);
  // Keeps the trials of an entry that is about to settle, for append_trials(). Call it under
  // trials_mutex.
  void keep_trials(Entry& entry);
  // Returns the first provider of a family, or nullptr when it was not added. Call it under mutex.
  [[nodiscard]] const KernelProvider* provider_of(std::string_view family) const;
  // Takes over choices and returns how many. Call it under mutex.
  std::size_t take(const BoundedMap<Problem, Remembered>& loaded);
  // Takes over the fastest config of each problem of a data set. Errors: see load_choices().
  Result<std::size_t> take_trials(Dataset trials);
  // Returns the line that names the machine of a file of choices; all families have the same
  // machine.
  [[nodiscard]] std::string machine_line() const;
  // Keeps the measured choice when the entry is erased.
  void remember(const CallKind& kind, const Entry& entry);
  void forget_all();

  DispatchOptions options;
  ForkSafeMutex trials_mutex;  // of all entries' trials; taken only while there are any
  BoundedMap<CallKind, KeptTrials, CallHash> kept;  // under trials_mutex
  mutable ForkSafeSharedMutex mutex;                // of all members below
  std::uint64_t generation = 0;  // raised when earlier decisions might now differ
  std::vector<Source> sources;
  BoundedMap<CallKind, std::shared_ptr<Entry>, CallHash> entries;
  BoundedMap<Problem, Remembered> remembered;
};

}  // namespace foretune
