// The text form of a space, as data sets and model files carry it:
//
//   space cpu-gemm 1 gemm
//   parameter mr [] 1 2 4 8
//   parameter order [nkm mkn] 0 1
//   constraint mr * vectors <= 24 # the register block needs more registers than there are
//   canonical mc min(mc, round_up(m, mr))
#include "foretune/base/text.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 20U;
constexpr std::size_t kMaxStatements = 4096;

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > 64) {
    return false;
  }
  for (const char c : text) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    if (!allowed) {
      return false;
    }
  }
  return true;
}

// One line of free text: a line break would end the statement.
std::string one_line(std::string_view text) {
  std::string out(trim(text));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20) {
      c = ' ';
    }
  }
  return out;
}

Status parse_head(std::string_view rest, SpaceDefinition& out) {
  const std::vector<std::string_view> words = split_words(rest);
  const auto version = words.size() == 3 ? parse_uint(words[1]) : std::nullopt;
  const ProblemSchema* problem = words.size() == 3 ? find_problem_schema(words[2]) : nullptr;
  if (!version || *version > 0xffffffffU || !is_name(words[0])) {
    return fail(ErrorCode::kCorrupt, "a space begins with its name, version and problem type");
  }
  if (problem == nullptr) {
    return fail(ErrorCode::kUnsupported, "the space is for '", words[2].substr(0, 40),
                "' problems, which this version does not know");
  }
  out.schema.name = words[0];
  out.schema.version = static_cast<std::uint32_t>(*version);
  out.problem_type = problem->type;
  return {};
}

Status parse_parameter(std::string_view rest, SpaceDefinition& out) {
  const std::size_t open = rest.find('[');
  const std::size_t close = rest.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return fail(ErrorCode::kCorrupt, "a parameter has a name, [labels] and values");
  }
  Parameter parameter{.name = std::string(trim(rest.substr(0, open))), .labels = {}};
  for (const std::string_view label : split_words(rest.substr(open + 1, close - open - 1))) {
    if (!is_name(label)) {
      return fail(ErrorCode::kCorrupt, "'", label.substr(0, 40), "' is not a label");
    }
    parameter.labels.emplace_back(label);
  }
  if (!is_name(parameter.name) || out.schema.find(parameter.name)) {
    return fail(ErrorCode::kCorrupt, "'", parameter.name.substr(0, 40),
                "' is not a new parameter name");
  }
  std::vector<std::int32_t> domain;
  for (const std::string_view word : split_words(rest.substr(close + 1))) {
    const auto value = parse_int(word);
    if (!value || *value < INT32_MIN || *value > INT32_MAX) {
      return fail(ErrorCode::kCorrupt, "'", word.substr(0, 40), "' is not a parameter value");
    }
    domain.push_back(static_cast<std::int32_t>(*value));
  }
  out.schema.parameters.push_back(std::move(parameter));
  out.domains.push_back(std::move(domain));
  return {};
}

Status parse_statement(std::string_view line, SpaceDefinition& out) {
  const std::size_t blank = line.find(' ');
  const std::string_view keyword = line.substr(0, blank);
  const std::string_view rest =
      blank == std::string_view::npos ? std::string_view() : trim(line.substr(blank + 1));
  if (keyword == "space") {
    return parse_head(rest, out);
  }
  if (keyword == "parameter") {
    return parse_parameter(rest, out);
  }
  if (keyword == "constraint") {
    const std::size_t hash = rest.find('#');
    const std::string_view reason =
        hash == std::string_view::npos ? std::string_view() : trim(rest.substr(hash + 1));
    out.constraints.push_back({std::string(trim(rest.substr(0, hash))), std::string(reason)});
    return {};
  }
  if (keyword == "canonical") {
    const std::size_t end = rest.find(' ');
    if (end == std::string_view::npos) {
      return fail(ErrorCode::kCorrupt, "a canonical rule has a parameter and an expression");
    }
    out.canonical.emplace_back(rest.substr(0, end), trim(rest.substr(end + 1)));
    return {};
  }
  return fail(ErrorCode::kCorrupt, "'", keyword.substr(0, 40), "' is not a statement of a space");
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
    out += concat("constraint ", one_line(constraint.expression), " # ",
                  one_line(constraint.reason), "\n");
  }
  for (const auto& [parameter, expression] : canonical) {
    out += concat("canonical ", parameter, " ", one_line(expression), "\n");
  }
  return out;
}

Result<SpaceDefinition> SpaceDefinition::parse(std::string_view text) {
  if (text.size() > kMaxText) {
    return fail(ErrorCode::kCorrupt, "a space of ", text.size(), " bytes is over the limit");
  }
  SpaceDefinition out;
  std::size_t statements = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) {
      continue;
    }
    if ((++statements == 1) != (line.rfind("space ", 0) == 0) || statements > kMaxStatements) {
      return fail(ErrorCode::kCorrupt, "a space begins with one 'space' line and has at most ",
                  kMaxStatements, " statements");
    }
    FORETUNE_TRY_STATUS(parse_statement(trim(line), out));
  }
  if (statements == 0) {
    return fail(ErrorCode::kCorrupt, "an empty text is not a space");
  }
  // All parameters have values, or none has: then the space is known by its constraints only.
  std::size_t empty = 0;
  for (const std::vector<std::int32_t>& domain : out.domains) {
    empty += domain.empty() ? 1U : 0U;
  }
  if (empty == out.domains.size()) {
    out.domains.clear();
  } else if (empty != 0) {
    return fail(ErrorCode::kCorrupt, "some parameters of the space have values and some have none");
  }
  return out;
}

}  // namespace foretune
