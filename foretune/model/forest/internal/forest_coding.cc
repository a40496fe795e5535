#include "foretune/model/forest/internal/forest_coding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "foretune/base/statistics.h"

namespace foretune {
namespace {

constexpr std::uint8_t kGrown = 0;     // a leaf number per node
constexpr std::uint8_t kExplicit = 1;  // two children per node
constexpr std::uint8_t kPacked = 2;    // added to the form of every tree: leaf values are packed
constexpr std::size_t kSplitBytes = 10;
// A packed leaf value takes seven bytes and a bit. Packing so few values is not worth it.
constexpr std::size_t kFewLeaves = 64;
constexpr std::size_t kLeafBytes = 7;  // at least
constexpr unsigned kMantissaBits = 52;
constexpr std::uint64_t kMantissa = (std::uint64_t{1} << kMantissaBits) - 1;
constexpr std::uint32_t kExponentMask = 0x7ff;
constexpr std::uint32_t kOtherExponent = 15;  // the code of a value that follows as a whole
// Splits from this position on take two bytes a node.
constexpr std::size_t kOneByteSplits = 128;

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
// leaf's number while the right half becomes leaf i + 1. The leaf numbers then determine the tree.
// `parent` is scratch memory.
void grow(const std::vector<std::uint32_t>& split_leaf, std::int32_t* left, std::int32_t* right,
          std::vector<std::int32_t*>& parent) {
  parent.assign(split_leaf.size() + 1, nullptr);
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

// Returns the leaf numbers that grow() needs to make this tree, if it has the pattern.
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
  std::vector<std::int32_t*> parent;
  grow(split_leaf, grown_left.data(), grown_right.data(), parent);
  if (!std::equal(grown_left.begin(), grown_left.end(), left) ||
      !std::equal(grown_right.begin(), grown_right.end(), right)) {
    return std::nullopt;
  }
  return split_leaf;
}

// The distinct splits, and the position of each node's among them. When they are many, the most
// frequent come first.
struct SplitTable {
  std::vector<Split> splits;
  std::vector<std::uint32_t> of_node;
};

SplitTable table_of(const Forest& forest) {
  SplitTable table;
  std::vector<std::uint32_t> order(forest.feature.size());
  std::iota(order.begin(), order.end(), 0U);
  std::vector<Split> all(order.size());
  for (std::size_t node = 0; node < all.size(); ++node) {
    all[node] = split_of(forest, node);
  }
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return all[a] < all[b]; });
  table.of_node.resize(all.size());
  std::vector<std::uint32_t> uses;
  for (const std::uint32_t node : order) {
    if (table.splits.empty() || table.splits.back() != all[node]) {
      table.splits.push_back(all[node]);
      uses.push_back(0);
    }
    ++uses.back();
    table.of_node[node] = static_cast<std::uint32_t>(uses.size() - 1);
  }
  if (table.splits.size() <= kOneByteSplits) {
    return table;
  }
  std::vector<std::uint32_t> by_use(uses.size());
  std::iota(by_use.begin(), by_use.end(), 0U);
  std::stable_sort(by_use.begin(), by_use.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return uses[a] > uses[b]; });
  std::vector<std::uint32_t> position(by_use.size());
  std::vector<Split> sorted;
  for (const std::uint32_t split : by_use) {
    position[split] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(table.splits[split]);
  }
  table.splits = std::move(sorted);
  for (std::uint32_t& split : table.of_node) {
    split = position[split];
  }
  return table;
}

void put_tree(ByteWriter& writer, const Forest& forest, const Forest::Tree& tree,
              const SplitTable& table, bool is_packed) {
  writer.put_varint(tree.node_count);
  const auto split_leaf = grown_from(forest, tree);
  writer.put(static_cast<std::uint8_t>((split_leaf ? kGrown : kExplicit) |
                                       (is_packed ? kPacked : std::uint8_t{0})));
  for (std::uint32_t i = 0; i < tree.node_count; ++i) {
    const std::size_t node = tree.first_node + i;
    writer.put_varint(table.of_node[node]);
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

// Written only where some split is categorical, so that older readers can read all other forests;
// they refuse categorical splits.
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

std::uint32_t exponent_of(std::uint64_t bits) {
  return static_cast<std::uint32_t>(bits >> kMantissaBits) & kExponentMask;
}

// Returns the lowest of the fifteen neighbouring exponents that cover the most values.
std::uint32_t common_exponents(const std::vector<double>& values) {
  std::array<std::size_t, kExponentMask + 1> count{};
  for (const double value : values) {
    ++count[exponent_of(std::bit_cast<std::uint64_t>(value))];
  }
  std::size_t inside = 0;
  std::size_t most = 0;
  std::uint32_t best = 0;
  for (std::uint32_t last = 0; last < count.size(); ++last) {
    inside += count[last];
    inside -= last >= kOtherExponent ? count[last - kOtherExponent] : 0;
    if (inside > most) {
      most = inside;
      best = last >= kOtherExponent - 1 ? last - (kOtherExponent - 1) : 0;
    }
  }
  return best;
}

// Four bits select one of the few exponents in use. The signs are bits of their own.
void put_packed(ByteWriter& writer, const std::vector<double>& values) {
  const std::uint32_t lowest = common_exponents(values);
  writer.put(static_cast<std::uint16_t>(lowest));
  std::vector<std::uint8_t> signs((values.size() + 7) / 8, 0);
  std::vector<double> others;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(values[i]);
    signs[i / 8] = static_cast<std::uint8_t>(signs[i / 8] | (bits >> 63U) << (i % 8));
    const std::uint32_t exponent = exponent_of(bits);
    const bool is_common = exponent >= lowest && exponent < lowest + kOtherExponent;
    if (!is_common) {
      others.push_back(values[i]);
    }
    const std::uint64_t code = is_common ? exponent - lowest : kOtherExponent;
    const std::uint64_t seven = (bits & kMantissa) | code << kMantissaBits;
    writer.put_bytes(std::as_bytes(std::span(&seven, 1)).first(7));
  }
  writer.put_bytes(std::as_bytes(std::span(signs)));
  for (const double value : others) {
    writer.put(value);
  }
}

void get_packed(ByteReader& reader, std::size_t leaves, std::vector<double>& values) {
  const std::uint64_t lowest = reader.get<std::uint16_t>();
  if (lowest + kOtherExponent > kExponentMask + 1) {
    reader.fail();
  }
  const std::span<const std::byte> packed = reader.get_bytes(leaves * 7 + (leaves + 7) / 8);
  if (!reader.ok()) {
    return;
  }
  const std::span<const std::byte> signs = packed.subspan(leaves * 7);
  values.resize(leaves);
  for (std::size_t i = 0; i < leaves; ++i) {
    // Eight bytes load faster than seven. This never reads too far, since the signs follow the last
    // seven.
    std::uint64_t seven = 0;
    std::memcpy(&seven, packed.data() + i * 7, 8);
    seven &= ~std::uint64_t{0} >> 8U;
    const std::uint64_t code = seven >> kMantissaBits;
    const std::uint64_t sign = (std::to_integer<std::uint64_t>(signs[i / 8]) >> (i % 8)) & 1U;
    values[i] = code == kOtherExponent
                    ? reader.get<double>()
                    : std::bit_cast<double>((seven & kMantissa) | (lowest + code) << kMantissaBits |
                                            sign << 63U);
  }
}

// Calls `use` with each array that has a value per node.
template <class Use>
void for_each_node_array(Forest& forest, const Use& use) {
  use(forest.feature);
  use(forest.threshold);
  use(forest.left);
  use(forest.right);
  use(forest.default_left);
  use(forest.missing);
}

// Reads the trees of a forest one after another. Turns the reader bad where the bytes are.
class TreeReader {
 public:
  // `reserve_nodes` is the number of nodes that the remaining bytes can hold.
  TreeReader(const std::vector<Split>& splits, std::size_t reserve_nodes, Forest& forest)
      : splits_(splits), forest_(forest) {
    for_each_node_array(forest, [&](auto& values) { values.reserve(reserve_nodes); });
  }

  void read(ByteReader& reader) {
    const std::uint64_t nodes = reader.get_count(2);
    const std::size_t first = forest_.feature.size();
    const auto flags = reader.get<std::uint8_t>();
    const auto form = static_cast<std::uint8_t>(flags & ~kPacked);
    if (forest_.trees.empty()) {
      is_packed_ = (flags & kPacked) != 0;
    }
    if (first + nodes >= INT32_MAX || form > kExplicit || is_packed_ != ((flags & kPacked) != 0)) {
      reader.fail();
      return;
    }
    forest_.trees.push_back({.first_node = static_cast<std::uint32_t>(first),
                             .node_count = static_cast<std::uint32_t>(nodes),
                             .first_leaf = static_cast<std::uint32_t>(leaves_),
                             .leaf_count = static_cast<std::uint32_t>(nodes + 1)});
    leaves_ += nodes + 1;
    const std::size_t end = first + nodes;
    for_each_node_array(forest_, [&](auto& values) { values.resize(end); });
    ByteReader own = reader;  // a local copy: the compiler knows that nothing else changes it
    if (form == kGrown) {
      read_grown(own, first, nodes);
    } else {
      is_explicit_ = true;
      read_explicit(own, first, nodes);
    }
    reader = own;
  }

  [[nodiscard]] std::uint64_t leaves() const { return leaves_; }
  [[nodiscard]] bool is_packed() const { return is_packed_; }
  // True when some tree has explicit children, which may form no tree.
  [[nodiscard]] bool is_explicit() const { return is_explicit_; }

 private:
  bool read_split(ByteReader& reader, std::size_t node) {
    const std::uint64_t index = reader.get_varint();
    if (index >= splits_.size()) {
      reader.fail();
      return false;
    }
    const Split& split = splits_[index];
    forest_.feature[node] = split.feature;
    forest_.threshold[node] = std::bit_cast<double>(split.threshold_bits);
    forest_.default_left[node] = (split.flags & 4U) != 0 ? 1 : 0;
    forest_.missing[node] = static_cast<Forest::Missing>(split.flags & 3U);
    return true;
  }

  void read_grown(ByteReader& reader, std::size_t first, std::uint64_t nodes) {
    split_leaf_.resize(nodes);
    for (std::uint64_t node = 0; node < nodes; ++node) {
      if (!read_split(reader, first + node)) {
        return;
      }
      const std::uint64_t leaf = reader.get_varint();
      if (leaf > node || !reader.ok()) {
        reader.fail();
        return;
      }
      split_leaf_[node] = static_cast<std::uint32_t>(leaf);
    }
    grow(split_leaf_, forest_.left.data() + first, forest_.right.data() + first, parent_);
  }

  void read_explicit(ByteReader& reader, std::size_t first, std::uint64_t nodes) {
    for (std::uint64_t node = 0; node < nodes && reader.ok(); ++node) {
      if (!read_split(reader, first + node)) {
        return;
      }
      forest_.left[first + node] = get_child(reader);
      forest_.right[first + node] = get_child(reader);
    }
  }

  const std::vector<Split>& splits_;
  Forest& forest_;
  std::vector<std::uint32_t> split_leaf_;
  std::vector<std::int32_t*> parent_;
  std::uint64_t leaves_ = 0;
  bool is_packed_ = false;
  bool is_explicit_ = false;
};

// Returns what Forest::validate() would return for a forest that was read, at less cost. No tree is
// explicit and no split categorical, so the shapes are right: every grown tree is a tree.
Status check_grown(const Forest& forest, const std::vector<Split>& splits) {
  if (forest.feature_count > Forest::kMaxFeatures) {
    return forest.validate();
  }
  const bool good_splits = std::all_of(splits.begin(), splits.end(), [&](const Split& split) {
    return split.feature < forest.feature_count &&
           !std::isnan(std::bit_cast<double>(split.threshold_bits));
  });
  return good_splits && all_finite(forest.leaf_value) ? Status() : forest.validate();
}

}  // namespace

void put_forest(ByteWriter& writer, const Forest& forest) {
  const SplitTable table = table_of(forest);
  const std::vector<Split>& splits = table.splits;
  writer.put_varint(forest.feature_count);
  writer.put_varint(splits.size());
  for (const Split& split : splits) {
    writer.put_varint(split.feature);
    writer.put(split.flags, split.threshold_bits);
  }
  if (std::any_of(splits.begin(), splits.end(), is_categorical)) {
    put_categories(writer, forest.categories);
  }
  const bool is_packed = forest.leaf_value.size() > kFewLeaves;
  writer.put_varint(forest.trees.size());
  for (const Forest::Tree& tree : forest.trees) {
    put_tree(writer, forest, tree, table, is_packed);
  }
  if (is_packed) {
    put_packed(writer, forest.leaf_value);
    return;
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
  const std::uint64_t trees = reader.get_count(2 + kLeafBytes);
  TreeReader tree_reader(splits, reader.remaining() / (2 + kLeafBytes), forest);
  forest.trees.reserve(trees);
  for (std::uint64_t t = 0; t < trees && reader.ok(); ++t) {
    tree_reader.read(reader);
  }
  const std::uint64_t leaves = tree_reader.leaves();
  if (leaves > reader.remaining() / kLeafBytes) {
    reader.fail();
  } else if (tree_reader.is_packed()) {
    get_packed(reader, leaves, forest.leaf_value);
  } else {
    for (std::uint64_t i = 0; i < leaves && reader.ok(); ++i) {
      forest.leaf_value.push_back(reader.get<double>());
    }
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "the bytes of the forest are damaged");
  }
  const bool is_plain =
      !tree_reader.is_explicit() && std::none_of(splits.begin(), splits.end(), is_categorical);
  FORETUNE_TRY_STATUS(is_plain ? check_grown(forest, splits) : forest.validate());
  return forest;
}

}  // namespace foretune
