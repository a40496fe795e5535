// A family of commands as its file defines it: plain data that the reader makes (command_file.h)
// and the family runs (command_family.h). Internal to the module. Thread safety: immutable once
// read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/families/command/command_template.h"
#include "foretune/families/command/reading.h"
#include "foretune/families/command/subprocess.h"
#include "foretune/metrics/metric.h"
#include "foretune/problem/problem_type.h"
#include "foretune/space/parametric_space.h"

namespace foretune::command_internal {

struct CommandField {
  std::string name;
  std::string help;
  std::vector<std::string> labels;  // empty for an integer
  std::int64_t minimum = 0;
  std::int64_t maximum = 0;
  std::optional<std::int64_t> default_value;
  std::optional<std::pair<std::int64_t, std::int64_t>> drawn;  // from, to
};

struct CommandParameter {
  std::string name;
  std::vector<std::string> labels;  // as configs and expressions name them; empty for an integer
  std::vector<std::string> texts;   // as commands see them, one for each label
  std::vector<std::int32_t> domain;
  std::int32_t default_word = 0;
  bool splits = false;  // a text may be several words, or none
};

struct Command {
  CommandTemplate words;
  ProcessLimits limits;
};

struct CommandMetric {
  MetricInfo info;
  NumberSource from;
  double unit_ns = 1;              // of a metric that is the clock's time
  std::optional<Command> command;  // of the stage of evaluation
};

// Where a run reports its own time.
struct ReportedTime {
  NumberSource from;
  double unit_ns = 1;
};

struct ResultCheck {
  enum class Kind : std::uint8_t { kNone, kExpected, kReference, kCommand };
  Kind kind = Kind::kNone;
  TemplateWord expected;           // the file's path
  std::optional<Command> prepare;  // before the reference
  Command command;                 // the reference, or the judge
};

struct CommandSpec {
  std::string name;
  std::string description;
  std::string file;    // as errors name it
  std::string source;  // its folder, absolute
  std::uint32_t version = 1;
  int threads = 1;
  std::vector<CommandField> fields;
  std::vector<std::string> problems;  // listed instead of drawn, as texts
  std::vector<CommandParameter> parameters;
  std::vector<Constraint> constraints;
  std::vector<std::pair<std::string, std::string>> canonical;
  std::optional<Command> build;
  Command run;
  std::optional<ReportedTime> time;  // nothing: the whole process is timed
  bool has_time_section = false;     // may ask for just that
  std::vector<CommandMetric> metrics;
  ResultCheck check;

  [[nodiscard]] bool draws() const;
  // Says that a command names the number of threads, so that it can be changed.
  [[nodiscard]] bool takes_threads() const;
};

// The type of problem of a spec; it keeps the spec's texts, and points into itself.
class CommandProblem {
 public:
  explicit CommandProblem(std::shared_ptr<const CommandSpec> spec);
  CommandProblem(const CommandProblem&) = delete;
  CommandProblem& operator=(const CommandProblem&) = delete;
  [[nodiscard]] const ProblemTypeInfo& info() const { return info_; }

 private:
  std::shared_ptr<const CommandSpec> spec_;
  std::string name_;
  std::vector<std::vector<std::string_view>> labels_;
  std::vector<ProblemField> fields_;
  std::vector<DrawnSize> drawn_;
  ProblemTypeInfo info_;
};

// The space of a spec; its problem type need not be registered for this.
SpaceDefinition space_definition(const CommandSpec& spec);
// "cc_flags" for "cc-flags": the name of its type of problem.
std::string problem_name(std::string_view family);

}  // namespace foretune::command_internal
