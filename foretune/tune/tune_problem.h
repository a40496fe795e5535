// Tunes one problem: a strategy proposes configs, a measurer times them, and the best by an
// objective are timed once more, interleaved with each other and with the family's default config,
// so that the answer is not the luckiest of many noisy times.
//
//   TuneOptions options{.strategy = "local", .budget = {.seconds = 60}};
//   FORETUNE_TRY(const TuneResult result,
//                tune_problem(family, *measurer, journal.get(), problem, options, hooks));
//   use(result.finalists.front().config);
//
// With an objective of several metrics the finalists are its Pareto set:
//
//   FORETUNE_TRY(options.objective, Objective::parse("pareto time_ns pack_ns"));
//
// Thread safety: one call belongs to one thread; hooks.stop may be set from a signal handler.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/journal.h"
#include "foretune/family/family.h"
#include "foretune/measure/measure.h"
#include "foretune/metrics/metric.h"
#include "foretune/metrics/objective.h"
#include "foretune/problem/problem.h"
#include "foretune/search/strategy.h"

namespace foretune {

struct Model;

struct TuneOptions {
  // Metrics of a later stage that it names are measured after each config's timing. A config is
  // stopped early only where the objective is time alone.
  Objective objective = Objective::time();
  // Empty: only the family's default configs and `first` are measured.
  std::string strategy = "local";
  const Scorer* scorer = nullptr;  // required by the strategy "model"
  // The strategy "guided" starts from this model of the same configs, trained on other problems
  // (tune/tree_guide.h). nullptr: it starts without one.
  const Model* prior = nullptr;
  // A model that proposes configs step by step (ModelKind::make_proposer), required by the strategy
  // "policy". Before any other strategy its first `policy_proposals` are measured.
  const Model* policy = nullptr;
  std::size_t policy_proposals = 8;
  // For spaces that are built step by step; see StrategyOptions.
  std::size_t lookahead = 1;
  std::size_t width = 4;
  std::size_t max_steps = 0;
  // The budget of this problem, including the final comparison. Without one, the search runs until
  // the strategy has nothing left to try.
  Budget budget;
  std::uint64_t seed = 42;
  std::vector<Config> first;  // measured before the strategy's proposals; illegal ones are left out
  int finalists = 8;          // at least 1
  int rounds = 15;            // of the final comparison
};

struct TunedConfig {
  Config config;
  double time_ns = 0;                    // fastest window
  double spread = 0;                     // relative interquartile range
  std::vector<MetricValue> values = {};  // all metrics, including the time
  Judgement judgement = {};
  std::string text = {};  // for finalists and the default config: Space::describe()
};

// One config that the search measured.
struct TuneStep {
  Config config;
  Outcome outcome = Outcome::kOk;
  // A lower bound where the config was stopped early; infinite where it failed.
  double time_ns = std::numeric_limits<double>::infinity();
  double elapsed_s = 0;  // since tuning began, including this measurement; 0 without hooks.now_s
};

struct TuneResult {
  // Results of the final comparison; never empty. With one target: the configs that meet every
  // bound, best first. With several targets: their Pareto set, in the order of the first.
  std::vector<TunedConfig> finalists;
  std::optional<TunedConfig> by_default;  // the family's default config, in the same comparison
  // All configs with a right result, by their first measurement, in that order.
  std::vector<TunedConfig> measured;
  std::vector<TuneStep> steps;  // all measured configs, including failed ones, in order
  // Relative bounds refer to these values of the default config; empty where there is none.
  std::vector<MetricValue> baseline;
  std::optional<Judge> judge;  // of the objective; always set
  CollectProgress progress;
  std::optional<std::uint64_t> legal_configs;  // when the space can be counted
  bool exhausted = false;                      // every config that the strategy knows was tried
  bool stopped_by_request = false;
};

// Checks that the family yields every metric that the objective names. Errors: kNotFound with the
// metrics that it has.
Status check_objective(const Objective& objective, const FamilyInfo& info);

// Appends every measurement to `journal` when there is one; those of the final comparison have
// kFlagReference and kReferenceFidelity. A time budget requires hooks.now_s.
// Errors: kUnsupported with the reason when the family does not do the problem, nothing could be
// measured, or no config meets the bounds; those of check_objective() and of Judge::create(); those
// of the strategy and the journal; kInvalidArgument for a time budget without a
// clock; kIo when no worker can be started.
Result<TuneResult> tune_problem(const Family& family, Measurer& measurer, JournalWriter* journal,
                                const Problem& problem, const TuneOptions& options,
                                const CollectHooks& hooks);

// Runs the search of tune_problem() alone: nothing is timed a second time, so `finalists` are the
// best by the search's own times, and empty where no config met the bounds. The search has the
// whole budget. Errors: as above, except those of the final comparison.
Result<TuneResult> search_problem(const Family& family, Measurer& measurer, JournalWriter* journal,
                                  const Problem& problem, const TuneOptions& options,
                                  const CollectHooks& hooks);

}  // namespace foretune
