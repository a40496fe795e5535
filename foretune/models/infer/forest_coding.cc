#include "foretune/models/infer/forest_coding.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <optional>
#include <utility>

namespace foretune {
namespace {

constexpr std::uint8_t kGrown = 0;     // a leaf number per node
constexpr std::uint8_t kExplicit = 1;  // two children per node
constexpr std::size_t kSplitBytes = 10;

struct Split {
  std::uint32_t feature = 0;
  std::uint8_t flags = 0;  // missing type (3: categorical), and 4 when missing values go left
  std::uint64_t threshold_bits = 0;
  auto operator<=>(const Split&) const = default;
};

Split split_of(const Forest& forest, std::size_t node) {
  return {.feature = forest.feature[node],
          .flags = static_cast<std::uint8_t>(static_cast<unsigned>(forest.missing[node]) |
                                             (forest.default_left[node] != 0 ? 4U : 0U)),
          .threshold_bits = std::bit_cast<std::uint64_t>(forest.threshold[node])};
}

// Trees that grow leaf by leaf have a pattern: node i splits some leaf, whose left half keeps the
// leaf's number while the right half becomes leaf i + 1. The leaf numbers then say everything.
void grow(const std::vector<std::uint32_t>& split_leaf, std::int32_t* left, std::int32_t* right) {
  std::vector<std::int32_t*> parent(split_leaf.size() + 1, nullptr);
  for (std::size_t node = 0; node < split_leaf.size(); ++node) {
    const std::uint32_t leaf = split_leaf[node];
    if (parent[leaf] != nullptr) {
      *parent[leaf] = static_cast<std::int32_t>(node);
    }
    left[node] = ~static_cast<std::int32_t>(leaf);
    right[node] = ~static_cast<std::int32_t>(node + 1);
    parent[leaf] = &left[node];
    parent[node + 1] = &right[node];
  }
}

// The leaf numbers that grow() needs to make this tree, if it has the pattern.
std::optional<std::vector<std::uint32_t>> grown_from(const Forest& forest,
                                                     const Forest::Tree& tree) {
  const std::int32_t* left = forest.left.data() + tree.first_node;
  const std::int32_t* right = forest.right.data() + tree.first_node;
  std::vector<std::uint32_t> split_leaf(tree.node_count);
  for (std::uint32_t node = tree.node_count; node-- > 0;) {
    const std::int32_t child = left[node];
    if (child >= 0 && static_cast<std::uint32_t>(child) <= node) {
      return std::nullopt;
    }
    split_leaf[node] = child < 0 ? static_cast<std::uint32_t>(~child)
                                 : split_leaf[static_cast<std::uint32_t>(child)];
    if (split_leaf[node] > node) {
      return std::nullopt;
    }
  }
  std::vector<std::int32_t> grown_left(tree.node_count);
  std::vector<std::int32_t> grown_right(tree.node_count);
  grow(split_leaf, grown_left.data(), grown_right.data());
  if (!std::equal(grown_left.begin(), grown_left.end(), left) ||
      !std::equal(grown_right.begin(), grown_right.end(), right)) {
    return std::nullopt;
  }
  return split_leaf;
}

void put_tree(ByteWriter& writer, const Forest& forest, const Forest::Tree& tree,
              const std::vector<Split>& splits) {
  writer.put_varint(tree.node_count);
  const auto split_leaf = grown_from(forest, tree);
  writer.put(split_leaf ? kGrown : kExplicit);
  for (std::uint32_t i = 0; i < tree.node_count; ++i) {
    const std::size_t node = tree.first_node + i;
    const auto found = std::lower_bound(splits.begin(), splits.end(), split_of(forest, node));
    writer.put_varint(static_cast<std::uint64_t>(found - splits.begin()));
    if (split_leaf) {
      writer.put_varint((*split_leaf)[i]);
    } else {
      writer.put_zigzag(forest.left[node]);
      writer.put_zigzag(forest.right[node]);
    }
  }
}

std::vector<Split> get_splits(ByteReader& reader) {
  std::vector<Split> splits(reader.get_count(kSplitBytes));
  for (Split& split : splits) {
    const std::uint64_t feature = reader.get_varint();
    if (feature > UINT32_MAX) {
      reader.fail();
    }
    split.feature = static_cast<std::uint32_t>(feature);
    split.flags = reader.get<std::uint8_t>();
    split.threshold_bits = reader.get<std::uint64_t>();
    if (split.flags > 7) {
      reader.fail();
    }
  }
  return splits;
}

bool is_categorical(const Split& split) {
  return (split.flags & 3U) == static_cast<unsigned>(Forest::Missing::kCategorical);
}

// Present only where some split is categorical: older readers refuse those, and read the rest.
void put_categories(ByteWriter& writer, const CategorySets& sets) {
  writer.put_varint(sets.size());
  for (std::size_t set = 0; set < sets.size(); ++set) {
    writer.put_varint(sets.words_of(set).size());
    for (const std::uint32_t word : sets.words_of(set)) {
      writer.put(word);
    }
  }
}

void get_categories(ByteReader& reader, CategorySets& sets) {
  const std::uint64_t count = reader.get_count(1);
  for (std::uint64_t set = 0; set < count && reader.ok(); ++set) {
    const std::uint64_t words = reader.get_count(sizeof(std::uint32_t));
    for (std::uint64_t i = 0; i < words && reader.ok(); ++i) {
      sets.words.push_back(reader.get<std::uint32_t>());
    }
    sets.end.push_back(static_cast<std::uint32_t>(sets.words.size()));
  }
}

std::int32_t get_child(ByteReader& reader) {
  const std::int64_t child = reader.get_zigzag();
  if (child < INT32_MIN || child > INT32_MAX) {
    reader.fail();
    return 0;
  }
  return static_cast<std::int32_t>(child);
}

void add_split(const Split& split, Forest& forest) {
  forest.feature.push_back(split.feature);
  forest.threshold.push_back(std::bit_cast<double>(split.threshold_bits));
  forest.default_left.push_back((split.flags & 4U) != 0 ? 1 : 0);
  forest.missing.push_back(static_cast<Forest::Missing>(split.flags & 3U));
}

// Stops early when the bytes are bad; the caller looks at the reader.
void get_tree(ByteReader& reader, const std::vector<Split>& splits, std::uint64_t& leaves,
              Forest& forest) {
  const std::uint64_t nodes = reader.get_count(2);
  const std::uint64_t first = forest.feature.size();
  const auto form = reader.get<std::uint8_t>();
  if (first + nodes >= INT32_MAX || form > kExplicit) {
    reader.fail();
    return;
  }
  forest.trees.push_back({.first_node = static_cast<std::uint32_t>(first),
                          .node_count = static_cast<std::uint32_t>(nodes),
                          .first_leaf = static_cast<std::uint32_t>(leaves),
                          .leaf_count = static_cast<std::uint32_t>(nodes + 1)});
  leaves += nodes + 1;
  std::vector<std::uint32_t> split_leaf;
  for (std::uint64_t node = 0; node < nodes && reader.ok(); ++node) {
    const std::uint64_t index = reader.get_varint();
    if (index >= splits.size()) {
      reader.fail();
      return;
    }
    add_split(splits[index], forest);
    if (form == kExplicit) {
      forest.left.push_back(get_child(reader));
      forest.right.push_back(get_child(reader));
      continue;
    }
    const std::uint64_t leaf = reader.get_varint();
    if (leaf > node) {
      reader.fail();
      return;
    }
    split_leaf.push_back(static_cast<std::uint32_t>(leaf));
  }
  if (form == kGrown && reader.ok()) {
    forest.left.resize(first + nodes);
    forest.right.resize(first + nodes);
    grow(split_leaf, forest.left.data() + first, forest.right.data() + first);
  }
}

}  // namespace

void put_forest(ByteWriter& writer, const Forest& forest) {
  std::vector<Split> splits(forest.feature.size());
  for (std::size_t node = 0; node < splits.size(); ++node) {
    splits[node] = split_of(forest, node);
  }
  std::sort(splits.begin(), splits.end());
  splits.erase(std::unique(splits.begin(), splits.end()), splits.end());
  writer.put_varint(forest.feature_count);
  writer.put_varint(splits.size());
  for (const Split& split : splits) {
    writer.put_varint(split.feature);
    writer.put(split.flags);
    writer.put(split.threshold_bits);
  }
  if (std::any_of(splits.begin(), splits.end(), is_categorical)) {
    put_categories(writer, forest.categories);
  }
  writer.put_varint(forest.trees.size());
  for (const Forest::Tree& tree : forest.trees) {
    put_tree(writer, forest, tree, splits);
  }
  for (const double value : forest.leaf_value) {
    writer.put(value);
  }
}

Result<Forest> get_forest(ByteReader& reader) {
  Forest forest;
  const std::uint64_t features = reader.get_varint();
  if (features > UINT32_MAX) {
    reader.fail();
  }
  forest.feature_count = static_cast<std::uint32_t>(features);
  const std::vector<Split> splits = get_splits(reader);
  if (std::any_of(splits.begin(), splits.end(), is_categorical)) {
    get_categories(reader, forest.categories);
  }
  // A tree takes two bytes, and at least one leaf value later on.
  const std::uint64_t trees = reader.get_count(2 + sizeof(double));
  std::uint64_t leaves = 0;
  for (std::uint64_t t = 0; t < trees && reader.ok(); ++t) {
    get_tree(reader, splits, leaves, forest);
  }
  if (leaves > reader.remaining() / sizeof(double)) {
    reader.fail();
  }
  for (std::uint64_t i = 0; i < leaves && reader.ok(); ++i) {
    forest.leaf_value.push_back(reader.get<double>());
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "the bytes of the forest are damaged");
  }
  FORETUNE_TRY_STATUS(forest.validate());
  return forest;
}

}  // namespace foretune
