// The engine of a forest and a pool: what is worked out once.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/hash.h"
#include "foretune/model/forest/forest_engine.h"
#include "foretune/model/forest/internal/engine_values.h"

namespace foretune {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kMaxThresholds = 65535;
constexpr std::size_t kMaxColumns = 65535;
constexpr std::size_t kMaxTogether = 65536;   // leaves of trees that are cut together
constexpr std::size_t kMinTable = 256;        // lookups may load as many
constexpr std::size_t kSmallSideBytes = 128;  // see EngineSmallQuery::stack

Status check_categorical_splits(const Forest& forest, std::span<const FeatureKind> kinds) {
  for (std::size_t node = 0; node < forest.feature.size(); ++node) {
    if (forest.is_categorical(node) && kinds[forest.feature[node]] == FeatureKind::kInteraction) {
      return fail(ErrorCode::kUnsupported, "feature ", forest.feature[node],
                  " depends on problem and config at once and is split by category; only problem "
                  "features and config features may be");
    }
  }
  return {};
}

// Forests split in few ways, over and over: of 63,000 nodes a few thousand are distinct. Returns a
// node of each kind, and in `of_node` the position in that list for every node.
std::vector<std::uint32_t> distinct_splits(const Forest& forest,
                                           std::vector<std::uint32_t>& of_node) {
  constexpr std::uint32_t kEmpty = UINT32_MAX;
  const auto bits_of = [&](std::size_t node) {
    return std::bit_cast<std::uint64_t>(forest.threshold[node]);
  };
  const auto rest_of = [&](std::size_t node) {
    return forest.feature[node] << 3U | static_cast<unsigned>(forest.missing[node]) << 1U |
           forest.default_left[node];
  };
  struct Place {
    std::uint64_t bits = 0;
    std::uint32_t rest = 0;
    std::uint32_t index = kEmpty;
  };
  std::vector<Place> places(1024);
  std::vector<std::uint32_t> examples;
  const auto place_of = [&](std::uint64_t bits, std::uint32_t rest) {
    const std::size_t mask = places.size() - 1;
    std::size_t place = static_cast<std::size_t>(mix64(bits + rest)) & mask;
    while (places[place].index != kEmpty &&
           (places[place].bits != bits || places[place].rest != rest)) {
      place = (place + 1) & mask;
    }
    return place;
  };
  const auto enlarge = [&] {
    std::vector<Place> before(2 * places.size());
    before.swap(places);
    for (const Place& split : before) {
      if (split.index != kEmpty) {
        places[place_of(split.bits, split.rest)] = split;
      }
    }
  };
  of_node.resize(forest.feature.size());
  for (std::size_t node = 0; node < of_node.size(); ++node) {
    const std::uint64_t bits = bits_of(node);
    const std::uint32_t rest = rest_of(node);
    Place& split = places[place_of(bits, rest)];
    of_node[node] = split.index;
    if (split.index == kEmpty) {
      of_node[node] = static_cast<std::uint32_t>(examples.size());
      split = {bits, rest, of_node[node]};
      examples.push_back(static_cast<std::uint32_t>(node));
      if (2 * examples.size() > places.size()) {
        enlarge();
      }
    }
  }
  return examples;
}

// Visits the nodes of a tree, every node after its children.
template <class Visit>
void for_children_first(const Forest& forest, const Forest::Tree& tree, const Visit& visit) {
  const std::int32_t* left = forest.left.data() + tree.first_node;
  const std::int32_t* right = forest.right.data() + tree.first_node;
  const auto is_behind = [](std::int32_t child, std::uint32_t node) {
    return child < 0 || static_cast<std::uint32_t>(child) > node;
  };
  bool are_behind = true;
  for (std::uint32_t node = 0; node < tree.node_count; ++node) {
    are_behind = are_behind && is_behind(left[node], node) && is_behind(right[node], node);
  }
  if (are_behind) {  // as in all trees that grow leaf by leaf
    for (std::uint32_t node = tree.node_count; node-- > 0;) {
      visit(node);
    }
    return;
  }
  std::vector<std::uint32_t> order{0};  // parents first
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const std::int32_t child : {left[order[i]], right[order[i]]}) {
      if (child >= 0) {
        order.push_back(static_cast<std::uint32_t>(child));
      }
    }
  }
  std::for_each(order.rbegin(), order.rend(), visit);
}

}  // namespace

Result<std::unique_ptr<ForestEngine>> ForestEngine::create(const Forest& forest,
                                                           std::span<const FeatureKind> kinds,
                                                           std::span<const double> config_columns,
                                                           std::size_t candidates, CpuIsa isa) {
  return create(forest, kinds, config_columns, candidates, engine_kernels(isa));
}

Result<std::unique_ptr<ForestEngine>> ForestEngine::create(const Forest& forest,
                                                           std::span<const FeatureKind> kinds,
                                                           std::span<const double> config_columns,
                                                           std::size_t candidates,
                                                           const EngineKernels* kernels) {
  FORETUNE_DCHECK(forest.validate().has_value());
  if (kinds.size() != forest.feature_count) {
    return fail(ErrorCode::kMismatch, "the forest has ", forest.feature_count,
                " features, the feature table ", kinds.size());
  }
  if (kinds.size() > kMaxColumns) {
    return fail(ErrorCode::kUnsupported, kinds.size(), " features are more than ", kMaxColumns);
  }
  if (candidates == 0 || candidates > UINT32_MAX / 2) {
    return fail(ErrorCode::kInvalidArgument, "a pool of ", candidates, " candidates");
  }
  std::unique_ptr<ForestEngine> engine(new ForestEngine());
  if (kernels == nullptr) {
    return fail(ErrorCode::kUnsupported, "this build has no code for that instruction set");
  }
  engine->kernels_ = kernels;
  engine->candidates_ = candidates;
  engine->blocks_ = (candidates + kEngineBlock - 1) / kEngineBlock;
  engine->features_.resize(kinds.size());
  std::array<std::uint32_t, 3> columns{};
  for (std::size_t f = 0; f < kinds.size(); ++f) {
    engine->features_[f].kind = kinds[f];
    engine->features_[f].column = columns[static_cast<std::size_t>(kinds[f])]++;
    if (kinds[f] == FeatureKind::kInteraction) {
      engine->interaction_features_.push_back(static_cast<std::uint32_t>(f));
    }
  }
  FORETUNE_CHECK(config_columns.size() ==
                 candidates * columns[static_cast<std::size_t>(FeatureKind::kConfig)]);
  FORETUNE_TRY_STATUS(check_categorical_splits(forest, kinds));
  engine->categories_ = forest.categories;
  std::vector<std::uint32_t> of_node;
  const std::vector<std::uint32_t> examples = distinct_splits(forest, of_node);
  engine->collect_thresholds(forest, examples);
  for (std::size_t f = 0; f < kinds.size(); ++f) {
    if (engine->features_[f].threshold_count > kMaxThresholds) {
      return fail(ErrorCode::kUnsupported, "feature ", f, " has ",
                  engine->features_[f].threshold_count, " thresholds; at most ", kMaxThresholds,
                  " are supported");
    }
  }
  const std::vector<std::uint32_t> predicate_of = engine->build_predicates(forest, examples);
  for (std::uint32_t& split : of_node) {
    split = predicate_of[split];
  }
  FORETUNE_TRY_STATUS(engine->measure_trees(forest));
  engine->choose_small(forest);
  engine->build_config_bitsets(config_columns);
  if (engine->small_words_ > 0) {
    engine->build_cells(forest, of_node);
  } else {
    engine->build_trees(forest, of_node);
    if (engine->kernels_->uses_paths) {
      engine->build_outcomes(forest, std::move(of_node));
    }
  }
  engine->lay_out_workspace();
  return engine;
}

void ForestEngine::collect_thresholds(const Forest& forest,
                                      const std::vector<std::uint32_t>& examples) {
  for (const std::uint32_t node : examples) {
    Feature& feature = features_[forest.feature[node]];
    feature.thresholds.push_back(forest.threshold[node]);
    feature.masks_nan = feature.masks_nan || forest.missing[node] == Forest::Missing::kNan;
    feature.masks_zero = feature.masks_zero || forest.missing[node] == Forest::Missing::kZero;
  }
  for (Feature& feature : features_) {
    std::vector<double>& list = feature.thresholds;
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    feature.threshold_count = static_cast<std::uint32_t>(list.size());
    feature.wide = list.size() > 255;
    list.resize(2 * list.size() + 1, std::numeric_limits<double>::infinity());
  }
}

// Numbers the distinct predicates so that those of a kind, and within it those of a group, follow
// each other. Returns the predicate of each distinct split.
std::vector<std::uint32_t> ForestEngine::build_predicates(
    const Forest& forest, const std::vector<std::uint32_t>& examples) {
  struct Key {
    // From the highest bit: kind, feature, missing, default and rank.
    std::uint64_t order = 0;
    std::uint32_t split = 0;
    [[nodiscard]] std::uint64_t group() const { return order >> 16U; }
  };
  std::vector<Key> keys(examples.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    const std::uint32_t node = examples[i];
    const Feature& feature = features_[forest.feature[node]];
    const Forest::Missing missing = forest.missing[node];
    // Without missing values of its own, a split has no default.
    const bool default_left = missing != Forest::Missing::kNone && forest.default_left[node] != 0;
    const std::size_t rank =
        count_below(feature.thresholds, feature.threshold_count, forest.threshold[node]);
    keys[i] = {.order = static_cast<std::uint64_t>(feature.kind) << 40U |
                        std::uint64_t{forest.feature[node]} << 24U |
                        static_cast<std::uint64_t>(missing) << 20U |
                        std::uint64_t{default_left} << 16U | rank,
               .split = i};
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.order < b.order; });
  std::vector<std::uint32_t> predicate_of(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Key& key = keys[i];
    const std::uint32_t node = examples[key.split];
    const Feature& feature = features_[forest.feature[node]];
    const bool default_left = ((key.order >> 16U) & 1U) != 0;
    if (i == 0 || keys[i - 1].group() != key.group()) {
      groups_.push_back({.feature = forest.feature[node],
                         .first = static_cast<std::uint32_t>(predicates_.size()),
                         .count = 0,
                         .missing = forest.missing[node],
                         .default_left = default_left});
    }
    if (i == 0 || keys[i - 1].order != key.order) {
      predicates_.push_back({.column = static_cast<std::uint16_t>(feature.column),
                             .rank = static_cast<std::uint16_t>(key.order & 0xffffU),
                             .missing = static_cast<std::uint8_t>(forest.missing[node]),
                             .default_left = default_left ? std::uint8_t{1} : std::uint8_t{0}});
      ++groups_.back().count;
      first_config_predicate_ += feature.kind == FeatureKind::kProblem ? 1 : 0;
      interaction_predicates_ += feature.kind == FeatureKind::kInteraction ? 1 : 0;
    }
    predicate_of[key.split] = static_cast<std::uint32_t>(predicates_.size() - 1);
  }
  return predicate_of;
}

Status ForestEngine::measure_trees(const Forest& forest) {
  for (const Forest::Tree& tree : forest.trees) {
    if (tree.leaf_count > kEngineMaxLeaves) {
      return fail(ErrorCode::kUnsupported, "a tree has ", tree.leaf_count, " leaves; at most ",
                  kEngineMaxLeaves, " are supported");
    }
    max_leaves_ = std::max(max_leaves_, tree.leaf_count);
  }
  return {};
}

// The subtree that needs more places on the value stack is evaluated first, which bounds the stack
// by the logarithm of the number of leaves (Sethi and Ullman 1970).
void ForestEngine::build_trees(const Forest& forest, const std::vector<std::uint32_t>& of_node) {
  leaf_values_ = forest.leaf_value;
  nodes_.resize(of_node.size());
  trees_.reserve(forest.trees.size());
  std::vector<std::uint32_t> needs;  // of the nodes of a tree: places on the stack
  for (const Forest::Tree& tree : forest.trees) {
    trees_.push_back({.first_node = tree.first_node,
                      .first_leaf = tree.first_leaf,
                      .root = tree.node_count == 0 ? kEngineLeafBit : std::uint16_t{0}});
    needs.resize(std::max<std::size_t>(needs.size(), tree.node_count));
    const auto need_of = [&](std::int32_t child) {
      return child < 0 ? 1U : needs[static_cast<std::uint32_t>(child)];
    };
    const auto reference_to = [](std::int32_t child) {
      return static_cast<std::uint16_t>(child < 0 ? kEngineLeafBit | static_cast<unsigned>(~child)
                                                  : static_cast<unsigned>(child));
    };
    for_children_first(forest, tree, [&](std::uint32_t node) {
      const std::size_t source = tree.first_node + node;
      const std::uint32_t left = need_of(forest.left[source]);
      const std::uint32_t right = need_of(forest.right[source]);
      // When equal the right one first: two leaves then have the predicate itself as their plane.
      const bool first_is_left = left > right;
      needs[node] = left == right ? left + 1 : std::max(left, right);
      value_stack_ = std::max(value_stack_, needs[node]);
      const std::uint16_t if_left = reference_to(forest.left[source]);
      const std::uint16_t if_right = reference_to(forest.right[source]);
      nodes_[source] = {.predicate = of_node[source] | (first_is_left ? kEngineFirstIsLeft : 0U),
                        .first = first_is_left ? if_left : if_right,
                        .second = first_is_left ? if_right : if_left};
    });
  }
}

void ForestEngine::build_outcomes(const Forest& forest, std::vector<std::uint32_t> of_node) {
  outcomes_.resize(2 * of_node.size());
  predicate_of_ = std::move(of_node);
  for (const Forest::Tree& tree : forest.trees) {
    const auto reference = [&](std::int32_t child) {
      return child < 0 ? kEngineLeafRef | (tree.first_leaf + static_cast<std::uint32_t>(~child))
                       : tree.first_node + static_cast<std::uint32_t>(child);
    };
    roots_.push_back(reference(tree.node_count == 0 ? -1 : 0));
    for (std::size_t node = tree.first_node; node < tree.first_node + tree.node_count; ++node) {
      outcomes_[2 * node] = reference(forest.right[node]);
      outcomes_[2 * node + 1] = reference(forest.left[node]);
    }
  }
  trees_together_ = std::clamp<std::size_t>(kMaxTogether / max_leaves_, 1, kEngineTreesTogether);
}

// Predicates of a group by ascending threshold: each holds for the candidates of the one before and
// perhaps for more. Those that hold for the same ones share their bits.
class ForestEngine::ConfigBits {
 public:
  ConfigBits(const ForestEngine& engine, std::span<const double> columns)
      : engine_(engine),
        columns_(columns),
        codes_(engine.blocks_ * kEngineBlock),
        order_(engine.candidates_),
        current_(engine.blocks_) {
    append();
    std::fill_n(current_.front().words.data(), engine_.blocks_ * kEngineBlockWords,
                ~std::uint64_t{0});
    append();
  }

  void add(const Group& group) {
    const Feature& feature = engine_.features_[group.feature];
    const std::span<const double> values =
        columns_.subspan(feature.column * engine_.candidates_, engine_.candidates_);
    if (group.missing == Forest::Missing::kCategorical) {
      add_categories(group, feature, values);
      return;
    }
    if (&feature != sorted_) {
      sort_candidates(feature, values);
    }
    start();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (group.default_left && is_missing(group.missing, values[i])) {
        set(i);
      }
    }
    std::size_t next = 0;
    for (std::uint32_t p = group.first; p < group.first + group.count; ++p) {
      const std::uint16_t rank = engine_.predicates_[p].rank;
      for (; next < order_.size() && codes_[order_[next]] <= rank; ++next) {
        if (!is_missing(group.missing, values[order_[next]])) {
          set(order_[next]);
        }
      }
      finish_predicate();
    }
  }

  // All bitsets, and for each predicate where its own begins.
  std::vector<Block> blocks;
  std::vector<std::size_t> first_block;
  std::vector<std::uint8_t> states;

 private:
  void append() { blocks.insert(blocks.end(), current_.begin(), current_.end()); }

  void start() {
    std::fill(current_.begin(), current_.end(), Block{});
    count_ = 0;
    appended_ = 0;
  }

  void set(std::size_t candidate) {
    current_[candidate / kEngineBlock].words[candidate % kEngineBlock / 64] |= std::uint64_t{1}
                                                                               << (candidate % 64);
    ++count_;
  }

  void finish_predicate() {
    const bool is_constant = count_ == 0 || count_ == order_.size();
    if (!is_constant && count_ != appended_) {
      append();
      appended_ = count_;
    }
    first_block.push_back(count_ == 0   ? 0
                          : is_constant ? engine_.blocks_
                                        : blocks.size() - engine_.blocks_);
    states.push_back(is_constant ? state_of(count_ != 0) : kEngineVaries);
  }

  void add_categories(const Group& group, const Feature& feature, std::span<const double> values) {
    for (std::uint32_t p = group.first; p < group.first + group.count; ++p) {
      start();
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (is_missing(group.missing, values[i])
                ? group.default_left
                : engine_.contains(feature, engine_.predicates_[p].rank, values[i])) {
          set(i);
        }
      }
      finish_predicate();
    }
  }

  // By the number of thresholds below their value.
  void sort_candidates(const Feature& feature, std::span<const double> values) {
    std::vector<std::uint32_t> end(feature.threshold_count + std::size_t{1}, 0);
    for (std::size_t first = 0; first < values.size(); first += kEngineBlock) {
      engine_.kernels_->quantise_words(
          values.data() + first, std::min(kEngineBlock, values.size() - first),
          feature.thresholds.data(), feature.threshold_count, 0, codes_.data() + first);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      ++end[codes_[i]];
    }
    std::partial_sum(end.begin(), end.end(), end.begin());
    for (std::size_t i = values.size(); i-- > 0;) {
      order_[--end[codes_[i]]] = static_cast<std::uint32_t>(i);
    }
    sorted_ = &feature;
  }

  const ForestEngine& engine_;
  std::span<const double> columns_;
  const Feature* sorted_ = nullptr;
  std::vector<std::uint16_t> codes_;
  std::vector<std::uint32_t> order_;
  // The bits of the predicate at hand, how many are set, and how many were when last appended.
  std::vector<Block> current_;
  std::size_t count_ = 0;
  std::size_t appended_ = 0;
};

void ForestEngine::build_config_bitsets(std::span<const double> config_columns) {
  ConfigBits bits(*this, config_columns);
  for (const Group& group : groups_) {
    if (features_[group.feature].kind == FeatureKind::kConfig) {
      bits.add(group);
    }
  }
  bit_storage_ = std::move(bits.blocks);
  zeros_ = bit_storage_.front().words.data();
  ones_ = bit_storage_[blocks_].words.data();
  for (const std::size_t first : bits.first_block) {
    config_bitsets_.push_back(bit_storage_[first].words.data());
  }
  config_states_ = std::move(bits.states);
}

void ForestEngine::lay_out_workspace() {
  const std::size_t words = blocks_ * kEngineBlockWords;
  const std::size_t padded = blocks_ * kEngineBlock;
  std::size_t end = 0;
  const auto take = [&](std::size_t bytes) {
    const std::size_t offset = end;
    end += (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
    return offset;
  };
  for (const std::uint32_t f : interaction_features_) {
    Feature& feature = features_[f];
    feature.codes_offset = take(padded * (feature.wide ? 2 : 1));
    feature.nan_offset = feature.masks_nan ? take(words * 8) : 0;
    feature.zero_offset = feature.masks_zero ? take(words * 8) : 0;
  }
  seen_offset_ = take(interaction_features_.size() * sizeof(Seen));
  codes_bytes_ = end;
  end = 0;
  columns_offset_ = take(interaction_features_.size() * sizeof(EngineColumn));
  states_offset_ = take(predicates_.size() + sizeof(std::uint32_t));
  table_offset_ = take(std::max<std::size_t>(kMinTable, max_leaves_) * sizeof(double));
  sums_offset_ = take(padded * sizeof(double));
  if (small_words_ > 0) {
    small_stack_offset_ = take((candidates_ + 1) * kSmallSideBytes);
    bit_space_offset_ = take(predicates_.size() * small_words_ * 8);
    scratch_bytes_ = end;
    return;
  }
  bitsets_offset_ = take(predicates_.size() * sizeof(const std::uint64_t*));
  const auto bits = static_cast<unsigned>(std::bit_width(max_leaves_ - 1));
  temporaries_offset_ = take(std::size_t{value_stack_} * bits * words * 8);
  values_offset_ = take((std::size_t{value_stack_} + 1) * sizeof(EngineValue));
  stack_offset_ = take(std::size_t{max_leaves_} * sizeof(std::uint16_t));
  postfix_offset_ = take(2 * std::size_t{max_leaves_} * sizeof(std::uint32_t));
  if (kernels_->uses_paths) {
    paths_offset_ = take(sizeof(EnginePaths));
    path_planes_offset_ = take(kEnginePathNodes * words * 8);
    for (std::size_t& offset : path_lists_offset_) {
      offset = take((trees_together_ * max_leaves_ + 32) * sizeof(std::uint32_t));
    }
  }
  // Last, because a query rarely needs much of it.
  bit_space_offset_ = take(std::size_t{interaction_predicates_} * words * 8);
  scratch_bytes_ = end;
}

}  // namespace foretune
