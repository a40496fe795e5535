// Boosted regression trees as plain arrays, and their exact evaluation. Predictions equal
// LightGBM's to the last bit: the same comparisons on doubles, leaf values summed in tree order.
// Models of others are read and written by interop/trees.
// Thread safety: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/result.h"

namespace foretune {

// Values up to this size count as zero; LightGBM stores the constant as a float.
inline constexpr double kForestZero = static_cast<double>(1e-35F);

// Sets of categories as bits, one set after another.
struct CategorySets {
  std::vector<std::uint32_t> end;    // per set: where its words end
  std::vector<std::uint32_t> words;  // 32 categories each, the lowest in the lowest bit

  [[nodiscard]] std::size_t size() const { return end.size(); }
  [[nodiscard]] std::span<const std::uint32_t> words_of(std::size_t set) const {
    const std::size_t first = set == 0 ? 0 : end[set - 1];
    return std::span(words).subspan(first, end[set] - first);
  }
  // The category is the value without its fraction, as an int: what is negative then, does not fit
  // or is NaN is in no set.
  [[nodiscard]] bool contains(std::size_t set, double value) const {
    if (!(value > -1.0 && value < 2147483648.0)) {
      return false;
    }
    const auto category = static_cast<std::uint32_t>(value);
    const std::span<const std::uint32_t> bits = words_of(set);
    return category / 32 < bits.size() && ((bits[category / 32] >> (category % 32)) & 1U) != 0;
  }
  bool operator==(const CategorySets&) const = default;
};

// All trees, one after another. Child >= 0 is a node of the same tree, child < 0 is leaf ~child.
struct Forest {
  struct Tree {
    std::uint32_t first_node = 0;
    std::uint32_t node_count = 0;  // 0: the tree is one leaf
    std::uint32_t first_leaf = 0;
    std::uint32_t leaf_count = 0;
    bool operator==(const Tree&) const = default;
  };
  // Stored in files: never renumber. LightGBM's missing types; a node of kCategorical does not
  // compare but looks its category up.
  enum class Missing : std::uint8_t { kNone = 0, kZero = 1, kNan = 2, kCategorical = 3 };

  static constexpr std::uint32_t kMaxFeatures = 1U << 20U;

  std::uint32_t feature_count = 0;
  std::vector<Tree> trees;
  std::vector<std::uint32_t> feature;  // per node
  // Per node: go left when value <= threshold; of a categorical node the number of its set: go left
  // when the set contains the value.
  std::vector<double> threshold;
  std::vector<std::int32_t> left;          // per node
  std::vector<std::int32_t> right;         // per node
  std::vector<std::uint8_t> default_left;  // per node: where missing values go
  std::vector<Missing> missing;            // per node
  std::vector<double> leaf_value;
  CategorySets categories;  // empty without categorical nodes

  [[nodiscard]] bool is_categorical(std::size_t node) const {
    return missing[node] == Missing::kCategorical;
  }
  // Checks every index, that each tree is a tree, that leaf values are finite and thresholds
  // numbers.
  Status validate() const;
  bool operator==(const Forest&) const = default;
};

// Where a row goes from node `at` of a tree: the node of the same tree that follows, or ~leaf.
std::int32_t next_node(const Forest& forest, const Forest::Tree& tree, std::int32_t at,
                       std::span<const double> row);

// The slow, obviously right evaluation of one row of at least feature_count values.
double predict_reference(const Forest& forest, std::span<const double> row);

}  // namespace foretune
