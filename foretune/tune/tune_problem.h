// Tuning one problem: a strategy proposes configs, a measurer times them, and the best are timed
// once more against each other and against the family's default config, interleaved, so that the
// answer is not the luckiest of many noisy times.
//
//   TuneOptions options{.strategy = "local", .budget = {.seconds = 60}};
//   FORETUNE_TRY(const TuneResult result,
//                tune_problem(family, *measurer, journal.get(), problem, options, hooks));
//   use(result.finalists.front().config);
//
// Thread safety: one call belongs to one thread; hooks.stop may be set from a signal handler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/journal.h"
#include "foretune/family/family.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/problem.h"
#include "foretune/search/strategy.h"
#include "foretune/tune/collect.h"

namespace foretune {

struct TuneOptions {
  std::string strategy = "local";
  const Scorer* scorer = nullptr;  // what the strategy "model" needs
  // Of this problem, the final comparison included. Without one, until the strategy has nothing
  // left to try.
  Budget budget;
  std::uint64_t seed = 42;
  std::vector<Config> first;  // measured before the strategy is asked; illegal ones are left out
  int finalists = 8;          // at least 1
  int rounds = 15;            // of the final comparison
};

struct TunedConfig {
  Config config;
  double time_ns = 0;  // median of the final comparison
  double spread = 0;   // relative
};

struct TuneResult {
  std::vector<TunedConfig> finalists;     // best first; never empty
  std::optional<TunedConfig> by_default;  // the family's default config, in the same comparison
  CollectProgress progress;
  std::optional<std::uint64_t> legal_configs;  // when the space can be counted
  bool exhausted = false;                      // every config that the strategy knows was tried
  bool stopped_by_request = false;
};

// Every measurement is appended to `journal` when there is one; those of the final comparison carry
// kFlagReference and kReferenceFidelity. hooks.now_s is needed for a time budget.
// Errors: kUnsupported with the reason when the family does not do the problem or nothing could be
// measured; those of the strategy and the journal; kInvalidArgument for a time budget without a
// clock; kIo when no worker can be started.
Result<TuneResult> tune_problem(const Family& family, Measurer& measurer, JournalWriter* journal,
                                const Problem& problem, const TuneOptions& options,
                                const CollectHooks& hooks);

}  // namespace foretune
