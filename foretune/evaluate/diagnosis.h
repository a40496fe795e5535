// What an evaluation says beside its efficiencies: where they are high and low, how well times are
// predicted, what was compared with what, and what may make the figures worthless. Internal to
// evaluate.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foretune/evaluate/baselines.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/measured_times.h"

namespace foretune::evaluate_internal {

// `ranked` by ascending problem, those evaluated only, as in `input.evaluated`.
struct DiagnosisInput {
  const BaselineInput& input;
  std::span<const RankedProblem* const> ranked;
};

// rmse_log, rmse_log_absolute, Spearman, points.
void describe_predictions(const DiagnosisInput& diagnosis, Evaluation& out);
// slices, from out.model; those within a pipeline from the ranking.
void describe_slices(const DiagnosisInput& diagnosis, Evaluation& out);
// worst and map, from out.model.
void describe_problems(const DiagnosisInput& diagnosis, Evaluation& out);
// facts, warnings and the counts of problems; last, for it looks at everything else.
void describe_data(const DiagnosisInput& diagnosis, Evaluation& out);

// The points of the scatter plot are at most so many.
inline constexpr std::size_t kMostPoints = 3000;
// Of the data set's warnings.
inline constexpr std::size_t kFewProblems = 20;
inline constexpr std::size_t kFewCandidates = 256;

}  // namespace foretune::evaluate_internal
