// The text form of a space, as data sets and model files carry it:
//
//   space cpu-gemm 1 gemm
//   parameter mr [] 1 2 4 8
//   parameter order [nkm mkn] 0 1
//   constraint mr * vectors <= 24 # the register block needs more registers than there are
//   canonical mc min(mc, round_up(m, mr))
//
// Expressions and reasons keep every byte, blanks included: one blank after the keyword, one on
// either side of the first #.
#include <algorithm>
#include <cstddef>

#include "foretune/base/text.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 20U;
// One statement for each parameter, as many constraints and as many rules.
constexpr std::size_t kMaxStatements = 3 * CompiledSpace::kMaxParameters + 1;
constexpr std::size_t kMaxWord = 200;

// Returns true when the text has only characters that a word may have, so that a name never looks
// like its surroundings.
bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= kMaxWord &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) > 0x20 && c != 0x7f && c != '[' && c != ']' &&
                  c != '=' && c != '#';
         });
}

Status parse_head(std::string_view rest, SpaceDefinition& out) {
  const std::vector<std::string_view> words = split_words(rest);
  const auto version = words.size() == 3 ? parse_uint(words[1]) : std::nullopt;
  if (!version || *version > 0xffffffffU || !is_word(words[0])) {
    return fail(ErrorCode::kCorrupt, "a space begins with its name, version and problem type");
  }
  const ProblemSchema* problem = find_problem_schema(words[2]);
  if (problem == nullptr) {
    return fail(ErrorCode::kUnsupported, "the space is for ", quoted(words[2], 40),
                " problems, which this version does not know");
  }
  out.schema.name = words[0];
  out.schema.version = static_cast<std::uint32_t>(*version);
  out.problem_type = problem->type;
  return {};
}

Status parse_parameter(std::string_view rest, SpaceDefinition& out) {
  if (out.schema.parameters.size() >= CompiledSpace::kMaxParameters) {
    return fail(ErrorCode::kCorrupt, "a space has at most ", CompiledSpace::kMaxParameters,
                " parameters");
  }
  const std::size_t open = rest.find('[');
  const std::size_t close = rest.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return fail(ErrorCode::kCorrupt, "a parameter has a name, [labels] and values");
  }
  Parameter parameter{.name = std::string(trim(rest.substr(0, open))), .labels = {}};
  for (const std::string_view label : split_words(rest.substr(open + 1, close - open - 1))) {
    if (!is_word(label)) {
      return fail(ErrorCode::kCorrupt, quoted(label, 40), " is not a label");
    }
    parameter.labels.emplace_back(label);
  }
  if (!is_word(parameter.name) || out.schema.find(parameter.name)) {
    return fail(ErrorCode::kCorrupt, quoted(parameter.name, 40), " is not a new parameter name");
  }
  std::vector<std::int32_t> domain;
  for (const std::string_view word : split_words(rest.substr(close + 1))) {
    const auto value = parse_int(word);
    if (!value || *value < INT32_MIN || *value > INT32_MAX) {
      return fail(ErrorCode::kCorrupt, quoted(word, 40), " is not a parameter value");
    }
    domain.push_back(static_cast<std::int32_t>(*value));
  }
  out.schema.parameters.push_back(std::move(parameter));
  out.domains.push_back(std::move(domain));
  return {};
}

Status parse_constraint(std::string_view rest, SpaceDefinition& out) {
  constexpr std::string_view kMark = " # ";
  const std::size_t mark = rest.find(kMark);
  if (mark == std::string_view::npos) {
    return fail(ErrorCode::kCorrupt, "a constraint has an expression and, after ' # ', a reason");
  }
  out.constraints.push_back({.expression = std::string(rest.substr(0, mark)),
                             .reason = std::string(rest.substr(mark + kMark.size()))});
  return {};
}

Status parse_canonical(std::string_view rest, SpaceDefinition& out) {
  const std::size_t end = rest.find(' ');
  if (end == std::string_view::npos) {
    return fail(ErrorCode::kCorrupt, "a canonical rule has a parameter and an expression");
  }
  out.canonical.emplace_back(rest.substr(0, end), rest.substr(end + 1));
  return {};
}

Status parse_statement(std::string_view line, SpaceDefinition& out) {
  const std::size_t blank = line.find(' ');
  const std::string_view keyword = line.substr(0, blank);
  const std::string_view rest =
      blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1);
  if (keyword == "space") {
    return parse_head(rest, out);
  }
  if (keyword == "parameter") {
    return parse_parameter(rest, out);
  }
  if (keyword == "constraint") {
    return parse_constraint(rest, out);
  }
  if (keyword == "canonical") {
    return parse_canonical(rest, out);
  }
  return fail(ErrorCode::kCorrupt, quoted(keyword, 40), " is not a statement of a space");
}

// Checks that all parameters have values, or none has: the space is then known only by its
// constraints.
Status check_domains(SpaceDefinition& out) {
  const auto empty = std::count_if(out.domains.begin(), out.domains.end(),
                                   [](const auto& domain) { return domain.empty(); });
  if (static_cast<std::size_t>(empty) == out.domains.size()) {
    out.domains.clear();
  } else if (empty != 0) {
    return fail(ErrorCode::kCorrupt, "some parameters of the space have values and some have none");
  }
  return {};
}

}  // namespace

std::string SpaceDefinition::text() const {
  const ProblemSchema* problem = find_problem_schema(problem_type);
  std::string out = concat("space ", schema.name, " ", schema.version, " ",
                           problem == nullptr ? "unknown" : problem->name, "\n");
  for (std::size_t i = 0; i < schema.parameters.size(); ++i) {
    out += concat("parameter ", schema.parameters[i].name, " [",
                  join(schema.parameters[i].labels, " "), "]");
    if (i < domains.size()) {
      for (const std::int32_t value : domains[i]) {
        out += concat(" ", value);
      }
    }
    out += '\n';
  }
  for (const Constraint& constraint : constraints) {
    out += concat("constraint ", constraint.expression, " # ", constraint.reason, "\n");
  }
  for (const auto& [parameter, expression] : canonical) {
    out += concat("canonical ", parameter, " ", expression, "\n");
  }
  return out;
}

Result<SpaceDefinition> SpaceDefinition::parse(std::string_view text) {
  if (text.size() > kMaxText) {
    return fail(ErrorCode::kCorrupt, "a space of ", text.size(), " bytes is over the limit of ",
                kMaxText);
  }
  SpaceDefinition out;
  std::size_t statements = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) {
      continue;
    }
    ++statements;
    const bool is_first = line.rfind("space ", 0) == 0;
    if (is_first != (statements == 1) || statements > kMaxStatements) {
      return fail(ErrorCode::kCorrupt, "a space begins with one 'space' line and has at most ",
                  kMaxStatements, " statements");
    }
    if (Status parsed = parse_statement(line, out); !parsed) {
      return fail_because(parsed.error(), "statement ", statements, " of the space");
    }
  }
  if (statements == 0) {
    return fail(ErrorCode::kCorrupt, "an empty text is not a space");
  }
  FORETUNE_TRY_STATUS(check_domains(out));
  return out;
}

}  // namespace foretune
