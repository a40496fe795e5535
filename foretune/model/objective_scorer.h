// Makes the pool of a scorer of several metrics follow an objective with one target. Scores are z
// of the target where all bounds are predicted to hold. Elsewhere they lie above kInfeasibleScore,
// the higher the farther bounds are predicted to be missed.
//
//   FORETUNE_TRY(const Judge judge, judge_of(objective, scorer->columns()));
//   FORETUNE_TRY(const auto following, objective_pool(std::move(pool), scorer->columns(), judge));
//
// Thread safety and cost: as the pool's; columns that the objective does not name are not scored.
// Nothing is allocated by score().
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/metrics/objective.h"
#include "foretune/model/scorer.h"

namespace foretune {

// More than any z.
inline constexpr double kInfeasibleScore = 1e6;
inline bool keeps_bounds(double score) { return score < kInfeasibleScore; }

// Returns the column of the metric; nothing where there is none.
std::optional<std::size_t> column_of(std::span<const ScoreColumn> columns, std::string_view metric);

// The objective as these columns can be judged by it. Errors: kNotFound for a metric that there is
// no column of, with those that there are; kUnsupported for a bound on what is known up to a factor
// only; kInvalidArgument for bounds relative to a baseline, of which predictions know nothing, and
// those of Judge::create().
Result<Judge> judge_of(const Objective& objective, std::span<const ScoreColumn> columns);

// Succeeds where a scorer can follow the judge. Errors: kUnsupported for a Pareto objective, which
// puts configs in no single order, and for a bound on what is known up to a factor only; kNotFound
// as judge_of().
Status check_followed(const Judge& judge, std::span<const ScoreColumn> columns);

// Returns a pool of one column, the target's; `columns` are those of `pool`. Errors: those of
// check_followed().
Result<std::unique_ptr<PreparedPool>> objective_pool(std::shared_ptr<const PreparedPool> pool,
                                                     std::span<const ScoreColumn> columns,
                                                     const Judge& judge);

}  // namespace foretune
