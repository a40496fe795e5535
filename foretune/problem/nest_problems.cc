#include "foretune/problem/nest_problems.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>

#include "foretune/base/check.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::string_view kTypePrefix = "nest_";
// A switch of the text form that is not a field: it sets another field.
constexpr std::string_view kChannelsLast = "nhwc";

// Returns the computation of a line "NAME COMPUTATION [; SCHEDULE]"; nothing for comments and empty
// lines.
std::string_view computation_of_line(std::string_view line) {
  line = trim(line);
  if (line.empty() || line.front() == '#') {
    return {};
  }
  line = line.substr(0, line.find(';'));
  return trim(line.substr(std::min(line.find_first_of(" \t"), line.size())));
}

std::string type_of(std::string_view computation) {
  return concat(kTypePrefix, computation.substr(0, computation.find(' ')));
}

std::string_view first_computation(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    if (const std::string_view computation = computation_of_line(line); !computation.empty()) {
      return computation;
    }
  }
  return {};
}

// Returns the first comment after the line that names the format.
std::string summary_of(std::string_view text) {
  const std::vector<std::string_view> lines = split(text, '\n');
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].starts_with("# ")) {
      return std::string(lines[i].substr(2));
    }
  }
  return {};
}

// The files are part of the library; a test compares them with the loop module's reading of them.
std::vector<Problem> distinct_problems(std::string_view text) {
  std::vector<Problem> out;
  std::unordered_set<Problem> seen;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view computation = computation_of_line(line);
    if (computation.empty()) {
      continue;
    }
    const Result<Problem> problem = parse_nest_problem(computation);
    FORETUNE_CHECK(problem.has_value());
    if (seen.insert(*problem).second) {
      out.push_back(*problem);
    }
  }
  return out;
}

}  // namespace

Result<Problem> parse_nest_problem(std::string_view computation) {
  std::string text = type_of(computation);
  const std::vector<std::string_view> words = split_words(computation);
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == kChannelsLast) {
      text += concat(" layout=", kChannelsLast);
    } else {
      text += concat(" ", words[i], words[i].find('=') == std::string_view::npos ? "=yes" : "");
    }
  }
  return Problem::parse(text);
}

std::vector<NamedShapeSet> nest_shape_sets(ProblemType type) {
  const std::string_view name = find_problem_schema(type)->name;
  std::vector<NamedShapeSet> out;
  for (const EmbeddedText& file : nest_benchmark_texts()) {
    if (type_of(first_computation(file.text)) == name) {
      out.push_back({.name = std::string(file.name),
                     .summary = summary_of(file.text),
                     .make = [text = file.text] { return distinct_problems(text); }});
    }
  }
  return out;
}

namespace problem_internal {

ProblemField nest_size(std::string_view name, FieldGroups groups, std::string_view help,
                       std::optional<std::int64_t> default_value) {
  ProblemField field = size_field(name, default_value);
  field.groups = groups;
  field.help = help;
  return field;
}

ProblemField nest_switch(std::string_view name, std::string_view help) {
  static constexpr std::array<std::string_view, 2> kLabels{"no", "yes"};
  ProblemField field = label_field(name, kLabels, 0, kLabels.size());
  field.help = help;
  return field;
}

Status check_nest_tensor(std::string_view type, std::string_view tensor,
                         std::initializer_list<std::int64_t> sizes) {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) {
    if (size > kMaxNestElements / elements) {
      return fail(ErrorCode::kUnsupported, type, ": the tensor ", tensor, " has more than ",
                  kMaxNestElements, " elements");
    }
    elements *= size;
  }
  return {};
}

void halve_largest(std::initializer_list<std::int64_t*> sizes) {
  std::int64_t* const largest = *std::max_element(
      sizes.begin(), sizes.end(),
      [](const std::int64_t* left, const std::int64_t* right) { return *left < *right; });
  FORETUNE_CHECK(*largest > 1);
  *largest = (*largest + 1) / 2;
}

}  // namespace problem_internal
}  // namespace foretune
