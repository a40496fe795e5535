// Which configs of a problem a model should have measured next, and which problems deserve more.
// Pure functions of predictions; collect_active() is the loop around them.
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

// Shares of what is measured by what it is measured for; what they leave is drawn at random.
struct ActivePolicy {
  std::string_view name;
  std::string_view description;
  double best = 0;       // the best predictions
  double improving = 0;  // the largest expected improvement
  double uncertain = 0;  // the largest disagreement
  // Every problem gets one config, and the half where the most improvement is expected the rest;
  // otherwise all get the same number.
  bool by_need = false;

  // Whether a model has a say at all.
  [[nodiscard]] bool wants_model() const { return best + improving + uncertain > 0 || by_need; }
};

// The default first.
std::span<const ActivePolicy> active_policies();
// Errors: kNotFound with the names there are.
Result<ActivePolicy> find_active_policy(std::string_view name);

// The candidates of one problem as a model sees them. Scores as a Scorer gives them: logarithms of
// time up to a constant.
struct CandidateScores {
  std::span<const double> scores;
  std::span<const double> uncertainty;  // one standard deviation; as many
  double incumbent = 0;                 // the best score among the configs measured already
};

// What measuring a candidate is expected to lower the best log time by, if predictions are normally
// distributed about their score (expected improvement: Mockus 1975; Jones, Schonlau, Welch 1998).
double expected_improvement(double score, double uncertainty, double incumbent);
// The largest one; 0 without candidates.
double largest_improvement(const CandidateScores& candidates);

// Positions of `count` different candidates, or of all when there are fewer. Scores that are not a
// number come last. The same arguments and generator give the same answer.
std::vector<std::size_t> choose_candidates(const ActivePolicy& policy,
                                           const CandidateScores& candidates, std::size_t count,
                                           Rng& rng);

// How many of `total` measurements each problem gets, at most `room` of it; `needs` as by
// largest_improvement(). What a problem has no room for goes to the others.
std::vector<std::size_t> share_out(std::size_t total, std::span<const double> needs,
                                   std::span<const std::size_t> room, bool by_need);

}  // namespace foretune
