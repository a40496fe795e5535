// Splits by group: problems that share sizes are never on both sides.
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

// The key by which problems stay together.
enum class GroupKey : std::uint8_t {
  kProblem,  // Problem::group()
  // The key of composable_kernel's training: m, n, k of a product; all sizes of a convolution
  // except strides, pads and the dilation of the depth. It is coarser than Problem::group(). Other
  // problems have no such key and keep their group.
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

// Returns the fold (0 <= fold < folds) of every problem. Groups are shuffled, then dealt so that
// the folds have nearly equal numbers of problems.
std::vector<std::uint32_t> group_folds(std::span<const Problem> problems, std::uint32_t folds,
                                       Rng& rng, GroupKey key = GroupKey::kProblem);

}  // namespace foretune
