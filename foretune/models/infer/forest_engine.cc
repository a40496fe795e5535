#include "foretune/models/infer/forest_engine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <tuple>

#include "foretune/base/check.h"

namespace foretune {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxThresholds = 65535;
constexpr std::size_t kMaxColumns = 65535;
constexpr std::size_t kMaxTogether = 65536;  // leaves of trees that are cut together
constexpr std::size_t kMinTable = 256;       // lookups may load as many

std::uint8_t state_of(bool outcome) { return outcome ? kEngineTrue : kEngineFalse; }

double flushed(double value) { return std::fabs(value) > kForestZero ? value : 0.0; }

bool is_zero_or_nan(double value) { return !(std::fabs(value) > kForestZero); }

std::size_t count_below(const std::vector<double>& thresholds, std::size_t count, double value) {
  const auto end = thresholds.begin() + static_cast<std::ptrdiff_t>(count);
  return static_cast<std::size_t>(std::lower_bound(thresholds.begin(), end, value) -
                                  thresholds.begin());
}

bool is_missing(Forest::Missing missing, double value) {
  switch (missing) {
    case Forest::Missing::kNone:
      return false;
    case Forest::Missing::kZero:
      return is_zero_or_nan(value);
    case Forest::Missing::kNan:
    case Forest::Missing::kCategorical:
      return std::isnan(value);
  }
  return false;
}

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

template <class T>
T* at(std::byte* bytes, std::size_t offset) {
  return std::launder(reinterpret_cast<T*>(bytes + offset));
}

template <class T>
T* at(const std::byte* bytes, std::size_t offset) {
  return std::launder(reinterpret_cast<T*>(bytes + offset));
}

// Children of a tree's node as the engine sees them, and how deep its value stack becomes.
struct NodeOrder {
  std::uint32_t need = 1;
  bool first_is_left = false;
};

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
  FORETUNE_TRY_STATUS(forest.validate());
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
  engine->collect_thresholds(forest);
  for (std::size_t f = 0; f < kinds.size(); ++f) {
    if (engine->features_[f].threshold_count > kMaxThresholds) {
      return fail(ErrorCode::kUnsupported, "feature ", f, " has ",
                  engine->features_[f].threshold_count, " thresholds; at most ", kMaxThresholds,
                  " are supported");
    }
  }
  std::vector<std::uint32_t> of_node;
  engine->build_predicates(forest, of_node);
  FORETUNE_TRY_STATUS(engine->build_trees(forest, of_node));
  if (engine->kernels_->uses_paths) {
    engine->build_outcomes(forest, of_node);
  }
  engine->build_config_bitsets(config_columns);
  engine->lay_out_workspace();
  return engine;
}

void ForestEngine::collect_thresholds(const Forest& forest) {
  for (std::size_t i = 0; i < forest.feature.size(); ++i) {
    Feature& feature = features_[forest.feature[i]];
    feature.thresholds.push_back(forest.threshold[i]);
    feature.masks_nan = feature.masks_nan || forest.missing[i] == Forest::Missing::kNan;
    feature.masks_zero = feature.masks_zero || forest.missing[i] == Forest::Missing::kZero;
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
// each other.
void ForestEngine::build_predicates(const Forest& forest, std::vector<std::uint32_t>& of_node) {
  struct Key {
    FeatureKind kind;
    std::uint32_t feature;
    Forest::Missing missing;
    std::uint8_t default_left;
    std::uint16_t rank;
    std::uint32_t node;
    [[nodiscard]] auto group() const { return std::tuple(kind, feature, missing, default_left); }
    [[nodiscard]] auto all() const {
      return std::tuple(kind, feature, missing, default_left, rank);
    }
  };
  std::vector<Key> keys(forest.feature.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Feature& feature = features_[forest.feature[i]];
    // Without missing values of its own, a split has no default.
    const bool has_default = forest.missing[i] != Forest::Missing::kNone;
    keys[i] = {.kind = feature.kind,
               .feature = forest.feature[i],
               .missing = forest.missing[i],
               .default_left = has_default ? forest.default_left[i] : std::uint8_t{0},
               .rank = static_cast<std::uint16_t>(
                   count_below(feature.thresholds, feature.threshold_count, forest.threshold[i])),
               .node = static_cast<std::uint32_t>(i)};
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.all() < b.all(); });
  of_node.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Key& key = keys[i];
    if (i == 0 || keys[i - 1].group() != key.group()) {
      groups_.push_back({.feature = key.feature,
                         .first = static_cast<std::uint32_t>(predicates_.size()),
                         .count = 0,
                         .missing = key.missing,
                         .default_left = key.default_left != 0});
    }
    if (i == 0 || keys[i - 1].all() != key.all()) {
      predicates_.push_back({.column = static_cast<std::uint16_t>(features_[key.feature].column),
                             .rank = key.rank,
                             .missing = static_cast<std::uint8_t>(key.missing),
                             .default_left = key.default_left});
      ++groups_.back().count;
      first_config_predicate_ += key.kind == FeatureKind::kProblem ? 1 : 0;
      interaction_predicates_ += key.kind == FeatureKind::kInteraction ? 1 : 0;
    }
    of_node[key.node] = static_cast<std::uint32_t>(predicates_.size() - 1);
  }
}

// Nodes in preorder. The subtree that needs more places on the value stack is evaluated first,
// which bounds the stack by the logarithm of the number of leaves (Sethi and Ullman 1970).
Status ForestEngine::build_trees(const Forest& forest, const std::vector<std::uint32_t>& of_node) {
  std::vector<std::uint32_t> order;
  std::vector<std::uint16_t> position;
  std::vector<NodeOrder> orders;
  std::vector<std::uint32_t> pending;
  leaf_values_ = forest.leaf_value;
  for (const Forest::Tree& tree : forest.trees) {
    if (tree.leaf_count > kEngineMaxLeaves) {
      return fail(ErrorCode::kUnsupported, "a tree has ", tree.leaf_count, " leaves; at most ",
                  kEngineMaxLeaves, " are supported");
    }
    trees_.push_back({.first_node = static_cast<std::uint32_t>(nodes_.size()),
                      .first_leaf = tree.first_leaf,
                      .root = tree.node_count == 0 ? kEngineLeafBit : std::uint16_t{0}});
    max_leaves_ = std::max(max_leaves_, tree.leaf_count);
    order.clear();
    position.assign(tree.node_count, 0);
    orders.assign(tree.node_count, {});
    pending.assign(tree.node_count == 0 ? 0 : 1, 0);
    while (!pending.empty()) {
      const std::uint32_t node = pending.back();
      pending.pop_back();
      position[node] = static_cast<std::uint16_t>(order.size());
      order.push_back(node);
      for (const std::int32_t child :
           {forest.right[tree.first_node + node], forest.left[tree.first_node + node]}) {
        if (child >= 0) {
          pending.push_back(static_cast<std::uint32_t>(child));
        }
      }
    }
    const auto need = [&](std::int32_t child) {
      return child < 0 ? 1U : orders[static_cast<std::uint32_t>(child)].need;
    };
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::size_t node = tree.first_node + order[i];
      const std::uint32_t left = need(forest.left[node]);
      const std::uint32_t right = need(forest.right[node]);
      // When equal the right one first: two leaves then have the predicate itself as their plane.
      orders[order[i]] = {.need = left == right ? left + 1 : std::max(left, right),
                          .first_is_left = left > right};
      value_stack_ = std::max(value_stack_, orders[order[i]].need);
    }
    const auto reference = [&](std::int32_t child) {
      return child < 0 ? static_cast<std::uint16_t>(kEngineLeafBit | static_cast<unsigned>(~child))
                       : position[static_cast<std::uint32_t>(child)];
    };
    for (const std::uint32_t node : order) {
      const std::size_t source = tree.first_node + node;
      const bool first_is_left = orders[node].first_is_left;
      const std::uint16_t left = reference(forest.left[source]);
      const std::uint16_t right = reference(forest.right[source]);
      nodes_.push_back({.predicate = of_node[source] | (first_is_left ? kEngineFirstIsLeft : 0U),
                        .first = first_is_left ? left : right,
                        .second = first_is_left ? right : left});
    }
  }
  return {};
}

void ForestEngine::build_outcomes(const Forest& forest, const std::vector<std::uint32_t>& of_node) {
  predicate_of_ = of_node;
  outcomes_.resize(2 * of_node.size());
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

void ForestEngine::build_config_bitsets(std::span<const double> config_columns) {
  const std::size_t words = blocks_ * kEngineBlockWords;
  std::vector<std::uint32_t> config_groups;
  std::size_t predicates = 0;
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    if (features_[groups_[g].feature].kind == FeatureKind::kConfig) {
      config_groups.push_back(g);
      predicates += groups_[g].count;
    }
  }
  bit_storage_.assign((2 + predicates) * blocks_, {});
  std::uint64_t* next = bit_storage_.front().words.data();
  zeros_ = next;
  ones_ = zeros_ + words;
  std::fill_n(next + words, words, ~std::uint64_t{0});
  next += 2 * words;
  for (const std::uint32_t g : config_groups) {
    const Group& group = groups_[g];
    const Feature& feature = features_[group.feature];
    for (std::uint32_t p = group.first; p < group.first + group.count; ++p) {
      const double* values = config_columns.data() + feature.column * candidates_;
      std::size_t set = 0;
      for (std::size_t i = 0; i < candidates_; ++i) {
        const double value = values[i];
        const bool left = is_missing(group.missing, value) ? group.default_left
                          : group.missing == Forest::Missing::kCategorical
                              ? contains(feature, predicates_[p].rank, value)
                              : flushed(value) <= feature.thresholds[predicates_[p].rank];
        next[i / 64] |= std::uint64_t{left} << (i % 64);
        set += left ? 1 : 0;
      }
      config_bitsets_.push_back(next);
      config_states_.push_back(set == 0 || set == candidates_ ? state_of(set != 0) : kEngineVaries);
      next += words;
    }
  }
}

void ForestEngine::lay_out_workspace() {
  const std::size_t words = blocks_ * kEngineBlockWords;
  const std::size_t padded = blocks_ * kEngineBlock;
  std::size_t end = 0;
  const auto take = [&](std::size_t bytes) {
    const std::size_t offset = end;
    end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
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
  bitsets_offset_ = take(predicates_.size() * sizeof(const std::uint64_t*));
  states_offset_ = take(predicates_.size() + sizeof(std::uint32_t));
  const auto bits = static_cast<unsigned>(std::bit_width(max_leaves_ - 1));
  temporaries_offset_ = take(std::size_t{value_stack_} * bits * words * 8);
  values_offset_ = take((std::size_t{value_stack_} + 1) * sizeof(EngineValue));
  stack_offset_ = take(std::size_t{max_leaves_} * sizeof(std::uint16_t));
  postfix_offset_ = take(2 * std::size_t{max_leaves_} * sizeof(std::uint32_t));
  table_offset_ = take(std::max<std::size_t>(kMinTable, max_leaves_) * sizeof(double));
  sums_offset_ = take(padded * sizeof(double));
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

void ForestEngine::begin(std::byte* codes) const {
  for (std::size_t i = 0; i < interaction_features_.size(); ++i) {
    new (codes + seen_offset_ + i * sizeof(Seen)) Seen{.low = UINT32_MAX, .high = 0};
  }
}

void ForestEngine::mark_missing(std::byte* codes, const Feature& feature, Seen& seen,
                                std::size_t first, std::size_t count, const double* values) const {
  std::array<std::uint64_t, kEngineBlockWords> nan{};
  std::array<std::uint64_t, kEngineBlockWords> zero{};
  for (std::size_t i = 0; i < count; ++i) {
    nan[i / 64] |= std::uint64_t{std::isnan(values[i])} << (i % 64);
    zero[i / 64] |= std::uint64_t{is_zero_or_nan(values[i])} << (i % 64);
  }
  for (std::size_t word = 0; word < kEngineBlockWords; ++word) {
    seen.any_nan = seen.any_nan || nan[word] != 0;
    seen.any_zero_or_nan = seen.any_zero_or_nan || zero[word] != 0;
  }
  if (feature.masks_nan) {
    std::memcpy(codes + feature.nan_offset + first / 8, nan.data(), sizeof(nan));
  }
  if (feature.masks_zero) {
    std::memcpy(codes + feature.zero_offset + first / 8, zero.data(), sizeof(zero));
  }
}

void ForestEngine::add_chunk(std::byte* codes, std::size_t first, std::size_t count,
                             const double* columns, std::size_t stride) const {
  FORETUNE_DCHECK(first % kEngineBlock == 0 && count > 0 && count <= kEngineBlock);
  for (std::size_t c = 0; c < interaction_features_.size(); ++c) {
    const Feature& feature = features_[interaction_features_[c]];
    if (feature.threshold_count == 0) {
      continue;
    }
    Seen& seen = *at<Seen>(codes, seen_offset_ + c * sizeof(Seen));
    const double* values = columns + c * stride;
    if (feature.masks_nan || feature.masks_zero) {
      mark_missing(codes, feature, seen, first, count, values);
    }
    const EngineRange range = kernels_->range(values, count);
    const auto low = static_cast<std::uint32_t>(
        count_below(feature.thresholds, feature.threshold_count, range.low));
    const auto high = static_cast<std::uint32_t>(
        count_below(feature.thresholds, feature.threshold_count, range.high));
    seen.low = std::min(seen.low, low);
    seen.high = std::max(seen.high, high);
    const double* thresholds = feature.thresholds.data() + low;
    std::byte* out = codes + feature.codes_offset + first * (feature.wide ? 2 : 1);
    if (feature.wide) {
      kernels_->quantise_words(values, count, thresholds, high - low, low,
                               at<std::uint16_t>(out, 0));
    } else if (low == high) {
      std::memset(out, static_cast<int>(low), count);
    } else {
      kernels_->quantise_bytes(values, count, thresholds, high - low, low,
                               at<std::uint8_t>(out, 0));
    }
    if (count < kEngineBlock) {
      const std::size_t width = feature.wide ? 2 : 1;
      std::memset(out + count * width, 0, (kEngineBlock - count) * width);
    }
  }
}

void ForestEngine::decide_problem_group(const Group& group, double value,
                                        std::uint8_t* states) const {
  const Feature& feature = features_[group.feature];
  std::uint8_t* out = states + group.first;
  if (is_missing(group.missing, value)) {
    std::fill_n(out, group.count, state_of(group.default_left));
    return;
  }
  if (group.missing == Forest::Missing::kCategorical) {
    for (std::uint32_t i = 0; i < group.count; ++i) {
      out[i] = state_of(contains(feature, predicates_[group.first + i].rank, value));
    }
    return;
  }
  const std::size_t code = count_below(feature.thresholds, feature.threshold_count, flushed(value));
  for (std::uint32_t i = 0; i < group.count; ++i) {
    out[i] = state_of(code <= predicates_[group.first + i].rank);
  }
}

void ForestEngine::decide_interaction_group(const Group& group, const Seen& seen,
                                            std::uint8_t* states) const {
  std::uint8_t* out = states + group.first;
  const bool some_missing = (group.missing == Forest::Missing::kNan && seen.any_nan) ||
                            (group.missing == Forest::Missing::kZero && seen.any_zero_or_nan);
  if (some_missing) {
    std::fill_n(out, group.count, kEngineVaries);
    return;
  }
  for (std::uint32_t i = 0; i < group.count; ++i) {
    const std::uint32_t rank = predicates_[group.first + i].rank;
    out[i] = rank < seen.low ? kEngineFalse : rank >= seen.high ? kEngineTrue : kEngineVaries;
  }
}

void ForestEngine::run(const std::byte* codes, std::byte* scratch,
                       std::span<const double> problem_values) const {
  const auto** bitsets = at<const std::uint64_t*>(scratch, bitsets_offset_);
  auto* states = at<std::uint8_t>(scratch, states_offset_);
  const std::size_t behind_config = first_config_predicate_ + config_bitsets_.size();
  std::copy(config_bitsets_.begin(), config_bitsets_.end(), bitsets + first_config_predicate_);
  std::copy(config_states_.begin(), config_states_.end(), states + first_config_predicate_);
  std::fill(bitsets + behind_config, bitsets + predicates_.size(), nullptr);
  for (const Group& group : groups_) {
    const Feature& feature = features_[group.feature];
    if (feature.kind == FeatureKind::kProblem) {
      decide_problem_group(group, problem_values[feature.column], states);
    } else if (feature.kind == FeatureKind::kInteraction) {
      const Seen& seen = *at<const Seen>(codes, seen_offset_ + feature.column * sizeof(Seen));
      decide_interaction_group(group, seen, states);
    }
  }
  auto* columns = at<EngineColumn>(scratch, columns_offset_);
  for (std::size_t c = 0; c < interaction_features_.size(); ++c) {
    const Feature& feature = features_[interaction_features_[c]];
    const Seen& seen = *at<const Seen>(codes, seen_offset_ + c * sizeof(Seen));
    columns[c] = {.codes = at<const std::uint8_t>(codes, feature.codes_offset),
                  .is_nan = feature.masks_nan && seen.any_nan
                                ? at<const std::uint64_t>(codes, feature.nan_offset)
                                : nullptr,
                  .is_zero_or_nan = feature.masks_zero && seen.any_zero_or_nan
                                        ? at<const std::uint64_t>(codes, feature.zero_offset)
                                        : nullptr,
                  .wide = feature.wide};
  }
  double* sums = at<double>(scratch, sums_offset_);
  std::fill_n(sums, blocks_ * kEngineBlock, 0.0);
  EngineQuery query{.trees = trees_.data(),
                    .tree_count = trees_.size(),
                    .nodes = nodes_.data(),
                    .leaf_values = leaf_values_.data(),
                    .predicates = predicates_.data(),
                    .columns = columns,
                    .zeros = zeros_,
                    .ones = ones_,
                    .blocks = blocks_,
                    .bitsets = bitsets,
                    .states = states,
                    .next_bitset = at<std::uint64_t>(scratch, bit_space_offset_),
                    .temporaries = at<std::uint64_t>(scratch, temporaries_offset_),
                    .temporary_bits = static_cast<unsigned>(std::bit_width(max_leaves_ - 1)),
                    .values = at<EngineValue>(scratch, values_offset_),
                    .stack = at<std::uint16_t>(scratch, stack_offset_),
                    .postfix = at<std::uint32_t>(scratch, postfix_offset_),
                    .table = at<double>(scratch, table_offset_),
                    .sums = sums,
                    .roots = roots_.data(),
                    .predicate_of = predicate_of_.data(),
                    .outcomes = outcomes_.data(),
                    .trees_together = trees_together_,
                    .paths = nullptr,
                    .path_planes = nullptr};
  if (kernels_->uses_paths) {
    query.paths = new (scratch + paths_offset_) EnginePaths;
    query.path_planes = at<std::uint64_t>(scratch, path_planes_offset_);
    std::array<std::uint32_t*, 6> lists{};
    for (std::size_t i = 0; i < lists.size(); ++i) {
      lists[i] = at<std::uint32_t>(scratch, path_lists_offset_[i]);
    }
    query.paths->node = lists[0];
    query.paths->predicate = lists[1];
    query.paths->code = lists[2];
    query.paths->child = lists[3];
    query.paths->leaf = lists[4];
    query.paths->leaf_code = lists[5];
  }
  kernels_->run(query);
}

double ForestEngine::share_of_splits(FeatureKind kind) const {
  std::vector<FeatureKind> kind_of(predicates_.size());
  for (const Group& group : groups_) {
    std::fill_n(kind_of.begin() + group.first, group.count, features_[group.feature].kind);
  }
  std::ptrdiff_t count = 0;
  for (const EngineNode& node : nodes_) {
    count += kind_of[node.predicate & ~kEngineFirstIsLeft] == kind ? 1 : 0;
  }
  return nodes_.empty() ? 0 : static_cast<double>(count) / static_cast<double>(nodes_.size());
}

}  // namespace foretune
