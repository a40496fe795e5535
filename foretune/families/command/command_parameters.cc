#include "foretune/families/command/command_parameters.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/space/expression.h"

namespace foretune::command_internal {
namespace {

using Kind = TomlValue::Kind;

constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMaxValues = 65536;
constexpr std::size_t kMaxNames = 1000;
constexpr std::size_t kLongestLabel = 100;

// Names that mean something in commands or in expressions.
constexpr std::array<std::string_view, 8> kTaken = {"source", "threads", "jobs", "build",
                                                    "folder", "output",  "hw",   "problem"};

Status check_name(const TomlSection& section, const std::string& name, const CommandSpec& spec) {
  if (!is_name(name)) {
    return section.refuse(name,
                          "is no name: letters a-z, digits and _, a letter first, at most 40");
  }
  if (std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end()) {
    return section.refuse(name, "has a name that means something else in commands or rules");
  }
  const bool is_known = std::any_of(spec.fields.begin(), spec.fields.end(),
                                    [&](const CommandField& field) { return field.name == name; });
  return is_known ? Status(section.refuse(name, "is the name of a field, too")) : Status();
}

// A label that configs and expressions can name: "-O2" is O2, "-march=native" march_native.
std::string label_of(std::string_view text) {
  text = trim(text);
  while (!text.empty() && text.front() == '-') {
    text.remove_prefix(1);
  }
  std::string out;
  for (const char c : text.substr(0, kLongestLabel)) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '.';
    out += is_plain ? c : '_';
  }
  return out.empty() ? "none" : out;
}

bool is_label(std::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c > 0x20 && c < 0x7f && c != '[' && c != ']' && c != '=' && c != '#';
         });
}

Status check_labels(const TomlSection& section, const std::vector<std::string>& labels) {
  std::set<std::string_view> seen;
  for (const std::string& label : labels) {
    if (!is_label(label)) {
      return section.refuse("labels", "holds ", quoted(label, 40),
                            ", which is no word without blanks, [, ], = and #");
    }
    if (!seen.insert(label).second) {
      return section.refuse(section.has("labels") ? "labels" : "values", "has ", quoted(label, 40),
                            " twice as a label; labels = [...] gives others");
    }
  }
  return {};
}

std::optional<std::int64_t> position_of(const std::vector<std::string>& texts,
                                        std::string_view text) {
  const auto found = std::find(texts.begin(), texts.end(), text);
  return found == texts.end() ? std::nullopt : std::optional(found - texts.begin());
}

Result<std::pair<std::int64_t, std::int64_t>> read_drawn(const TomlSection& section,
                                                         const CommandField& field) {
  const TomlValue& value = *section.find("draw");
  const bool is_pair = value.kind == Kind::kList && value.items.size() == 2 &&
                       value.items[0].kind == Kind::kInteger &&
                       value.items[1].kind == Kind::kInteger;
  if (!is_pair) {
    return section.refuse("draw", "must be a list of two integers, the least and the most");
  }
  const std::pair<std::int64_t, std::int64_t> out(value.items[0].integer, value.items[1].integer);
  if (out.first < std::max<std::int64_t>(1, field.minimum) || out.first > out.second ||
      out.second > field.maximum) {
    return section.refuse("draw", "is from ", out.first, " to ", out.second,
                          "; it must be a range of numbers from 1 within min and max");
  }
  return out;
}

Result<CommandField> read_label_field(const TomlSection& section, CommandField field) {
  FORETUNE_TRY_STATUS(section.check_keys({"labels", "default", "help"}));
  FORETUNE_TRY(field.labels, section.texts("labels"));
  FORETUNE_TRY_STATUS(check_labels(section, field.labels));
  field.maximum = static_cast<std::int64_t>(field.labels.size()) - 1;
  FORETUNE_TRY(const std::optional<std::string> chosen, section.text("default"));
  if (chosen) {
    field.default_value = position_of(field.labels, *chosen);
    if (!field.default_value) {
      return section.refuse("default", "is ", quoted(*chosen, 40), ", which is none of ",
                            join(field.labels, ", "));
    }
  }
  return field;
}

Result<CommandField> read_field(const TomlSection& section, const std::string& name) {
  CommandField field;
  field.name = name;
  FORETUNE_TRY(const std::optional<std::string> help, section.text("help"));
  field.help = help.value_or(name);
  if (section.has("labels")) {
    return read_label_field(section, std::move(field));
  }
  FORETUNE_TRY_STATUS(section.check_keys({"min", "max", "default", "draw", "labels", "help"}));
  FORETUNE_TRY(const auto low, section.integer("min", kSmallest, kLargest));
  field.minimum = low.value_or(1);
  FORETUNE_TRY(const auto high, section.integer("max", field.minimum, kLargest));
  field.maximum = high.value_or(kLargest);
  if (field.minimum > field.maximum) {
    return section.refuse("min", "is ", field.minimum, ", which is more than max");
  }
  FORETUNE_TRY(field.default_value, section.integer("default", field.minimum, field.maximum));
  if (section.has("draw")) {
    FORETUNE_TRY(field.drawn, read_drawn(section, field));
  }
  return field;
}

// "n=100 kind=fast" as the text of a problem would have it.
Status check_listed(const TomlSection& root, const CommandSpec& spec, std::string_view text) {
  std::set<std::string_view> given;
  for (const std::string_view word : split_words(text)) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals);
    const auto field = std::find_if(spec.fields.begin(), spec.fields.end(),
                                    [&](const CommandField& known) { return known.name == name; });
    if (equals == word.size() || field == spec.fields.end() || !given.insert(name).second) {
      return root.refuse("problems", "has ", quoted(word, 40),
                         ", which is no field=value, or a field that is not there or named twice");
    }
    const std::string_view value = word.substr(equals + 1);
    const std::optional<std::int64_t> number =
        field->labels.empty() ? parse_int(value) : position_of(field->labels, value);
    if (!number || *number < field->minimum || *number > field->maximum) {
      return root.refuse("problems", "has ", quoted(word, 40), ", which is no value of the field");
    }
  }
  for (const CommandField& field : spec.fields) {
    if (!field.default_value && !given.contains(field.name)) {
      return root.refuse("problems", "has ", quoted(text, 60), ", which leaves out ", field.name);
    }
  }
  return {};
}

Status read_listed(const TomlSection& root, CommandSpec& spec) {
  FORETUNE_TRY(spec.problems, root.texts("problems"));
  if (!spec.problems.empty() && spec.draws()) {
    return root.refuse("problems", "are listed, but fields are drawn; there can be one of the two");
  }
  for (const std::string& text : spec.problems) {
    FORETUNE_TRY_STATUS(check_listed(root, spec, text));
  }
  const bool has_one = std::all_of(spec.fields.begin(), spec.fields.end(), [](const auto& field) {
    return field.default_value.has_value();
  });
  if (spec.problems.empty() && !spec.draws() && has_one) {
    spec.problems.emplace_back();  // the one with all defaults
  }
  return {};
}

Result<std::vector<std::int32_t>> range_of(const TomlSection& section) {
  FORETUNE_TRY(const auto low, section.integer("min", kSmallest, kLargest));
  FORETUNE_TRY(const auto high, section.integer("max", kSmallest, kLargest));
  FORETUNE_TRY(const auto step, section.integer("step", 1, kLargest));
  if (!low || !high || *low > *high) {
    return section.refuse("", "needs values = [...], or min and max with min <= max");
  }
  const std::int64_t stride = step.value_or(1);
  if ((*high - *low) / stride >= kMaxValues) {
    return section.refuse("", "has more than ", kMaxValues, " values");
  }
  std::vector<std::int32_t> out;
  for (std::int64_t value = *low; value <= *high; value += stride) {
    out.push_back(static_cast<std::int32_t>(value));
  }
  return out;
}

Status take_integers(const TomlSection& section, const TomlValue& list, CommandParameter& out) {
  for (const TomlValue& item : list.items) {
    if (item.kind != Kind::kInteger || item.integer < kSmallest || item.integer > kLargest) {
      return section.refuse("values", "must be integers of 32 bits or texts, all of one kind");
    }
    out.domain.push_back(static_cast<std::int32_t>(item.integer));
  }
  out.default_word = out.domain.front();
  std::sort(out.domain.begin(), out.domain.end());
  if (std::adjacent_find(out.domain.begin(), out.domain.end()) != out.domain.end()) {
    return section.refuse("values", "has a number twice");
  }
  return {};
}

Status take_texts(const TomlSection& section, CommandParameter& out) {
  FORETUNE_TRY(out.texts, section.texts("values"));
  FORETUNE_TRY(out.labels, section.texts("labels"));
  FORETUNE_TRY(out.splits, section.flag("split"));
  if (out.labels.empty()) {
    for (const std::string& text : out.texts) {
      out.labels.push_back(label_of(text));
    }
  }
  if (out.labels.size() != out.texts.size()) {
    return section.refuse("labels", "has ", out.labels.size(), " labels for ", out.texts.size(),
                          " values");
  }
  FORETUNE_TRY_STATUS(check_labels(section, out.labels));
  for (std::size_t i = 0; i < out.labels.size(); ++i) {
    out.domain.push_back(static_cast<std::int32_t>(i));
  }
  return {};
}

Status take_default(const TomlSection& section, CommandParameter& out) {
  if (out.labels.empty()) {
    FORETUNE_TRY(const auto chosen, section.integer("default", kSmallest, kLargest));
    if (chosen && !std::binary_search(out.domain.begin(), out.domain.end(), *chosen)) {
      return section.refuse("default", "is ", *chosen, ", which is none of its values");
    }
    out.default_word = static_cast<std::int32_t>(chosen.value_or(out.default_word));
    return {};
  }
  FORETUNE_TRY(const std::optional<std::string> chosen, section.text("default"));
  if (!chosen) {
    return {};
  }
  std::optional<std::int64_t> position = position_of(out.texts, *chosen);
  position = position ? position : position_of(out.labels, *chosen);
  if (!position) {
    return section.refuse("default", "is ", quoted(*chosen, 40), ", which is none of its values");
  }
  out.default_word = static_cast<std::int32_t>(*position);
  return {};
}

Result<CommandParameter> read_parameter(const TomlSection& section, const std::string& name) {
  CommandParameter out;
  out.name = name;
  const TomlValue* values = section.find("values");
  if (values == nullptr) {
    FORETUNE_TRY_STATUS(section.check_keys({"min", "max", "step", "values", "default"}));
    FORETUNE_TRY(out.domain, range_of(section));
    out.default_word = out.domain.front();
    FORETUNE_TRY_STATUS(take_default(section, out));
    return out;
  }
  if (values->kind != Kind::kList || values->items.empty()) {
    return section.refuse("values", "must be a list of integers or texts with one or more of them");
  }
  if (values->items.size() > static_cast<std::size_t>(kMaxValues)) {
    return section.refuse("values", "has more than ", kMaxValues, " values");
  }
  if (values->items.front().kind == Kind::kText) {
    FORETUNE_TRY_STATUS(section.check_keys({"values", "labels", "default", "split"}));
    FORETUNE_TRY_STATUS(take_texts(section, out));
  } else {
    FORETUNE_TRY_STATUS(section.check_keys({"values", "default"}));
    FORETUNE_TRY_STATUS(take_integers(section, *values, out));
  }
  FORETUNE_TRY_STATUS(take_default(section, out));
  return out;
}

// `name = [...]` is short for `name = {values = [...]}`.
Result<CommandParameter> read_short_parameter(const TomlSection& section, const std::string& name) {
  const TomlValue& list = *section.find(name);
  if (list.kind != Kind::kList) {
    return section.refuse(name, "is ", kind_name(list.kind),
                          "; it must be a list of values or a table");
  }
  TomlValue table;
  table.line = list.line;
  table.members.push_back({"values", list});
  return read_parameter(TomlSection(table, section.file(), section.path_of(name)), name);
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 40 && text.front() >= 'a' && text.front() <= 'z' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

Status read_problem(const TomlSection& root, CommandSpec& spec) {
  FORETUNE_TRY(const std::optional<TomlSection> fields, root.section("problem"));
  if (fields) {
    if (fields->table().members.size() > kMaxNames) {
      return fields->refuse("", "has more than ", kMaxNames, " fields");
    }
    for (const auto& [name, value] : fields->table().members) {
      FORETUNE_TRY_STATUS(check_name(*fields, name, spec));
      FORETUNE_TRY(const std::optional<TomlSection> section, fields->section(name));
      FORETUNE_TRY(CommandField field, read_field(*section, name));
      spec.fields.push_back(std::move(field));
    }
  }
  return read_listed(root, spec);
}

Status read_parameters(const TomlSection& root, CommandSpec& spec) {
  FORETUNE_TRY(const std::optional<TomlSection> all, root.section("parameters"));
  if (!all || all->table().members.empty()) {
    return root.refuse("parameters",
                       "is missing; a family without parameters has nothing to choose");
  }
  if (all->table().members.size() > kMaxNames) {
    return all->refuse("", "has more than ", kMaxNames, " parameters");
  }
  for (const auto& [name, value] : all->table().members) {
    FORETUNE_TRY_STATUS(check_name(*all, name, spec));
    if (value.kind != Kind::kTable) {
      FORETUNE_TRY(CommandParameter parameter, read_short_parameter(*all, name));
      spec.parameters.push_back(std::move(parameter));
      continue;
    }
    FORETUNE_TRY(const std::optional<TomlSection> section, all->section(name));
    FORETUNE_TRY(CommandParameter parameter, read_parameter(*section, name));
    spec.parameters.push_back(std::move(parameter));
  }
  return {};
}

Status read_rules(const TomlSection& root, CommandSpec& spec) {
  // Expressions name fields and parameters, which are known by now; a copy for its schema.
  const CommandProblem problem(std::make_shared<const CommandSpec>(spec));
  const ConfigSchema schema = space_definition(spec).schema;
  const auto check = [&](const TomlSection& rule, const std::string& text) -> Status {
    const auto parsed = Expression::parse(text, schema, problem.info().schema);
    if (!parsed) {
      return rule.refuse("expression", "makes no sense: ", parsed.error().message);
    }
    return {};
  };
  FORETUNE_TRY(const std::vector<TomlSection> constraints, root.sections("constraints"));
  for (const TomlSection& rule : constraints) {
    FORETUNE_TRY_STATUS(rule.check_keys({"expression", "reason"}));
    Constraint constraint;
    FORETUNE_TRY(constraint.expression, rule.needed_text("expression"));
    FORETUNE_TRY(constraint.reason, rule.needed_text("reason"));
    FORETUNE_TRY_STATUS(check(rule, constraint.expression));
    const bool is_line =
        std::all_of(constraint.reason.begin(), constraint.reason.end(),
                    [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
    if (constraint.reason.empty() || !is_line) {
      return rule.refuse("reason", "must be one line of text");
    }
    spec.constraints.push_back(std::move(constraint));
  }
  FORETUNE_TRY(const std::vector<TomlSection> canonical, root.sections("canonical"));
  for (const TomlSection& rule : canonical) {
    FORETUNE_TRY_STATUS(rule.check_keys({"parameter", "expression"}));
    FORETUNE_TRY(std::string parameter, rule.needed_text("parameter"));
    FORETUNE_TRY(std::string expression, rule.needed_text("expression"));
    if (!schema.find(parameter)) {
      return rule.refuse("parameter", "is ", quoted(parameter, 40), ", which is no parameter");
    }
    FORETUNE_TRY_STATUS(check(rule, expression));
    spec.canonical.emplace_back(std::move(parameter), std::move(expression));
  }
  return {};
}

}  // namespace foretune::command_internal
