// The words of a command with {placeholders} in them.
//
//   gcc {opt} {vectors} -o program {source}/kernel.c
//
// A placeholder becomes text inside its word and never more than that: a value with blanks, quotes
// or dollar signs stays one word. A word that is one placeholder alone and becomes empty
// disappears; one whose parameter is split becomes as many words as the value has. `{{` and `}}`
// are braces. Internal to the module. Thread safety: plain values. Cost: linear in the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::command_internal {

enum class Placeholder : std::uint8_t {
  kText,       // none: the text itself
  kParameter,  // of the config
  kField,      // of the problem
  kSource,     // the folder of the family's file
  kThreads,
  kJobs,    // how many compilers a build may run at once
  kBuild,   // the folder in which the build ran
  kFolder,  // the folder in which the config runs
  kOutput,  // a file with the standard output of the run
};

struct TemplateWord {
  struct Piece {
    Placeholder kind = Placeholder::kText;
    std::string text;       // itself, or the name
    std::size_t index = 0;  // of a parameter or field
  };
  std::vector<Piece> pieces;
  bool splits = false;
};

struct CommandTemplate {
  std::vector<TemplateWord> words;

  [[nodiscard]] bool mentions(Placeholder kind) const;
};

// A name that a command may mention.
struct TemplateName {
  std::string name;
  Placeholder kind = Placeholder::kText;
  std::size_t index = 0;
  bool splits = false;
};

// Errors: kInvalidArgument with a half sentence: "mentions {of}, which is ...".
Result<TemplateWord> parse_word(std::string_view text, std::span<const TemplateName> names);

// The texts of what is mentioned.
struct Expansion {
  std::vector<std::string> parameters;
  std::vector<std::string> fields;
  std::string source;
  std::string build;
  std::string folder;
  std::string output;
  int threads = 1;
  int jobs = 1;
};

std::string expand(const TemplateWord& word, const Expansion& values);
std::vector<std::string> expand(const CommandTemplate& command, const Expansion& values);

}  // namespace foretune::command_internal
