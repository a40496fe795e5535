// Chooses the configs of a problem to measure next for a model, and the problems that deserve more.
// Pure functions of predictions; collect_active() has the loop around them.
//
//   FORETUNE_TRY(const ActivePolicy policy, find_active_policy("mixed"));
//   for (const std::size_t i : choose_candidates(policy, {scores, uncertainty, incumbent}, 5, rng))
//   {
//     measure(candidates[i]);
//   }
//
// Thread safety: free functions without state. Cost: a sort of the candidates for each of the
// policy's aims.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/rng.h"

namespace foretune {

// Shares of the measurements by their aim. The rest is drawn at random.
struct ActivePolicy {
  std::string_view name;
  std::string_view description;
  double best = 0;       // the best predictions
  double improving = 0;  // the largest expected improvement
  double uncertain = 0;  // the largest disagreement
  // Every problem gets one config, and the half with the largest expected improvement gets the
  // rest; otherwise all get the same number.
  bool by_need = false;

  // True when the policy uses a model at all.
  [[nodiscard]] bool wants_model() const { return best + improving + uncertain > 0 || by_need; }
};

// Returns all policies, the default first.
std::span<const ActivePolicy> active_policies();
// Errors: kNotFound with the known names.
Result<ActivePolicy> find_active_policy(std::string_view name);

// A model's predictions for the candidates of one problem. Scores are those of a Scorer: logarithms
// of time up to a constant.
struct CandidateScores {
  std::span<const double> scores;
  std::span<const double> uncertainty;  // one standard deviation; as many
  double incumbent = 0;                 // the best score among the configs measured already
};

// Returns the expected reduction of the best log time by measuring a candidate, if predictions are
// normally distributed about their score (expected improvement: Mockus 1975; Jones, Schonlau, Welch
// 1998).
double expected_improvement(double score, double uncertainty, double incumbent);
// Returns the largest expected improvement; 0 without candidates.
double largest_improvement(const CandidateScores& candidates);

// Returns the positions of `count` different candidates, or of all when there are fewer. NaN scores
// come last. The same arguments and generator give the same answer.
std::vector<std::size_t> choose_candidates(const ActivePolicy& policy,
                                           const CandidateScores& candidates, std::size_t count,
                                           Rng& rng);

// Returns each problem's share of `total` measurements, at most its `room`; `needs` are as from
// largest_improvement(). Measurements beyond a problem's room go to the others.
std::vector<std::size_t> share_out(std::size_t total, std::span<const double> needs,
                                   std::span<const std::size_t> room, bool by_need);

}  // namespace foretune
