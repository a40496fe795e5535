// Splits by group: problems that share sizes never stand on both sides.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
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
  // Problems with the same weights: n and k of a product; channels, filters, groups, filter size,
  // strides and dilations of a convolution. One layer at several batch or map sizes is one group.
  kWeights,
};
// "problem", "sizes", "weights".
std::span<const std::string_view> group_key_names();
std::string_view to_string(GroupKey key);
// Errors: kInvalidArgument, with the names.
Result<GroupKey> parse_group_key(std::string_view text);

std::uint64_t group_of(const Problem& problem, GroupKey key);

// Fold number (0 <= fold < folds) of every problem. Groups are shuffled, then dealt out so that the
// folds hold nearly equal numbers of problems.
std::vector<std::uint32_t> group_folds(std::span<const Problem> problems, std::uint32_t folds,
                                       Rng& rng, GroupKey key = GroupKey::kProblem);

}  // namespace foretune
