// Writing LightGBM's model text: the keys without which LightGBM does not load a model, and no
// more.
#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/trees/lightgbm_text.h"

namespace foretune {
namespace {

// "key=1 2 3\n" of `count` values.
template <class Value>
std::string line_of(std::string_view key, std::size_t count, const Value& value) {
  std::string out = concat(key, '=');
  for (std::size_t i = 0; i < count; ++i) {
    out += concat(i == 0 ? "" : " ", value(i));
  }
  out += '\n';
  return out;
}

std::string objective_text(const OutputTransform& output) {
  switch (output.kind) {
    case OutputTransform::Kind::kIdentity:
      return "regression";
    case OutputTransform::Kind::kExp:
      return "poisson";
    case OutputTransform::Kind::kSigmoid:
      return concat("binary sigmoid:", output.slope);
    case OutputTransform::Kind::kSignedSquare:
      return "regression sqrt";
    case OutputTransform::Kind::kLogOnePlusExp:
      return "cross_entropy_lambda";
  }
  return {};
}

int decision_of(const Forest& forest, std::size_t node) {
  if (forest.is_categorical(node)) {
    return 1;
  }
  return (forest.default_left[node] != 0 ? 2 : 0) | (static_cast<int>(forest.missing[node]) << 2);
}

std::string sets_text(const Forest& forest, const std::vector<std::size_t>& sets) {
  std::vector<std::uint32_t> boundaries{0};
  std::vector<std::uint32_t> words;
  for (const std::size_t set : sets) {
    const std::span<const std::uint32_t> bits = forest.categories.words_of(set);
    words.insert(words.end(), bits.begin(), bits.end());
    boundaries.push_back(static_cast<std::uint32_t>(words.size()));
  }
  return line_of("cat_boundaries", boundaries.size(),
                 [&](std::size_t i) { return boundaries[i]; }) +
         line_of("cat_threshold", words.size(), [&](std::size_t i) { return words[i]; });
}

std::string tree_text(const Forest& forest, std::size_t index) {
  const Forest::Tree& tree = forest.trees[index];
  const std::size_t nodes = tree.node_count;
  std::vector<double> thresholds;
  std::vector<std::size_t> sets;
  std::map<std::size_t, std::size_t> positions;  // of the sets of the forest, in the tree
  for (std::size_t node = tree.first_node; node < tree.first_node + nodes; ++node) {
    if (forest.is_categorical(node)) {
      const auto set = static_cast<std::size_t>(forest.threshold[node]);
      const auto [position, added] = positions.emplace(set, sets.size());
      if (added) {
        sets.push_back(set);
      }
      thresholds.push_back(static_cast<double>(position->second));
    } else {
      thresholds.push_back(forest.threshold[node]);
    }
  }
  const auto of_nodes = [&](std::string_view key, const auto& values) {
    return line_of(key, nodes, [&](std::size_t i) { return values[tree.first_node + i]; });
  };
  std::string out =
      concat("Tree=", index, "\nnum_leaves=", tree.leaf_count, "\nnum_cat=", sets.size(), '\n');
  out += of_nodes("split_feature", forest.feature);
  out += line_of("threshold", nodes, [&](std::size_t i) { return thresholds[i]; });
  out += line_of("decision_type", nodes,
                 [&](std::size_t i) { return decision_of(forest, tree.first_node + i); });
  out += of_nodes("left_child", forest.left);
  out += of_nodes("right_child", forest.right);
  out += line_of("leaf_value", tree.leaf_count,
                 [&](std::size_t i) { return forest.leaf_value[tree.first_leaf + i]; });
  if (!sets.empty()) {
    out += sets_text(forest, sets);
  }
  // Leaf values are those of the whole tree: nothing is left to shrink.
  out += "is_linear=0\nshrinkage=1\n\n\n";
  return out;
}

Status check_names(const TreeModel& model) {
  const std::vector<std::string>& names = model.feature_names;
  if (!names.empty() && names.size() != model.forest.feature_count) {
    return fail(ErrorCode::kInvalidArgument, names.size(), " names for ",
                model.forest.feature_count, " features");
  }
  for (const std::string& name : names) {
    const bool blank = std::any_of(name.begin(), name.end(),
                                   [](unsigned char c) { return c <= ' ' || c == 0x7f; });
    if (name.empty() || blank) {
      return fail(ErrorCode::kInvalidArgument, "LightGBM's text cannot hold the feature name ",
                  foretune::quoted(name));
    }
  }
  return {};
}

Status check_writable(const TreeModel& model) {
  const Forest& forest = model.forest;
  FORETUNE_TRY_STATUS(forest.validate());
  if (forest.feature_count == 0) {
    return fail(ErrorCode::kInvalidArgument, "LightGBM has no models without features");
  }
  for (std::size_t node = 0; node < forest.feature.size(); ++node) {
    if (forest.is_categorical(node) && forest.default_left[node] != 0) {
      return fail(ErrorCode::kUnsupported, "node ", node,
                  " is categorical and sends NaN left, which LightGBM cannot do");
    }
  }
  return check_names(model);
}

}  // namespace

std::string made_up_name(std::size_t column) { return concat("Column_", column); }

Result<std::string> to_lightgbm_text(const TreeModel& model) {
  FORETUNE_TRY_STATUS(check_writable(model));
  const std::size_t features = model.forest.feature_count;
  std::vector<std::string> trees;
  for (std::size_t t = 0; t < model.forest.trees.size(); ++t) {
    trees.push_back(tree_text(model.forest, t));
  }
  std::string out = concat(
      "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=",
      features - 1, "\nobjective=", objective_text(model.output), '\n');
  if (model.average) {
    out += "average_output\n";
  }
  out += line_of("feature_names", features, [&](std::size_t i) {
    return model.feature_names.empty() ? made_up_name(i) : model.feature_names[i];
  });
  out += line_of("feature_infos", features, [](std::size_t) { return "none"; });
  out += line_of("tree_sizes", trees.size(), [&](std::size_t i) { return trees[i].size(); });
  out += '\n';
  for (const std::string& tree : trees) {
    out += tree;
  }
  out += "end of trees\n\nfeature_importances:\n";
  return out;
}

}  // namespace foretune
