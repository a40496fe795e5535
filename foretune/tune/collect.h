// Collecting a data set: problems x configs -> measure -> journal, under a budget, resumable.
// Everything that happens is told to an observer; nothing here prints or reads a clock that is not
// passed in. Which configs a problem gets depends only on the seed and the problem, so a collection
// that was interrupted anywhere reaches the same set when it is run again.
//
//   CollectOptions options{.search_space = {.sample_size = 64}, .budget = {.seconds = 90}};
//   FORETUNE_TRY(const CollectResult result,
//                collect(family, *measurer, *journal, problems, options, hooks));
//
// Thread safety: one collection belongs to one thread; `stop` may be set from a signal handler.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"
#include "foretune/dataset/journal.h"
#include "foretune/family/family.h"
#include "foretune/measure/measure.h"
#include "foretune/search/strategy.h"

namespace foretune {

// "90s", "15m", "2h" are time; "500" is a number of measurements.
struct Budget {
  std::optional<double> seconds;
  std::optional<std::uint64_t> measurements;
};
Result<Budget> parse_budget(std::string_view text);

// "DEFAULT": the family's small stratified sample (64 configs), "EXHAUSTIVE": every legal config,
// "SAMPLE:n": n stratified ones. A sample_size of 0 leaves only CollectOptions::first.
struct SearchSpaceChoice {
  bool exhaustive = false;
  std::size_t sample_size = 64;
};
Result<SearchSpaceChoice> parse_search_space(std::string_view text);

// Rounds of a comparison: enough that each config is timed undisturbed at least once.
inline constexpr int kCompareRounds = 30;

struct CollectOptions {
  SearchSpaceChoice search_space;
  Budget budget;
  std::uint64_t seed = 42;
  // Configs measured first on a problem (those that are legal there), before the sample: a model's
  // best, or a known good default, which also sets the incumbent for early stopping. May be empty.
  std::function<std::vector<Config>(const Problem&)> first;
  // Validation sets: re-measure the best `confirm_top` of each problem interleaved,
  // `confirm_rounds` rounds, so that the oracle is not the luckiest of many noisy times; beside
  // them the first of `first`, unless it was slow enough to be stopped early. 0: off.
  // The rows carry kFlagReference and a context whose fidelity is kReferenceFidelity.
  int confirm_top = 0;
  int confirm_rounds = kCompareRounds;
  // What the journal holds already, when it was read: gives the incumbents (and the candidates to
  // confirm and to evaluate) of problems that an earlier run began. Not owned.
  const Dataset* previous = nullptr;
  // Metrics of MetricStage::kEvaluation to find out of every config of a problem that ran well,
  // when all are timed: each is a row of its own, and resumed by itself.
  std::vector<std::string> evaluate = {};
};

// Fidelity of re-measured rows: below 0, which is one full measurement, because it takes more. A
// context of its own keeps them apart from the first measurement of the same config.
inline constexpr std::int32_t kReferenceFidelity = -1;

struct CollectProgress {
  std::uint64_t problems_done = 0;
  std::uint64_t problems_total = 0;
  std::uint64_t measured = 0;        // in this run
  std::uint64_t planned = 0;         // measurements in all, when known
  std::uint64_t resumed = 0;         // found in the journal, not repeated
  std::uint64_t by_outcome[7] = {};  // NOLINT(modernize-avoid-c-arrays)
  double elapsed_s = 0;
  double eta_s = -1;
  std::string problem;  // the current one
  double best_ns = -1;  // of the current problem
  std::string best_config;
  // Where another target than the time is tuned for: the best of it, and as text.
  double best_target = 0;
  std::string best_text;
  std::uint64_t evaluated = 0;  // in a later stage, in this run; `measured` counts them, too
  // Of an active collection (active.h); 0 otherwise. The other counts are of all its rounds, but
  // for problems_done, which is of the round and in the end of all.
  std::uint32_t round = 0;
  std::uint32_t rounds = 0;
  std::uint32_t trainings = 0;
  double training_s = 0;

  // Counts a measurement, after it was appended to `journal` where there is one. Errors: what the
  // journal refuses; kIo when no worker could be started: no config causes that.
  Status keep(const Measurement& measurement, JournalWriter* journal);
  // A good time of the current problem.
  void learn(double time_ns, const Config& config, const ConfigSchema& schema);
};

struct CollectResult {
  CollectProgress progress;
  bool stopped_by_budget = false;
  bool stopped_by_request = false;
  // Problems left out and why: reason, count.
  std::vector<std::pair<std::string, std::uint64_t>> skipped;
};

struct CollectHooks {
  std::function<void(const CollectProgress&)> on_progress;  // after every measurement
  std::function<void(std::uint64_t problems_done)> on_problem_done;
  std::function<double()> now_s;  // monotonic seconds; needed for a time budget and the ETA
  const std::atomic<bool>* stop = nullptr;

  [[nodiscard]] bool wants_stop() const {
    return stop != nullptr && stop->load(std::memory_order_relaxed);
  }
};

// The counts and estimated duration of a collection, without measuring (--dry-run).
struct CollectPlan {
  std::uint64_t problems = 0;
  std::uint64_t measurements = 0;
  std::uint64_t already_done = 0;
  double estimated_seconds = 0;
  std::vector<std::pair<std::string, std::uint64_t>> skipped;
};
// The estimate supposes kernels that reach a quarter of the machine's peak.
Result<CollectPlan> plan_collection(const Family& family, std::span<const Problem> problems,
                                    const CollectOptions& options, const Protocol& protocol,
                                    const JournalWriter* journal, const Context& context);

// Problem by problem, each with its sample, so that a budget that ends early leaves whole problems.
// A repeated problem, an unsupported one and one without legal configs are skipped and counted.
// Errors: what the journal refuses; kIo when no worker can be started (the config is not to blame,
// so nothing is recorded for it); kInvalidArgument for a time budget without a clock.
Result<CollectResult> collect(const Family& family, Measurer& measurer, JournalWriter& journal,
                              std::span<const Problem> problems, const CollectOptions& options,
                              const CollectHooks& hooks);

}  // namespace foretune
