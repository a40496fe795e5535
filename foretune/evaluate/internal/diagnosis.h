// The parts of an evaluation besides efficiencies: where they are high and low, how well times are
// predicted, which data were compared, and which facts may make the figures worthless. Internal to
// evaluate.
// Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/internal/baselines.h"
#include "foretune/evaluate/measured_times.h"

namespace foretune::evaluate_internal {

// `ranked` has only the evaluated problems, in the ascending order of `input.evaluated`.
struct DiagnosisInput {
  const BaselineInput& input;
  std::span<const RankedProblem* const> ranked;
};

// Fills errors of the log time, shares within the stated error, Spearman, CK's metrics and points.
void describe_predictions(const DiagnosisInput& diagnosis, Evaluation& out);
// Fills slices, from out.model; those within a pipeline from the ranking.
void describe_slices(const DiagnosisInput& diagnosis, Evaluation& out);
// Fills worst and map, from out.model.
void describe_problems(const DiagnosisInput& diagnosis, Evaluation& out);
// Fills facts, warnings and the counts of problems. Runs last, since it needs everything else.
void describe_data(const DiagnosisInput& diagnosis, Evaluation& out);

// The largest number of points in the scatter plot.
inline constexpr std::size_t kMaxPoints = 3000;
// Limits for warnings about the data set.
inline constexpr std::size_t kFewProblems = 20;
inline constexpr std::size_t kFewCandidates = 256;

}  // namespace foretune::evaluate_internal
