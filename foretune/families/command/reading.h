// Numbers found in the output of a program: where they stand, and reading them.
//
//   {json = "/perf_result/latency(ms)"}      a member of the JSON document that is printed
//   {regex = "time: ([0-9.]+) ms"}           the group of a POSIX extended regular expression
//   {file = "score.txt"}                     a file that holds the number and nothing else
//   {bytes = "{build}/program"}              the size of a file
//
// Internal to the module. Thread safety: a source is immutable; reading may happen in several
// threads at once. Cost: linear in the text for regular expressions without back references.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/families/command/command_template.h"

namespace foretune::command_internal {

// A compiled regular expression with one group. Lines are matched one by one: ^ and $ are those of
// a line, and . is no line feed.
class GroupPattern {
 public:
  // Errors: kInvalidArgument with a half sentence.
  static Result<std::shared_ptr<const GroupPattern>> compile(const std::string& text);
  // Returns what the group of the first match holds; nothing without a match.
  [[nodiscard]] std::optional<std::string> find(const std::string& text) const;
  ~GroupPattern();
  GroupPattern(const GroupPattern&) = delete;
  GroupPattern& operator=(const GroupPattern&) = delete;

 private:
  GroupPattern() = default;
  struct State;
  std::unique_ptr<State> state_;
};

struct NumberSource {
  enum class Kind : std::uint8_t { kWall, kWhole, kJson, kRegex, kBytes };
  Kind kind = Kind::kWall;
  std::optional<TemplateWord> file;  // instead of standard output; what kBytes counts
  std::vector<std::string> path;     // of kJson: keys and positions
  std::string text;                  // of the path or pattern, for messages
  std::shared_ptr<const GroupPattern> pattern;
};

// "/a/b~1c" as the keys a and b/c. Errors: kInvalidArgument with a half sentence.
Result<std::vector<std::string>> parse_json_path(std::string_view text);

// The number at its place; `output` is the standard output, and files are relative to
// `values.folder`. Not for kWall. Errors: kCorrupt with a sentence that says what is not there.
Result<double> read_number(const NumberSource& source, const std::string& output,
                           const Expansion& values);

}  // namespace foretune::command_internal
