#include "foretune/interop/trees/xgboost_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/formats/json.h"
#include "foretune/interop/trees/internal/category_sets.h"

namespace foretune {
namespace {

using formats::Json;
using formats::member;
using formats::text_at;

constexpr std::int64_t kMaxCategory = (1 << 24) - 1;  // the largest that floats count to by ones
constexpr std::size_t kMaxSetWords = std::size_t{1} << 24U;

// The function by which XGBoost turns the base score of the file into the margin that trees are
// added to.
enum class Link { kIdentity, kLogit, kLog };

struct XgboostObjective {
  std::string_view name;
  OutputTransform::Kind output;
  Link link;
};

constexpr std::array kXgboostObjectives{
    XgboostObjective{"reg:squarederror", OutputTransform::Kind::kIdentity, Link::kIdentity},
    XgboostObjective{"reg:linear", OutputTransform::Kind::kIdentity, Link::kIdentity},
    XgboostObjective{"reg:absoluteerror", OutputTransform::Kind::kIdentity, Link::kIdentity},
    XgboostObjective{"reg:pseudohubererror", OutputTransform::Kind::kIdentity, Link::kIdentity},
    XgboostObjective{"reg:squaredlogerror", OutputTransform::Kind::kIdentity, Link::kIdentity},
    XgboostObjective{"reg:quantileerror", OutputTransform::Kind::kIdentity, Link::kIdentity},
    XgboostObjective{"rank:pairwise", OutputTransform::Kind::kIdentity, Link::kIdentity},
    XgboostObjective{"rank:ndcg", OutputTransform::Kind::kIdentity, Link::kIdentity},
    XgboostObjective{"rank:map", OutputTransform::Kind::kIdentity, Link::kIdentity},
    XgboostObjective{"binary:logitraw", OutputTransform::Kind::kIdentity, Link::kIdentity},
    XgboostObjective{"binary:logistic", OutputTransform::Kind::kSigmoid, Link::kLogit},
    XgboostObjective{"reg:logistic", OutputTransform::Kind::kSigmoid, Link::kLogit},
    XgboostObjective{"count:poisson", OutputTransform::Kind::kExp, Link::kLog},
    XgboostObjective{"reg:gamma", OutputTransform::Kind::kExp, Link::kLog},
    XgboostObjective{"reg:tweedie", OutputTransform::Kind::kExp, Link::kLog}};

// Returns the value at the end of a path of keys, or null where there is none.
const Json* at_path(const Json& root, std::initializer_list<const char*> keys) {
  const Json* value = &root;
  for (const char* key : keys) {
    value = value == nullptr ? nullptr : member(*value, key);
  }
  return value;
}

// Reads a number, which is a string in the parameters of the file.
std::optional<std::uint64_t> count_at(const Json& root, std::initializer_list<const char*> keys) {
  const Json* value = at_path(root, keys);
  return value != nullptr && value->is_string() ? parse_uint(value->get<std::string>())
                                                : std::nullopt;
}

std::optional<float> float_of(const Json& value) {
  if (!value.is_number()) {
    return std::nullopt;
  }
  const auto wide = value.get<double>();
  return std::fabs(wide) <= static_cast<double>(std::numeric_limits<float>::max())
             ? std::optional(static_cast<float>(wide))
             : std::nullopt;
}

// The arrays of one tree, indexed by its own numbers of nodes.
struct TreeArrays {
  std::vector<std::int64_t> left;
  std::vector<std::int64_t> right;
  std::vector<std::int64_t> feature;
  std::vector<std::int64_t> default_left;
  std::vector<std::int64_t> split_type;  // 1: by category
  // Threshold of a node or value of a leaf. Nothing where the file has no finite float; version 2
  // writes NaN for categorical nodes.
  std::vector<std::optional<float>> condition;
  std::vector<std::vector<std::uint32_t>> sets;
};

Result<const Json*> array_at(const Json& tree, const char* key, std::optional<std::size_t> size) {
  const Json* array = member(tree, key);
  if (array == nullptr || !array->is_array()) {
    return fail(ErrorCode::kCorrupt, "it has no array '", key, "'");
  }
  if (size && array->size() != *size) {
    return fail(ErrorCode::kCorrupt, "'", key, "' has ", array->size(), " entries instead of ",
                *size);
  }
  return array;
}

Result<std::vector<std::int64_t>> integers_at(const Json& tree, const char* key,
                                              std::optional<std::size_t> size) {
  FORETUNE_TRY(const Json* const array, array_at(tree, key, size));
  std::vector<std::int64_t> out;
  out.reserve(array->size());
  for (const Json& entry : *array) {
    const auto value = entry.is_boolean() ? std::optional<std::int64_t>(entry.get<bool>() ? 1 : 0)
                                          : formats::integer_of(entry);
    if (!value) {
      return fail(ErrorCode::kCorrupt, "'", key, "' holds what is no whole number");
    }
    out.push_back(*value);
  }
  return out;
}

// Returns the bits of one set. `budget` is the number of words that the model may still fill.
Result<std::vector<std::uint32_t>> set_of(std::span<const std::int64_t> categories,
                                          std::size_t& budget) {
  std::vector<std::uint32_t> words;
  for (const std::int64_t category : categories) {
    if (category < 0 || category > kMaxCategory) {
      return fail(ErrorCode::kCorrupt, "a split has the category ", category);
    }
    const auto word = static_cast<std::size_t>(category) / 32;
    if (word >= words.size()) {
      if (word + 1 - words.size() > budget) {
        return fail(ErrorCode::kUnsupported, "its sets of categories fill over ", kMaxSetWords * 4,
                    " bytes");
      }
      budget -= word + 1 - words.size();
      words.resize(word + 1);
    }
    words[word] |= 1U << (static_cast<std::uint64_t>(category) % 32);
  }
  return words;
}

Status read_sets(const Json& tree, std::size_t& budget, TreeArrays& out) {
  FORETUNE_TRY(const auto nodes, integers_at(tree, "categories_nodes", std::nullopt));
  FORETUNE_TRY(const auto categories, integers_at(tree, "categories", std::nullopt));
  FORETUNE_TRY(const auto segments, integers_at(tree, "categories_segments", nodes.size()));
  FORETUNE_TRY(const auto sizes, integers_at(tree, "categories_sizes", nodes.size()));
  out.sets.resize(out.left.size());
  const auto total = static_cast<std::int64_t>(categories.size());
  const auto node_count = static_cast<std::int64_t>(out.left.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] < 0 || nodes[i] >= node_count || segments[i] < 0 || segments[i] > total ||
        sizes[i] < 0 || sizes[i] > total - segments[i]) {
      return fail(ErrorCode::kCorrupt, "the categories of node ", nodes[i], " are not there");
    }
    const auto part =
        std::span(categories)
            .subspan(static_cast<std::size_t>(segments[i]), static_cast<std::size_t>(sizes[i]));
    FORETUNE_TRY(out.sets[static_cast<std::size_t>(nodes[i])], set_of(part, budget));
  }
  return {};
}

Result<TreeArrays> read_arrays(const Json& tree, std::size_t& budget) {
  TreeArrays out;
  FORETUNE_TRY(out.left, integers_at(tree, "left_children", std::nullopt));
  const std::size_t nodes = out.left.size();
  if (nodes == 0 || nodes >= INT32_MAX) {
    return fail(ErrorCode::kCorrupt, "it has ", nodes, " nodes");
  }
  FORETUNE_TRY(out.right, integers_at(tree, "right_children", nodes));
  FORETUNE_TRY(out.feature, integers_at(tree, "split_indices", nodes));
  FORETUNE_TRY(out.default_left, integers_at(tree, "default_left", nodes));
  FORETUNE_TRY(const Json* const conditions, array_at(tree, "split_conditions", nodes));
  for (const Json& entry : *conditions) {
    out.condition.push_back(float_of(entry));
  }
  // Versions before 1.3 have no categories.
  out.split_type.assign(nodes, 0);
  if (member(tree, "split_type") != nullptr) {
    FORETUNE_TRY(out.split_type, integers_at(tree, "split_type", nodes));
  }
  if (std::any_of(out.split_type.begin(), out.split_type.end(),
                  [](std::int64_t type) { return type != 0; })) {
    FORETUNE_TRY_STATUS(read_sets(tree, budget, out));
  }
  return out;
}

// Builds one tree of the forest, depth first from the root. Nodes that the root does not reach were
// deleted.
class TreeBuilder {
 public:
  TreeBuilder(const TreeArrays& arrays, CategoryInterner& sets, Forest& forest)
      : arrays_(arrays), sets_(sets), forest_(forest), seen_(arrays.left.size(), 0) {}

  Status build() {
    Forest::Tree tree{.first_node = static_cast<std::uint32_t>(forest_.feature.size()),
                      .first_leaf = static_cast<std::uint32_t>(forest_.leaf_value.size())};
    std::vector<Pending> pending{{.source = 0}};
    while (!pending.empty()) {
      const Pending next = pending.back();
      pending.pop_back();
      const auto count = static_cast<std::int64_t>(arrays_.left.size());
      if (next.source < 0 || next.source >= count) {
        return fail(ErrorCode::kCorrupt, "node ", next.source, " does not exist");
      }
      const auto source = static_cast<std::size_t>(next.source);
      if (std::exchange(seen_[source], std::uint8_t{1}) != 0) {
        return fail(ErrorCode::kCorrupt, "it is not a tree: node ", source, " has two parents");
      }
      const bool is_leaf = arrays_.left[source] == -1;
      if (!arrays_.condition[source] && (is_leaf || arrays_.split_type[source] != 1)) {
        return fail(ErrorCode::kCorrupt, "the split condition of node ", source,
                    " is no finite float");
      }
      if (is_leaf) {
        attach(next, tree, ~static_cast<std::int32_t>(tree.leaf_count++));
        forest_.leaf_value.push_back(static_cast<double>(arrays_.condition[source].value_or(0)));
        continue;
      }
      const auto node = static_cast<std::int32_t>(tree.node_count++);
      attach(next, tree, node);
      FORETUNE_TRY_STATUS(add_node(source));
      const bool swapped = arrays_.split_type[source] == 1;
      pending.push_back({swapped ? arrays_.left[source] : arrays_.right[source], node, false});
      pending.push_back({swapped ? arrays_.right[source] : arrays_.left[source], node, true});
    }
    forest_.trees.push_back(tree);
    return {};
  }

 private:
  struct Pending {
    std::int64_t source = 0;
    std::int32_t parent = -1;  // in the new tree
    bool is_left = false;
  };

  void attach(const Pending& child, const Forest::Tree& tree, std::int32_t position) {
    if (child.parent >= 0) {
      const std::size_t node = tree.first_node + static_cast<std::size_t>(child.parent);
      (child.is_left ? forest_.left : forest_.right)[node] = position;
    }
  }

  Status add_node(std::size_t source) {
    const std::int64_t feature = arrays_.feature[source];
    if (feature < 0 || feature >= std::int64_t{forest_.feature_count}) {
      return fail(ErrorCode::kCorrupt, "node ", source, " splits on feature ", feature, " of ",
                  forest_.feature_count);
    }
    const std::int64_t type = arrays_.split_type[source];
    if (type != 0 && type != 1) {
      return fail(ErrorCode::kUnsupported, "node ", source, " is of the unknown split type ", type);
    }
    const bool default_left = arrays_.default_left[source] != 0;
    forest_.feature.push_back(static_cast<std::uint32_t>(feature));
    forest_.left.push_back(0);
    forest_.right.push_back(0);
    if (type == 1) {
      // In XGBoost the values in the set go right. Here they go left, so the sides are swapped.
      forest_.threshold.push_back(static_cast<double>(sets_.intern(arrays_.sets[source])));
      forest_.missing.push_back(Forest::Missing::kCategorical);
      forest_.default_left.push_back(default_left ? 0 : 1);
      return {};
    }
    const float before = std::nextafter(arrays_.condition[source].value_or(0),
                                        -std::numeric_limits<float>::infinity());
    forest_.threshold.push_back(static_cast<double>(before));
    forest_.missing.push_back(Forest::Missing::kNan);
    forest_.default_left.push_back(default_left ? 1 : 0);
    return {};
  }

  const TreeArrays& arrays_;
  CategoryInterner& sets_;
  Forest& forest_;
  std::vector<std::uint8_t> seen_;
};

// "5E-1", in newer versions "[5E-1]" with an entry per output.
Result<float> read_base(const Json& document, Link link) {
  const Json* value = at_path(document, {"learner", "learner_model_param", "base_score"});
  const std::string text =
      value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
  std::string_view digits = text;
  if (digits.size() >= 2 && digits.front() == '[' && digits.back() == ']') {
    digits = digits.substr(1, digits.size() - 2);
  }
  const auto wide = parse_double(digits);
  const auto base = wide ? float_of(Json(*wide)) : std::nullopt;
  if (!base) {
    return fail(ErrorCode::kCorrupt, "its base_score is ", quoted(text, 40));
  }
  const float margin = link == Link::kLogit ? -std::log(1.0F / *base - 1.0F)
                       : link == Link::kLog ? std::log(*base)
                                            : *base;
  if (!std::isfinite(margin)) {
    return fail(ErrorCode::kCorrupt, "the base_score ", digits, " does not suit the objective");
  }
  return margin;
}

Status check_outputs(const Json& document) {
  const auto classes = count_at(document, {"learner", "learner_model_param", "num_class"});
  const auto targets = count_at(document, {"learner", "learner_model_param", "num_target"});
  if (classes.value_or(0) > 1 || targets.value_or(1) > 1) {
    return fail(ErrorCode::kUnsupported, "models with several outputs are not supported");
  }
  return {};
}

Result<XgboostObjective> read_objective(const Json& document) {
  const Json* objective = at_path(document, {"learner", "objective"});
  const std::string name =
      objective == nullptr ? std::string() : text_at(*objective, "name").value_or("");
  const auto* const found =
      std::find_if(kXgboostObjectives.begin(), kXgboostObjectives.end(),
                   [&](const XgboostObjective& known) { return known.name == name; });
  if (found == kXgboostObjectives.end()) {
    return fail(ErrorCode::kUnsupported, "how its objective ", quoted(name, 60),
                " turns the sum of the leaves into a prediction is not known");
  }
  return *found;
}

Status read_names(const Json& document, TreeModel& model) {
  const Json* names = at_path(document, {"learner", "feature_names"});
  if (names == nullptr || !names->is_array() || names->empty()) {
    return {};
  }
  if (names->size() != model.forest.feature_count) {
    return fail(ErrorCode::kMismatch, "feature_names has ", names->size(), " names for ",
                model.forest.feature_count, " features");
  }
  for (const Json& name : *names) {
    if (!name.is_string()) {
      return fail(ErrorCode::kCorrupt, "feature_names holds what is no text");
    }
    model.feature_names.push_back(name.get<std::string>());
  }
  return {};
}

Status read_trees(const Json& booster, TreeModel& model) {
  FORETUNE_TRY(const Json* const trees, array_at(booster, "trees", std::nullopt));
  const auto announced = count_at(booster, {"gbtree_model_param", "num_trees"});
  if (!announced || *announced != trees->size()) {
    return fail(ErrorCode::kCorrupt, "it announces ",
                announced ? concat(*announced) : "no number of", " trees and has ", trees->size());
  }
  CategoryInterner sets(model.forest.categories);
  std::size_t budget = kMaxSetWords;
  for (std::size_t t = 0; t < trees->size(); ++t) {
    const Json& tree = (*trees)[t];
    if (count_at(tree, {"tree_param", "size_leaf_vector"}).value_or(0) > 1) {
      return fail(ErrorCode::kUnsupported, "tree ", t, ": leaves of several values are not ",
                  "supported");
    }
    const auto arrays = read_arrays(tree, budget);
    const Status status = arrays ? TreeBuilder(*arrays, sets, model.forest).build()
                                 : Status(tl::unexpected(arrays.error()));
    if (!status) {
      return fail_because(status.error(), "tree ", t);
    }
  }
  return {};
}

Result<TreeModel> read_document(const Json& document) {
  const Json* booster = at_path(document, {"learner", "gradient_booster"});
  if (booster == nullptr) {
    return fail(ErrorCode::kCorrupt, "it has no learner.gradient_booster");
  }
  const std::string name = text_at(*booster, "name").value_or("");
  if (name != "gbtree") {
    return fail(ErrorCode::kUnsupported, "boosters of kind ", quoted(name, 40),
                " are not supported, only gbtree");
  }
  FORETUNE_TRY_STATUS(check_outputs(document));
  TreeModel model;
  const auto features = count_at(document, {"learner", "learner_model_param", "num_feature"});
  if (!features || *features > UINT32_MAX) {
    return fail(ErrorCode::kCorrupt, "it does not say how many features it has");
  }
  model.forest.feature_count = static_cast<std::uint32_t>(*features);
  FORETUNE_TRY_STATUS(read_names(document, model));
  FORETUNE_TRY(const XgboostObjective objective, read_objective(document));
  model.output.kind = objective.output;
  FORETUNE_TRY(const float base, read_base(document, objective.link));
  if (base != 0) {
    model.forest.trees.push_back({.leaf_count = 1});
    model.forest.leaf_value.push_back(static_cast<double>(base));
  }
  const Json* trees = member(*booster, "model");
  if (trees == nullptr) {
    return fail(ErrorCode::kCorrupt, "it has no learner.gradient_booster.model");
  }
  FORETUNE_TRY_STATUS(read_trees(*trees, model));
  FORETUNE_TRY_STATUS(model.forest.validate());
  return model;
}

}  // namespace

Result<TreeModel> parse_xgboost_json(std::string_view text) {
  auto document = formats::parse_json(text);
  auto model =
      document ? read_document(*document) : Result<TreeModel>(tl::unexpected(document.error()));
  return model ? std::move(model) : fail_because(model.error(), "XGBoost model");
}

}  // namespace foretune
