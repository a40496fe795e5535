#include "foretune/export_cpp/export_cpp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/export_cpp/internal/runtime_text.h"
#include "foretune/space/parametric_space.h"
#include "foretune/version.h"

namespace foretune {
namespace {

// The reserved words of C++17.
constexpr std::string_view kKeywords =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t class compl const const_cast constexpr continue decltype default delete do "
    "double dynamic_cast else enum explicit export extern false float for friend goto if "
    "inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq "
    "private protected public register reinterpret_cast return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try "
    "typedef typeid typename union unsigned using virtual void volatile wchar_t while xor "
    "xor_eq ";

bool is_identifier(std::string_view name) {
  if (kKeywords.find(concat(" ", name, " ")) != std::string_view::npos) {
    return false;
  }
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

// Keeps text of the model on one line, so that it cannot end a comment.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c >= ' ' && c != '\\' ? c : ' ';
  }
  return out;
}

class HeaderWriter {
 public:
  HeaderWriter(const Model& model, const CppExportOptions& options, const CompiledSpace& space)
      : model_(model),
        fast_(*model.distilled),
        options_(options),
        space_(space),
        problem_(*find_problem_schema(model.problem_type)) {
    for (std::uint32_t i = 0; i < fast_.portfolio.size(); ++i) {
      if (space_.is_legal_config(words(i), model.fingerprint.hardware)) {
        usable_.push_back(i);
      }
    }
  }

  Result<std::string> write() {
    if (usable_.empty()) {
      return fail(ErrorCode::kMismatch, "no config of the portfolio is legal for its hardware");
    }
    comment();
    out_ += concat("#pragma once\n\n#include <array>\n#include <cstddef>\n#include <cstdint>\n\n",
                   "namespace ", options_.name_space, " {\n\n");
    types();
    configs();
    out_ += export_cpp_internal::kArithmetic;
    FORETUNE_TRY_STATUS(rules());
    inputs();
    network();
    bounds();
    trust();
    select();
    out_ += concat("\n}  // namespace ", options_.name_space, "\n");
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::span<const std::int32_t> words(std::uint32_t place) const {
    return model_.pool[fast_.portfolio[place]].words.view();
  }

  void comment() {
    const auto percent = [](double log_ratio) { return concat(fixed(100 * log_ratio, 2), " %"); };
    out_ += concat(
        "// Picks a config of family ", one_line(model_.family), " for a problem. Written by ",
        "foretune ", kVersion, " from a model;\n// not to be edited.\n//\n",
        "//   device            ", one_line(model_.fingerprint.device), "\n",
        "//   training data     ", model_.data_fingerprint.hex(), "\n", "//   portfolio         ",
        usable_.size(), " of the model's ", model_.pool.size(), " configs\n",
        "//   loss              against the model's own pick, predicted time, on problems drawn\n",
        "//                     between those of training: mean ", percent(fast_.mean_regret),
        ", P90 ", percent(fast_.p90_regret), "\n//\n",
        "// The loss is measured with the model as judge, not with a clock, and says nothing of\n",
        "// other devices or of problems unlike those of training. For these `trusted` is false: "
        "a\n",
        "// pick is still made, of configs that are good in many places, and is legal.\n",
        "// Thread safety: all functions are pure. Cost: about a microsecond; also at compile "
        "time.\n");
  }

  void labels_comment(std::string_view name, std::span<const std::string> labels) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      out_ += concat(i == 0 ? concat("  // ", name, ": ") : std::string(", "), i, " ",
                     one_line(labels[i]));
    }
    out_ += labels.empty() ? "" : "\n";
  }

  void types() {
    out_ += "struct Problem {\n";
    for (const ProblemField& field : problem_.fields) {
      labels_comment(field.name,
                     std::vector<std::string>(field.labels.begin(), field.labels.end()));
      out_ += concat("  std::int64_t ", field.name, " = ",
                     field.default_value.value_or(std::max<std::int64_t>(field.minimum, 0)), ";\n");
    }
    out_ += "};\n\nstruct Config {\n";
    for (const Parameter& parameter : model_.config_schema.parameters) {
      labels_comment(parameter.name, parameter.labels);
      out_ += concat("  std::int32_t ", parameter.name, " = 0;\n");
    }
    out_ += concat(
        "};\n\nstruct Pick {\n  int index = -1;  // into kConfigs; -1 when none of them is legal\n",
        "  // True when the problem lies within the sizes and labels of training and in a region "
        "where\n  // the pick loses at most ",
        fixed(100 * options_.max_regret, 1), " % in 95 of 100 cases.\n  bool trusted = false;\n",
        "  double bound = 0;  // that region's 95th percentile of the loss, ln time\n};\n\n");
  }

  void configs() {
    out_ += concat("inline constexpr std::size_t kConfigCount = ", usable_.size(),
                   ";\ninline constexpr std::array<Config, kConfigCount> kConfigs{{\n");
    for (const std::uint32_t place : usable_) {
      out_ += concat("    {", numbers(words(place)), "},\n");
    }
    out_ += "}};\n\n";
  }

  template <class Numbers>
  static std::string numbers(const Numbers& values) {
    std::string out;
    for (const auto value : values) {
      // The smallest has no literal of its own.
      const std::string text = value == std::numeric_limits<std::int32_t>::min()
                                   ? std::string("-2147483647 - 1")
                                   : concat(value);
      out += concat(out.empty() ? "" : ", ", text);
    }
    return out;
  }

  template <class Numbers>
  void table(std::string_view type, std::string_view name, const Numbers& values) {
    out_ += concat("inline constexpr std::array<", type, ", ", values.size(), "> ", name, "{{");
    std::string line;
    for (std::size_t i = 0; i < values.size(); ++i) {
      line +=
          concat(i == 0 ? "" : ",", i % 20 == 0 ? "\n    " : " ", numbers(std::array{values[i]}));
    }
    out_ += concat(line, "}};\n");
  }

  // Writes only the rules that depend on the problem: all configs here obey the others.
  Status rules() {
    std::string body;
    for (const Constraint& constraint : space_.definition().constraints) {
      FORETUNE_TRY(const Expression expression,
                   Expression::parse(constraint.expression, model_.config_schema, problem_));
      if (!expression.uses_problem()) {
        continue;
      }
      FORETUNE_TRY(const std::string text,
                   cpp_expression(constraint.expression, model_.config_schema, problem_,
                                  model_.fingerprint.hardware));
      body += concat("  // ", one_line(constraint.expression), "\n  if (", text,
                     " == 0) {\n    return false;  // ", one_line(constraint.reason), "\n  }\n");
    }
    out_ += concat(
        "\nnamespace detail {\n\nconstexpr bool is_legal(const Config& c, const Problem& p) {\n",
        "  static_cast<void>(c);\n  static_cast<void>(p);\n", body,
        "  return true;\n}\n\n}  // namespace detail\n\n",
        "// Returns true when the config may run on the problem.\n",
        "constexpr bool is_legal(std::size_t index, const Problem& problem) {\n",
        "  return detail::is_legal(kConfigs[index], problem);\n}\n\n");
    return {};
  }

  [[nodiscard]] std::string value_of(const DistilledFeature& feature) const {
    const auto field = [&](std::uint8_t index) {
      return concat("p.", problem_.fields[index].name);
    };
    const auto tiles = [&] {
      return concat("tiles(size(", field(feature.field), "), ", feature.block, ", size(",
                    field(feature.other), "), ", feature.other_block, ", size(",
                    field(feature.repeat), "))");
    };
    switch (feature.kind) {
      case DistilledFeatureKind::kLog2:
        return concat("log2(size(", field(feature.field), "))");
      case DistilledFeatureKind::kUse:
        return concat("use(size(", field(feature.field), "), ", feature.block, ")");
      case DistilledFeatureKind::kLabel:
        return concat("(", field(feature.field), " == ", feature.block, " ? 4096 : 0)");
      case DistilledFeatureKind::kWaveUse:
        return concat("use(", tiles(), ", ", feature.places, ")");
      case DistilledFeatureKind::kWaves:
        return concat("log2(blocks(", tiles(), ", ", feature.places, "))");
    }
    return "0";
  }

  void inputs() {
    out_ += concat("namespace detail {\n\nconstexpr std::array<std::int16_t, ",
                   fast_.features.size(), "> inputs(const Problem& p) {\n  return {{\n");
    for (const DistilledFeature& feature : fast_.features) {
      out_ += concat("      input(", value_of(feature), ", ", feature.mean, ", ", feature.scale,
                     "),\n");
    }
    out_ += "  }};\n}\n\n";
  }

  void network() {
    std::string body = "  const auto values0 = x;\n";
    for (std::size_t l = 0; l < fast_.layers.size(); ++l) {
      const DistilledLayer& layer = fast_.layers[l];
      const bool is_last = l + 1 == fast_.layers.size();
      std::vector<std::int16_t> weights;
      std::vector<std::int32_t> bias;
      for (std::uint32_t i = 0; i < (is_last ? usable_.size() : layer.outputs); ++i) {
        const std::uint32_t row = is_last ? usable_[i] : i;
        const auto first = layer.weights.begin() + std::ptrdiff_t{row} * layer.inputs;
        weights.insert(weights.end(), first, first + layer.inputs);
        bias.push_back(layer.bias[row]);
      }
      table("std::int16_t", concat("kWeights", l), weights);
      table("std::int32_t", concat("kBias", l), bias);
      const std::string call = concat("layer<", layer.inputs, ", ", bias.size(), ">(values", l,
                                      ", kWeights", l, ", kBias", l, ")");
      body += is_last ? concat("  return ", call, ";\n")
                      : concat("  const auto values", l + 1, " = hidden(", call, ", ", layer.shift,
                               ");\n");
    }
    out_ += concat("\n// One score per config, lower is better.\n",
                   "constexpr std::array<std::int32_t, kConfigCount> scores(\n",
                   "    const std::array<std::int16_t, ", fast_.features.size(), ">& x) {\n", body,
                   "}\n\n");
  }

  void region(std::size_t at, const std::string& indent) {
    const DistilledRegion& here = fast_.regions[at];
    if (here.feature == DistilledRegion::kLeaf) {
      std::string number = concat(static_cast<double>(here.bound));
      number += number.find_first_of(".e") == std::string::npos ? ".0" : "";
      out_ += concat(indent, "return ", number, ";\n");
      return;
    }
    out_ += concat(indent, "if (x[", here.feature, "] <= ", here.threshold, ") {\n");
    region(here.left, concat(indent, "  "));
    out_ += concat(indent, "}\n");
    region(here.left + 1, indent);
  }

  void bounds() {
    out_ += concat("constexpr double bound(const std::array<std::int16_t, ", fast_.features.size(),
                   ">& x) {\n  static_cast<void>(x);\n");
    region(0, "  ");
    out_ += "}\n\n";
  }

  // Writes a check against the range of sizes and the labels of the training problems: coarser than
  // the library's applicability domain, but without logarithms.
  void trust() {
    std::string body;
    if (model_.domain) {
      const ApplicabilityDomain& domain = *model_.domain;
      for (const ApplicabilityDomain::Label& label : domain.labels) {
        const auto name = problem_.fields[label.field].name;
        body += concat("  if (p.", name, " < 0 || p.", name, " > 63 || ((UINT64_C(", label.seen,
                       ") >> p.", name, ") & 1) == 0) {\n    return false;\n  }\n");
      }
      for (std::size_t i = 0; i < domain.sizes.size(); ++i) {
        const auto name = problem_.fields[domain.sizes[i].field].name;
        float low = std::numeric_limits<float>::infinity();
        float high = -low;
        for (std::size_t at = i; at < domain.points.size(); at += domain.sizes.size()) {
          low = std::min(low, domain.points[at]);
          high = std::max(high, domain.points[at]);
        }
        const auto size_at = [&](float point) {
          return std::llround(std::exp2(static_cast<double>(point / domain.sizes[i].per_log2)));
        };
        body += concat("  if (p.", name, " < ", size_at(low), " || p.", name, " > ", size_at(high),
                       ") {\n    return false;\n  }\n");
      }
    } else {
      body = "  return false;  // the model does not say where it was trained\n";
    }
    out_ += concat("constexpr bool is_inside_training(const Problem& p) {\n",
                   "  static_cast<void>(p);\n", body, model_.domain ? "  return true;\n" : "",
                   "}\n\n}  // namespace detail\n\n");
  }

  void select() {
    out_ += concat(
        "// The legal config with the best score.\n",
        "constexpr Pick select(const Problem& problem) {\n",
        "  const auto x = detail::inputs(problem);\n  const auto scores = detail::scores(x);\n",
        "  Pick pick;\n  pick.bound = detail::bound(x);\n",
        "  for (std::size_t i = 0; i < kConfigCount; ++i) {\n", "    const bool better =\n",
        "        pick.index < 0 || scores[i] < scores[static_cast<std::size_t>(pick.index)];\n",
        "    if (better && is_legal(i, problem)) {\n      pick.index = static_cast<int>(i);\n",
        "    }\n  }\n  pick.trusted = pick.index >= 0 && pick.bound <= ", options_.max_regret,
        " && detail::is_inside_training(problem);\n  return pick;\n}\n");
  }

  const Model& model_;
  const DistilledModel& fast_;
  const CppExportOptions& options_;
  const CompiledSpace& space_;
  const ProblemSchema& problem_;
  std::vector<std::uint32_t> usable_;  // places in the portfolio
  std::string out_;
};

}  // namespace

Result<std::string> cpp_header(const Model& model, const CppExportOptions& options) {
  FORETUNE_TRY_STATUS(check_model(model));
  if (!model.distilled) {
    return fail(ErrorCode::kNotFound, "the model has no fast mode to export: train with --fast");
  }
  if (!is_identifier(options.name_space) ||
      !(options.max_regret >= 0 && options.max_regret < 100)) {
    return fail(ErrorCode::kInvalidArgument, foretune::quoted(options.name_space),
                " is no C++ namespace, or the regret is not from 0 to 100");
  }
  for (const Parameter& parameter : model.config_schema.parameters) {
    if (!is_identifier(parameter.name)) {
      return fail(ErrorCode::kInvalidArgument, "C++ cannot have a member called ",
                  foretune::quoted(parameter.name));
    }
  }
  FORETUNE_TRY(SpaceDefinition definition, SpaceDefinition::parse(model.space_text));
  FORETUNE_TRY(const auto space, CompiledSpace::create(std::move(definition)));
  return HeaderWriter(model, options, *space).write();
}

}  // namespace foretune
