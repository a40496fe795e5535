// Compares an old model with a new one on the same problems: how often they pick the same, how much
// the new one gains and loses, and whether it may replace the old.
//
//   FORETUNE_TRY(const auto before, parse_picks(old_report));  // of validate-model --json
//   FORETUNE_TRY(const ModelComparison comparison, compare_models(before, evaluation.picks, {}));
//   print(comparison_text(comparison, 10, true));
//
// The rules are those for CK Tile's heuristics (its README, "quality check").
// Thread safety: free functions without state. Cost: a bootstrap over the problems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/evaluate/evaluate.h"

namespace foretune {

// The largest accepted losses of the new model, as shares of the old value.
struct AcceptanceRules {
  double mean = 0.005;
  double median = 0.005;
  double p10 = 0.02;
  double problem = 0.10;  // of any single problem's efficiency
};

struct RuleVerdict {
  std::string rule;   // "mean efficiency"
  double loss = 0;    // share of the old value; negative: a gain
  double limit = 0;   // at most
  std::string where;  // the problem, for the rule about single ones
  [[nodiscard]] bool kept() const { return loss <= limit; }
};

struct ComparedProblem {
  std::string problem;
  std::string old_pick;
  std::string new_pick;
  double old_efficiency = 0;
  double new_efficiency = 0;
  [[nodiscard]] double change() const { return new_efficiency - old_efficiency; }
};

struct ModelComparison {
  std::vector<ComparedProblem> problems;  // worst change first
  std::size_t only_old = 0;               // problems that the new side lacks: not compared
  std::size_t only_new = 0;
  std::size_t other_best = 0;  // problems whose best known times differ by more than a tie
  std::size_t same_picks = 0;
  std::size_t improved = 0;  // by more than a tie
  std::size_t degraded = 0;
  // New minus old, with intervals of the paired bootstrap over problems.
  Interval mean_change;
  Interval median_change;
  Interval p10_change;
  double old_mean = 0;
  double new_mean = 0;
  std::vector<RuleVerdict> rules;
  [[nodiscard]] bool accepted() const;
};

// Errors: kInvalidArgument when the two share no problem, or one has a problem twice.
Result<ModelComparison> compare_models(std::span<const PickedProblem> before,
                                       std::span<const PickedProblem> after,
                                       const AcceptanceRules& rules, std::uint64_t seed = 42);

// Parses the picks in a report of validate-model --json, or what picks_csv() writes. Errors:
// kCorrupt with the missing part.
Result<std::vector<PickedProblem>> parse_picks(std::string_view report);
// Returns a table of the picks: problem, best_ns, pick_ns, efficiency, pick. A pick without a time
// has no pick_ns.
std::string picks_csv(std::span<const PickedProblem> picks);

}  // namespace foretune
