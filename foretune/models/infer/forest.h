// Boosted regression trees as plain arrays, and their exact evaluation. Predictions equal
// LightGBM's to the last bit: the same comparisons on doubles, leaf values summed in tree order.
// Thread safety: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune {

// Values up to this size count as zero; LightGBM stores the constant as a float.
inline constexpr double kForestZero = static_cast<double>(1e-35F);

// All trees, one after another. Child >= 0 is a node of the same tree, child < 0 is leaf ~child.
struct Forest {
  struct Tree {
    std::uint32_t first_node = 0;
    std::uint32_t node_count = 0;  // 0: the tree is one leaf
    std::uint32_t first_leaf = 0;
    std::uint32_t leaf_count = 0;
    bool operator==(const Tree&) const = default;
  };
  // Stored in files: never renumber. As LightGBM's missing types.
  enum class Missing : std::uint8_t { kNone = 0, kZero = 1, kNan = 2 };

  std::uint32_t feature_count = 0;
  std::vector<Tree> trees;
  std::vector<std::uint32_t> feature;      // per node
  std::vector<double> threshold;           // per node: go left when value <= threshold
  std::vector<std::int32_t> left;          // per node
  std::vector<std::int32_t> right;         // per node
  std::vector<std::uint8_t> default_left;  // per node: where missing values go
  std::vector<Missing> missing;            // per node
  std::vector<double> leaf_value;

  // Checks every index, that each tree is a tree, that leaf values are finite and thresholds
  // numbers.
  Status validate() const;
  bool operator==(const Forest&) const = default;
};

// The slow, obviously right evaluation of one row of at least feature_count values.
double predict_reference(const Forest& forest, std::span<const double> row);

// Reads the text that LightGBM's SaveModelToString writes: numerical splits, one output, an
// objective whose prediction is the sum of the leaves. Anything else is refused with the reason.
Result<Forest> parse_lightgbm_text(std::string_view text);

}  // namespace foretune
