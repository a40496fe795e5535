// The model text of LightGBM 4 (src/io/tree.cpp, Tree::ToString): "key=value" lines, one block per
// tree that begins with "Tree=<index>", then "end of trees".
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/models/infer/forest.h"

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

// "key=value" into its parts; the value of a line without '=' is empty.
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

  void set(std::string_view key, std::string_view value) {
    const std::array<std::pair<std::string_view, std::string_view*>, 9> slots{
        {{"num_leaves", &leaves},
         {"num_cat", &categories},
         {"is_linear", &is_linear},
         {"split_feature", &features},
         {"threshold", &thresholds},
         {"decision_type", &decisions},
         {"left_child", &left},
         {"right_child", &right},
         {"leaf_value", &values}}};
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
      return fail(ErrorCode::kCorrupt, what, " has the number '", word.substr(0, 40), "'");
    }
    out.push_back(static_cast<T>(*value));
  }
  return {};
}

std::optional<std::int64_t> parse_child(std::string_view word) {
  const auto value = parse_int(word);
  return value && *value >= INT32_MIN && *value <= INT32_MAX ? value : std::nullopt;
}

std::optional<std::uint64_t> parse_feature(std::string_view word) {
  const auto value = parse_uint(word);
  return value && *value <= UINT32_MAX ? value : std::nullopt;
}

std::optional<std::int64_t> parse_decision(std::string_view word) {
  const auto value = parse_int(word);
  return value && *value >= 0 && *value <= 127 ? value : std::nullopt;
}

Status add_decisions(const std::vector<int>& decisions, Forest& forest) {
  for (const int decision : decisions) {
    if ((decision & kCategoricalBit) != 0) {
      return fail(ErrorCode::kUnsupported, "categorical splits are not supported");
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

Status add_tree(const TreeText& text, Forest& forest) {
  const auto leaves = parse_uint(text.leaves);
  if (!leaves || *leaves == 0 || *leaves > UINT32_MAX) {
    return fail(ErrorCode::kCorrupt, "num_leaves is '", text.leaves.substr(0, 40), "'");
  }
  if (text.categories != "0") {
    return fail(ErrorCode::kUnsupported, "categorical splits are not supported");
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
  std::vector<int> decisions;
  FORETUNE_TRY_STATUS(
      parse_list("split_feature", text.features, nodes, forest.feature, parse_feature));
  FORETUNE_TRY_STATUS(
      parse_list("threshold", text.thresholds, nodes, forest.threshold, parse_double));
  FORETUNE_TRY_STATUS(parse_list("left_child", text.left, nodes, forest.left, parse_child));
  FORETUNE_TRY_STATUS(parse_list("right_child", text.right, nodes, forest.right, parse_child));
  FORETUNE_TRY_STATUS(
      parse_list("decision_type", text.decisions, nodes, decisions, parse_decision));
  return add_decisions(decisions, forest);
}

// Objectives whose prediction is the plain sum of the leaves.
Status check_objective(std::string_view objective) {
  const std::vector<std::string_view> words = split_words(objective);
  constexpr std::array<std::string_view, 9> kPlain{"regression", "regression_l1", "huber",
                                                   "fair",       "quantile",      "mape",
                                                   "lambdarank", "rank_xendcg",   "custom"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool known = i > 0 || std::find(kPlain.begin(), kPlain.end(), words[0]) != kPlain.end();
    if (!known || words[i] == "sqrt") {
      return fail(ErrorCode::kUnsupported, "predictions of the objective '",
                  objective.substr(0, 60), "' are not plain sums of leaves");
    }
  }
  return {};
}

struct Header {
  std::string_view classes = "1";
  std::string_view trees_per_iteration = "1";
  std::string_view max_feature;
  std::string_view objective;
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
    } else if (key == "average_output") {
      average = true;
    }
  }
};

Status check_header(const Header& header, Forest& forest) {
  if (header.classes != "1" || header.trees_per_iteration != "1") {
    return fail(ErrorCode::kUnsupported, "models with several outputs are not supported");
  }
  if (header.average) {
    return fail(ErrorCode::kUnsupported, "random forests (average_output) are not supported");
  }
  const auto last = parse_uint(header.max_feature);
  if (!last || *last >= UINT32_MAX) {
    return fail(ErrorCode::kCorrupt, "max_feature_idx is '", header.max_feature.substr(0, 40), "'");
  }
  forest.feature_count = static_cast<std::uint32_t>(*last) + 1;
  return check_objective(header.objective);
}

}  // namespace

Result<Forest> parse_lightgbm_text(std::string_view text) {
  Lines lines(text);
  std::string_view line;
  if (!lines.next(line) || line != "tree") {
    return fail(ErrorCode::kCorrupt, "a LightGBM model begins with the line 'tree'");
  }
  Forest forest;
  Header header;
  TreeText tree;
  bool in_tree = false;
  bool ended = false;
  // A block ends where the next begins.
  const auto end_block = [&]() -> Status {
    if (!in_tree) {
      const Status status = check_header(header, forest);
      return status ? status : fail_because(status.error(), "LightGBM model");
    }
    const std::size_t index = forest.trees.size();
    const Status status = add_tree(tree, forest);
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
  FORETUNE_TRY_STATUS(forest.validate());
  return forest;
}

}  // namespace foretune
