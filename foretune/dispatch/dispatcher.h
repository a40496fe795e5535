// Takes a call and returns a kernel: decides once per kind of call which config of which provider
// runs it, and keeps the kernel. The first of these that exists is chosen:
//
//   1. the choice remembered from an earlier process, or measured in this one
//   2. the model's pick, or the next in its order that can run here and keeps the margin
//   3. outside of the model's applicability domain, the config of its portfolio that it ranks first
//   4. the provider's fallback: the family's textbook config, last any legal one; or the choice of
//      the provider's own library, which also comes before 3 where the provider trusts it
//
// The dispatcher tries the providers in the order in which they were added. It skips one that does
// not support the call before it scores anything.
//
// With `measure_top` above 1 the first calls of a kind are also trials: each runs one of the
// best-ranked configs on the caller's operands, which costs only the difference to the best one,
// and the fastest stays. A trial may be reported at any later time, so that a device's clock can
// time it. Trials end after `measure_top * measure_rounds` calls or `measure_seconds`, whichever
// comes first. Their measurements can be appended to a data set, from which a later process takes
// its choices. Where the provider trusts its fallbacks, the first of them is on trial too, and the
// margin only says which config runs until there are times.
//
// The dispatcher does not know what a kernel is: providers make kernels, typed front ends
// (GemmDispatcher, CublasltDispatcher) run them.
//
// Thread safety: all members may be called by any number of threads, and in a forked child, which
// knows everything that the parent knew at the fork. Cost: a known problem takes a look-up under a
// shared lock (about 100 ns), a new one takes the time of its scoring (milliseconds).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dispatch/kernel_provider.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/problem.h"
#include "foretune/space/config.h"

namespace foretune {

class Dataset;

struct DispatchOptions {
  int measure_top = 0;         // configs to try; 0 and 1 measure nothing
  int measure_rounds = 3;      // calls of each; at least 1
  double measure_seconds = 1;  // per kind of call
  // The predicted gain (difference of ln time) that a model's pick needs over the provider's
  // baseline; 0: no gain is needed.
  double margin = 0;
  // Asks the distilled model first, which picks from the portfolio in a microsecond and ignores the
  // margin.
  bool fast = false;
  // Kinds of calls kept with their kernels; beyond this number, those that came first are
  // forgotten.
  std::size_t max_problems = 4096;
  // Measured or loaded choices kept, without kernels; beyond this number, the oldest are forgotten.
  std::size_t max_remembered = 16384;
  // Keeps what the trials measured for append_trials(), of the newest `max_remembered` kinds.
  bool keep_trials = false;
};

// How many configs of a model's ranking may be refused before the dispatcher falls back.
inline constexpr std::size_t kMostRefusals = 8;

// The config that runs a call, and the reason for it.
struct Decision {
  std::string family;
  Config config;
  std::string config_text;
  ChoiceSource source = ChoiceSource::kModel;
  std::string note;         // why no better source was used: the selector's or a family's refusal
  double measured_ns = -1;  // fastest call of the trials, or the remembered time; -1: unknown
  bool is_settled = true;   // false while trials go on
  std::shared_ptr<const void> kernel;
  // Returns source, config and note as one line: "default: isa=avx512 ...; The problem lies ...".
  [[nodiscard]] std::string text() const;
};

class Dispatcher {
 public:
  explicit Dispatcher(const DispatchOptions& options);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Adds a provider. Earlier calls are decided again, except those with a measured choice. Errors:
  // kMismatch when the model is of another kind of problem or config schema, or of a family that
  // the provider does not take models of.
  Status add(std::shared_ptr<const KernelProvider> provider, std::optional<Model> model);

  // The kernel for the next call of its kind.
  class Turn {
   public:
    [[nodiscard]] const void* kernel() const { return kernel_.get(); }
    [[nodiscard]] const std::shared_ptr<const void>& shared_kernel() const { return kernel_; }
    // Returns true when the call is a trial; its duration has to be passed to report().
    [[nodiscard]] bool is_trial() const { return trial_ >= 0; }
    // Returns true for the first trial of its kernel: what is made or loaded when a kernel first
    // runs counts in its time.
    [[nodiscard]] bool is_first() const { return is_first_; }
    // Returns a bound of the nanoseconds that a run of the kernel takes, from its earlier trials;
    // infinity before any has ended, and for a final kernel.
    [[nodiscard]] double at_most_ns() const { return at_most_ns_; }
    // Returns the least of the bounds of all kernels on trial.
    [[nodiscard]] double fastest_ns() const { return fastest_ns_; }
    // Returns true when later calls of the kind get the same kernel.
    [[nodiscard]] bool is_final() const { return is_final_; }

   private:
    friend class Dispatcher;
    std::shared_ptr<void> entry_;
    std::shared_ptr<const void> kernel_;
    int trial_ = -1;
    double at_most_ns_ = std::numeric_limits<double>::infinity();
    double fastest_ns_ = std::numeric_limits<double>::infinity();
    bool is_first_ = false;
    bool is_final_ = false;
  };
  // Errors: kUnsupported when no provider runs the call, with the reason of each. Every trial has
  // to be reported, abandoned or refused: until then it counts as running.
  Result<Turn> next(const DispatchCall& call);
  void report(const Turn& turn, double nanoseconds);
  // Gives a trial back, whose run took no longer than `at_most_ns` if that is known.
  void abandon(const Turn& turn, double at_most_ns = std::numeric_limits<double>::infinity());
  // Takes back a kernel that could not run the call after all, and returns another one: the best of
  // the other trials, else a fallback of the provider, with `reason` as its note. Errors: as
  // next().
  Result<Turn> replace(const DispatchCall& call, const Turn& refused, const std::string& reason);
  // Runs a call on the host: passes the kernel to `run` and times it if it is a trial. Returns what
  // `run` returns, whose errors abandon a trial. Errors also: as next().
  template <class Run>
  Status run(const DispatchCall& call, const Run& run) {
    FORETUNE_TRY(const Turn turn, next(call));
    if (!turn.is_trial()) {
      return run(turn.kernel());
    }
    const auto start = std::chrono::steady_clock::now();
    if (Status status = run(turn.kernel()); !status) {
      abandon(turn);
      return status;
    }
    const std::chrono::duration<double, std::nano> elapsed =
        std::chrono::steady_clock::now() - start;
    report(turn, elapsed.count());
    return {};
  }
  // Returns the chosen kernel, never a trial. While trials go on, it is the best so far, at first
  // the model's pick. Errors: as next().
  Result<Turn> best(const DispatchCall& call);
  // Returns what runs the call without a model, for a caller that does not wait for a decision. It
  // is made anew at each call and not kept. Errors: as next().
  Result<Decision> without_model(const DispatchCall& call, const std::string& reason) const;
  // Returns true when a choice for the call was loaded or measured earlier.
  [[nodiscard]] bool remembers(const DispatchCall& call) const;

  // Returns the kernels that the next call may get: the chosen one, or those on trial. Errors: as
  // next().
  Result<std::vector<std::shared_ptr<const void>>> kernels(const DispatchCall& call);

  // Errors: as next().
  Result<Decision> decision(const DispatchCall& call);

  // Appends the trials kept since the last call to the data set (.ftd) at `path`, one measurement
  // for each config that ran, and returns how many: those that the file has already are left out.
  // A config given up early is censored. Several processes may append to one file; this waits up
  // to a second for another. Errors: kNotFound for a family that was not added; kIo, kCorrupt and
  // kMismatch as JournalWriter::open(). The trials stay kept then.
  Result<std::size_t> append_trials(const std::filesystem::path& path, std::string_view family);
  // Reads a data set of append_trials() or `foretune collect`, whose fastest config of each problem
  // is its choice, or a file with a text of choices. Returns how many choices were taken over: of
  // more than `max_remembered`, the last. Errors: kIo, kCorrupt with the position, kMismatch for a
  // file of another machine and for a data set of a family that was not added, or of another
  // version of it; nothing is taken over then.
  Result<std::size_t> load_choices(const std::filesystem::path& path);
  // Takes over the fastest configs of a data set as load_choices() does.
  Result<std::size_t> take_choices(Dataset trials);
  // Returns the measured and remembered choices, including those of problems forgotten since, as
  // lines "family, problem, config, nanoseconds" with tabs, under a head that names the machine.
  [[nodiscard]] std::string choices_text() const;
  // Takes over such a text as load_choices() does. Skips lines of families that were not added.
  Result<std::size_t> take_choices(std::string_view text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune
