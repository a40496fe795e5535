// Reads the model text of LightGBM 4 (src/io/tree.cpp, Tree::ToString): "key=value" lines, one
// block per tree that begins with "Tree=<index>", then "end of trees".
#include "foretune/interop/trees/lightgbm_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/interop/trees/internal/category_sets.h"

namespace foretune {
namespace {

constexpr int kCategoricalBit = 1;
constexpr int kDefaultLeftBit = 2;

class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  [[nodiscard]] bool next(std::string_view& line) {
    if (position_ >= text_.size()) {
      return false;
    }
    const std::size_t end = std::min(text_.find('\n', position_), text_.size());
    line = text_.substr(position_, end - position_);
    if (!line.empty() && line.back() == '\r') {
      line.remove_suffix(1);
    }
    position_ = end + 1;
    return true;
  }

 private:
  std::string_view text_;
  std::size_t position_ = 0;
};

// Splits "key=value". The value of a line without '=' is empty.
std::pair<std::string_view, std::string_view> key_and_value(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return {line, {}};
  }
  return {line.substr(0, equals), line.substr(equals + 1)};
}

// The lines of one tree that matter for prediction.
struct TreeText {
  std::string_view leaves;
  std::string_view categories = "0";
  std::string_view is_linear = "0";
  std::string_view features;
  std::string_view thresholds;
  std::string_view decisions;
  std::string_view left;
  std::string_view right;
  std::string_view values;
  std::string_view set_ends;
  std::string_view set_words;

  void set(std::string_view key, std::string_view value) {
    const std::array<std::pair<std::string_view, std::string_view*>, 11> slots{
        {{"num_leaves", &leaves},
         {"num_cat", &categories},
         {"is_linear", &is_linear},
         {"split_feature", &features},
         {"threshold", &thresholds},
         {"decision_type", &decisions},
         {"left_child", &left},
         {"right_child", &right},
         {"leaf_value", &values},
         {"cat_boundaries", &set_ends},
         {"cat_threshold", &set_words}}};
    for (const auto& [name, slot] : slots) {
      if (name == key) {
        *slot = value;
      }
    }
  }
};

template <class T, class Parse>
Status parse_list(std::string_view what, std::string_view text, std::size_t count,
                  std::vector<T>& out, const Parse& parse) {
  const std::vector<std::string_view> words = split_words(text);
  if (words.size() != count) {
    return fail(ErrorCode::kCorrupt, what, " has ", words.size(), " numbers instead of ", count);
  }
  for (const std::string_view word : words) {
    const auto value = parse(word);
    if (!value) {
      return fail(ErrorCode::kCorrupt, what, " has the number ", quoted(word, 40));
    }
    out.push_back(static_cast<T>(*value));
  }
  return {};
}

std::optional<std::int64_t> parse_child(std::string_view word) {
  const auto value = parse_int(word);
  return value && *value >= INT32_MIN && *value <= INT32_MAX ? value : std::nullopt;
}

std::optional<std::uint64_t> parse_word(std::string_view word) {
  const auto value = parse_uint(word);
  return value && *value <= UINT32_MAX ? value : std::nullopt;
}

std::optional<std::int64_t> parse_decision(std::string_view word) {
  const auto value = parse_int(word);
  return value && *value >= 0 && *value <= 127 ? value : std::nullopt;
}

// The sets of one tree. They join those of the forest when a node uses them.
class TreeSets {
 public:
  static Result<TreeSets> create(const TreeText& text) {
    const auto count = parse_uint(text.categories);
    if (!count || *count > INT32_MAX) {
      return fail(ErrorCode::kCorrupt, "num_cat is ", quoted(text.categories, 40));
    }
    TreeSets sets;
    if (*count == 0) {
      return sets;
    }
    FORETUNE_TRY_STATUS(parse_list("cat_boundaries", text.set_ends,
                                   static_cast<std::size_t>(*count) + 1, sets.boundaries_,
                                   parse_word));
    if (sets.boundaries_.front() != 0 ||
        !std::is_sorted(sets.boundaries_.begin(), sets.boundaries_.end())) {
      return fail(ErrorCode::kCorrupt, "cat_boundaries do not ascend from 0");
    }
    FORETUNE_TRY_STATUS(parse_list("cat_threshold", text.set_words, sets.boundaries_.back(),
                                   sets.words_, parse_word));
    sets.joined_.resize(static_cast<std::size_t>(*count));
    return sets;
  }

  // Returns the number in the forest of the set that a node of the tree calls `threshold`.
  Result<double> join(double threshold, CategoryInterner& all) {
    if (!(threshold >= 0 && threshold < static_cast<double>(joined_.size()))) {
      return fail(ErrorCode::kCorrupt, "a categorical split looks into set ", threshold, " of ",
                  joined_.size());
    }
    const auto index = static_cast<std::size_t>(threshold);
    if (!joined_[index]) {
      joined_[index] = all.intern(std::span(words_).subspan(
          boundaries_[index], boundaries_[index + 1] - boundaries_[index]));
    }
    return static_cast<double>(*joined_[index]);
  }

 private:
  std::vector<std::uint32_t> boundaries_;
  std::vector<std::uint32_t> words_;
  std::vector<std::optional<std::uint32_t>> joined_;
};

// Decodes the bits of each node, and replaces the tree's numbers of sets by the forest's.
Status add_decisions(const std::vector<int>& decisions, TreeSets& sets, CategoryInterner& all,
                     Forest& forest) {
  for (const int decision : decisions) {
    if ((decision & kCategoricalBit) != 0) {
      // A value that is not a category goes right, whatever the other bits are.
      double& threshold = forest.threshold[forest.missing.size()];
      FORETUNE_TRY(threshold, sets.join(threshold, all));
      forest.default_left.push_back(0);
      forest.missing.push_back(Forest::Missing::kCategorical);
      continue;
    }
    const int missing = (decision >> 2) & 3;
    if (missing > 2) {
      return fail(ErrorCode::kCorrupt, "decision type ", decision, " is unknown");
    }
    forest.default_left.push_back((decision & kDefaultLeftBit) != 0 ? 1 : 0);
    forest.missing.push_back(static_cast<Forest::Missing>(missing));
  }
  return {};
}

Status add_tree(const TreeText& text, CategoryInterner& all, Forest& forest) {
  const auto leaves = parse_uint(text.leaves);
  if (!leaves || *leaves == 0 || *leaves > UINT32_MAX) {
    return fail(ErrorCode::kCorrupt, "num_leaves is ", quoted(text.leaves, 40));
  }
  if (text.is_linear != "0") {
    return fail(ErrorCode::kUnsupported, "linear trees are not supported");
  }
  const auto nodes = static_cast<std::size_t>(*leaves - 1);
  forest.trees.push_back({.first_node = static_cast<std::uint32_t>(forest.feature.size()),
                          .node_count = static_cast<std::uint32_t>(nodes),
                          .first_leaf = static_cast<std::uint32_t>(forest.leaf_value.size()),
                          .leaf_count = static_cast<std::uint32_t>(*leaves)});
  FORETUNE_TRY_STATUS(
      parse_list("leaf_value", text.values, nodes + 1, forest.leaf_value, parse_double));
  if (nodes == 0) {
    return {};
  }
  FORETUNE_TRY(TreeSets sets, TreeSets::create(text));
  std::vector<int> decisions;
  FORETUNE_TRY_STATUS(
      parse_list("split_feature", text.features, nodes, forest.feature, parse_word));
  FORETUNE_TRY_STATUS(
      parse_list("threshold", text.thresholds, nodes, forest.threshold, parse_double));
  FORETUNE_TRY_STATUS(parse_list("left_child", text.left, nodes, forest.left, parse_child));
  FORETUNE_TRY_STATUS(parse_list("right_child", text.right, nodes, forest.right, parse_child));
  FORETUNE_TRY_STATUS(
      parse_list("decision_type", text.decisions, nodes, decisions, parse_decision));
  return add_decisions(decisions, sets, all, forest);
}

struct LightgbmObjective {
  std::string_view name;
  OutputTransform::Kind output;
  bool may_be_root;  // "sqrt": the model learned the target's root
};

// From src/objective, ConvertOutput. Objectives with several outputs are not listed.
constexpr std::array kLightgbmObjectives{
    LightgbmObjective{"regression", OutputTransform::Kind::kIdentity, true},
    LightgbmObjective{"regression_l1", OutputTransform::Kind::kIdentity, true},
    LightgbmObjective{"fair", OutputTransform::Kind::kIdentity, true},
    LightgbmObjective{"quantile", OutputTransform::Kind::kIdentity, true},
    LightgbmObjective{"mape", OutputTransform::Kind::kIdentity, true},
    LightgbmObjective{"huber", OutputTransform::Kind::kIdentity, false},
    LightgbmObjective{"lambdarank", OutputTransform::Kind::kIdentity, false},
    LightgbmObjective{"rank_xendcg", OutputTransform::Kind::kIdentity, false},
    LightgbmObjective{"custom", OutputTransform::Kind::kIdentity, false},
    LightgbmObjective{"poisson", OutputTransform::Kind::kExp, false},
    LightgbmObjective{"gamma", OutputTransform::Kind::kExp, false},
    LightgbmObjective{"tweedie", OutputTransform::Kind::kExp, false},
    LightgbmObjective{"binary", OutputTransform::Kind::kSigmoid, false},
    LightgbmObjective{"cross_entropy", OutputTransform::Kind::kSigmoid, false},
    LightgbmObjective{"cross_entropy_lambda", OutputTransform::Kind::kLogOnePlusExp, false}};

Result<OutputTransform> parse_objective(std::string_view text) {
  const std::vector<std::string_view> words = split_words(text);
  if (words.empty()) {
    return OutputTransform{};
  }
  const auto* const objective =
      std::find_if(kLightgbmObjectives.begin(), kLightgbmObjectives.end(),
                   [&](const LightgbmObjective& known) { return known.name == words[0]; });
  if (objective == kLightgbmObjectives.end()) {
    return fail(ErrorCode::kUnsupported, "how its objective ", quoted(text, 60),
                " turns the sum of the leaves into a prediction is not known");
  }
  OutputTransform output{.kind = objective->output};
  constexpr std::string_view kSlope = "sigmoid:";
  for (const std::string_view word : words) {
    if (word == "sqrt" && objective->may_be_root) {
      output.kind = OutputTransform::Kind::kSignedSquare;
    } else if (word.substr(0, kSlope.size()) == kSlope && objective->name == "binary") {
      const auto slope = parse_double(word.substr(kSlope.size()));
      if (!slope || !(*slope > 0) || !std::isfinite(*slope)) {
        return fail(ErrorCode::kCorrupt, "the objective is ", quoted(text, 60));
      }
      output.slope = *slope;
    }
  }
  return output;
}

struct Header {
  std::string_view classes = "1";
  std::string_view trees_per_iteration = "1";
  std::string_view max_feature;
  std::string_view objective;
  std::optional<std::string_view> names;
  std::optional<std::string_view> tree_sizes;
  bool average = false;

  void set(std::string_view key, std::string_view value) {
    if (key == "num_class") {
      classes = value;
    } else if (key == "num_tree_per_iteration") {
      trees_per_iteration = value;
    } else if (key == "max_feature_idx") {
      max_feature = value;
    } else if (key == "objective") {
      objective = value;
    } else if (key == "feature_names") {
      names = value;
    } else if (key == "tree_sizes") {
      tree_sizes = value;
    } else if (key == "average_output") {
      average = true;
    }
  }
};

// LightGBM's made-up names of columns without a name count as no names.
Result<std::vector<std::string>> parse_names(std::string_view text, std::uint32_t features) {
  const std::vector<std::string_view> words = split_words(text);
  if (words.size() != features) {
    return fail(ErrorCode::kMismatch, "feature_names has ", words.size(), " names for ", features,
                " features");
  }
  std::vector<std::string> names;
  bool named = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    names.emplace_back(words[i]);
    named = named || names.back() != made_up_name(i);
  }
  return named ? names : std::vector<std::string>();
}

Status read_header(const Header& header, TreeModel& model) {
  if (header.classes != "1" || header.trees_per_iteration != "1") {
    return fail(ErrorCode::kUnsupported, "models with several outputs are not supported (",
                quoted(header.classes, 40), " classes)");
  }
  model.average = header.average;
  const auto last = parse_uint(header.max_feature);
  if (!last || *last >= UINT32_MAX) {
    return fail(ErrorCode::kCorrupt, "max_feature_idx is ", quoted(header.max_feature, 40));
  }
  model.forest.feature_count = static_cast<std::uint32_t>(*last) + 1;
  if (header.names) {
    FORETUNE_TRY(model.feature_names, parse_names(*header.names, model.forest.feature_count));
  }
  FORETUNE_TRY(model.output, parse_objective(header.objective));
  return {};
}

}  // namespace

Result<TreeModel> parse_lightgbm_text(std::string_view text) {
  Lines lines(text);
  std::string_view line;
  if (!lines.next(line) || line != "tree") {
    return fail(ErrorCode::kCorrupt, "a LightGBM model begins with the line 'tree'");
  }
  TreeModel model;
  CategoryInterner sets(model.forest.categories);
  Header header;
  TreeText tree;
  bool in_tree = false;
  bool ended = false;
  // A block ends where the next begins.
  const auto end_block = [&]() -> Status {
    if (!in_tree) {
      const Status status = read_header(header, model);
      return status ? status : fail_because(status.error(), "LightGBM model");
    }
    const std::size_t index = model.forest.trees.size();
    const Status status = add_tree(tree, sets, model.forest);
    tree = {};
    return status ? status : fail_because(status.error(), "LightGBM model, tree ", index);
  };
  while (!ended && lines.next(line)) {
    const auto [key, value] = key_and_value(line);
    ended = line == "end of trees";
    if (ended || key == "Tree") {
      FORETUNE_TRY_STATUS(end_block());
      in_tree = true;
    } else if (in_tree) {
      tree.set(key, value);
    } else {
      header.set(key, value);
    }
  }
  if (!ended) {
    return fail(ErrorCode::kCorrupt, "the LightGBM model is truncated: no line 'end of trees'");
  }
  if (header.tree_sizes && split_words(*header.tree_sizes).size() != model.forest.trees.size()) {
    return fail(ErrorCode::kCorrupt, "the LightGBM model announces ",
                split_words(*header.tree_sizes).size(), " trees and has ",
                model.forest.trees.size());
  }
  FORETUNE_TRY_STATUS(model.forest.validate());
  return model;
}

}  // namespace foretune
