// Splits by group: problems that share sizes never stand on both sides.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/problem/problem.h"

namespace foretune {

// Fold number (0 <= fold < folds) of every problem. Groups are shuffled, then dealt out so that the
// folds hold nearly equal numbers of problems.
std::vector<std::uint32_t> group_folds(std::span<const Problem> problems, std::uint32_t folds,
                                       Rng& rng);

}  // namespace foretune
