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

// What keeps problems together.
enum class GroupKey : std::uint8_t {
  kProblem,  // Problem::group()
  // The key of composable_kernel's training: m, n, k of a product; of a convolution all sizes but
  // strides, pads and the dilation of the depth. Coarser than Problem::group(). Other problems have
  // no such key and keep their group.
  kSizes,
};
std::uint64_t group_of(const Problem& problem, GroupKey key);

// Fold number (0 <= fold < folds) of every problem. Groups are shuffled, then dealt out so that the
// folds hold nearly equal numbers of problems.
std::vector<std::uint32_t> group_folds(std::span<const Problem> problems, std::uint32_t folds,
                                       Rng& rng, GroupKey key = GroupKey::kProblem);

}  // namespace foretune
