// Collects a data set: problems x configs -> measure -> journal, under a budget, resumable. An
// observer receives all events; nothing here prints or reads a clock that is not passed in. The
// configs of a problem depend only on the seed and the problem, so an interrupted collection
// reaches the same set when it runs again.
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

// "90s", "15m" and "2h" are times; "500" is a number of measurements.
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
// How many of a model's best are compared with the best known of a problem: those that reports
// judge when the fastest of them is kept.
inline constexpr std::size_t kComparedPicks = 5;

struct CollectOptions {
  SearchSpaceChoice search_space;
  Budget budget;
  std::uint64_t seed = 42;
  // Returns the configs to measure on a problem before the sample (only legal ones are measured): a
  // model's best, or a known good default, which also sets the incumbent for early stopping. May be
  // empty.
  std::function<std::vector<Config>(const Problem&)> first;
  // Validation sets: re-measure the best `confirm_top` of each problem interleaved,
  // `confirm_rounds` rounds, so that the oracle is not the luckiest of many noisy times. The first
  // kComparedPicks of `first` are re-measured with them, except those that were slow enough to be
  // stopped early. 0: off. The rows have kFlagReference and a context whose fidelity is
  // kReferenceFidelity.
  int confirm_top = 0;
  int confirm_rounds = kCompareRounds;
  // The journal's contents, when it was read: has the incumbents (and the candidates to confirm and
  // to evaluate) of problems that an earlier run began. Not owned.
  const Dataset* previous = nullptr;
  // Rows that other journals hold of the same problems: not measured again, and known times like
  // those of `previous`. Not owned.
  const Dataset* elsewhere = nullptr;
  // Metrics of MetricStage::kEvaluation to measure for every config of a problem that ran well,
  // after all are timed. Each is a row of its own, and is resumed separately.
  std::vector<std::string> evaluate = {};
};

// Fidelity of re-measured rows. It is below 0 (one full measurement) because it costs more. The
// separate context distinguishes them from the first measurement of the same config.
inline constexpr std::int32_t kReferenceFidelity = -1;

struct CollectProgress {
  std::uint64_t problems_done = 0;
  std::uint64_t problems_total = 0;
  std::uint64_t measured = 0;        // in this run
  std::uint64_t planned = 0;         // total measurements, when known
  std::uint64_t resumed = 0;         // found in the journal, not repeated
  std::uint64_t by_outcome[7] = {};  // NOLINT(modernize-avoid-c-arrays)
  double elapsed_s = 0;
  double eta_s = -1;
  std::string problem;  // the current one
  double best_ns = -1;  // of the current problem
  std::string best_config;
  // When tuning for another target than time: its best value, and that as text.
  double best_target = 0;
  std::string best_text;
  std::uint64_t evaluated = 0;  // in a later stage, in this run; `measured` includes them
  // For an active collection (active.h); 0 otherwise. The other counts then cover all its rounds,
  // except problems_done, which covers the current round and at the end all rounds.
  std::uint32_t round = 0;
  std::uint32_t rounds = 0;
  std::uint32_t trainings = 0;
  double training_s = 0;

  // Appends a measurement to `journal` where there is one, and counts it. Errors: those of the
  // journal; kIo when no worker could be started, which no config causes.
  Status keep(const Measurement& measurement, JournalWriter* journal);
  // Notes a good time of the current problem.
  void learn(double time_ns, const Config& config, const ConfigSchema& schema);
};

struct CollectResult {
  CollectProgress progress;
  bool stopped_by_budget = false;
  bool stopped_by_request = false;
  // Reasons for leaving out problems, with counts.
  std::vector<std::pair<std::string, std::uint64_t>> skipped;
};

struct CollectHooks {
  std::function<void(const CollectProgress&)> on_progress;  // after every measurement
  std::function<void(std::uint64_t problems_done)> on_problem_done;
  std::function<double()> now_s;  // monotonic seconds; needed for a time budget and the ETA
  const std::atomic<bool>* stop = nullptr;
  // Returns false once another process has taken this work over. Called before every measurement
  // and again before it is kept. May be empty.
  std::function<bool()> may_go_on;

  [[nodiscard]] bool wants_stop() const {
    return (stop != nullptr && stop->load(std::memory_order_relaxed)) ||
           (may_go_on && !may_go_on());
  }
  // Errors: kCancelled once may_go_on() returns false. The measurement is then not kept.
  [[nodiscard]] Status may_keep() const;
};

// The counts and estimated duration of a collection, without measuring (--dry-run).
struct CollectPlan {
  std::uint64_t problems = 0;
  std::uint64_t measurements = 0;
  std::uint64_t already_done = 0;
  double estimated_seconds = 0;
  std::vector<std::pair<std::string, std::uint64_t>> skipped;
};
// The estimate assumes kernels at a quarter of the machine's peak.
Result<CollectPlan> plan_collection(const Family& family, std::span<const Problem> problems,
                                    const CollectOptions& options, const Protocol& protocol,
                                    const JournalWriter* journal, const Context& context);

// Measures problem by problem, each with its sample, so that a budget that ends early leaves whole
// problems. Repeated problems, unsupported ones and those without legal configs are skipped and
// counted.
// Errors: those of the journal; kIo when no worker can be started (the config is not to blame, so
// nothing is recorded for it); kInvalidArgument for a time budget without a clock.
Result<CollectResult> collect(const Family& family, Measurer& measurer, JournalWriter& journal,
                              std::span<const Problem> problems, const CollectOptions& options,
                              const CollectHooks& hooks);

}  // namespace foretune
