#include "foretune/families/command/command_file.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/command/command_parameters.h"
#include "foretune/families/command/toml_document.h"
#include "foretune/families/command/toml_section.h"

namespace foretune::command_internal {
namespace {

constexpr double kLongestLimit = 1e6;  // s
constexpr double kBuildLimit = 120;
constexpr double kRunLimit = 60;
constexpr std::int64_t kMaxThreads = 4096;

// How a command may name things, beside the fields and the parameters.
struct Names {
  bool parameters = true;
  std::vector<Placeholder> others;
};

std::string_view name_of(Placeholder kind) {
  switch (kind) {
    case Placeholder::kSource:
      return "source";
    case Placeholder::kThreads:
      return "threads";
    case Placeholder::kJobs:
      return "jobs";
    case Placeholder::kBuild:
      return "build";
    case Placeholder::kFolder:
      return "folder";
    case Placeholder::kOutput:
      return "output";
    case Placeholder::kText:
    case Placeholder::kParameter:
    case Placeholder::kField:
      break;
  }
  return "";
}

std::vector<TemplateName> template_names(const CommandSpec& spec, const Names& names) {
  std::vector<TemplateName> out;
  for (std::size_t i = 0; names.parameters && i < spec.parameters.size(); ++i) {
    out.push_back({spec.parameters[i].name, Placeholder::kParameter, i, spec.parameters[i].splits});
  }
  for (std::size_t i = 0; i < spec.fields.size(); ++i) {
    out.push_back({spec.fields[i].name, Placeholder::kField, i, false});
  }
  for (const Placeholder kind : names.others) {
    out.push_back({std::string(name_of(kind)), kind, 0, false});
  }
  return out;
}

// Those of a config that runs, or has run.
Names names_of_run(const CommandSpec& spec, bool has_output) {
  Names out{.others = {Placeholder::kSource, Placeholder::kThreads, Placeholder::kFolder}};
  if (spec.build) {
    out.others.push_back(Placeholder::kBuild);
  }
  if (has_output) {
    out.others.push_back(Placeholder::kOutput);
  }
  return out;
}

Names names_of_problem() {
  return {.parameters = false,
          .others = {Placeholder::kSource, Placeholder::kThreads, Placeholder::kFolder}};
}

Result<TemplateWord> read_word(const TomlSection& section, std::string_view key,
                               std::string_view text, const CommandSpec& spec, const Names& names) {
  Result<TemplateWord> word = parse_word(text, template_names(spec, names));
  if (!word) {
    return section.refuse(key, word.error().message);
  }
  return word;
}

Result<CommandTemplate> read_words(const TomlSection& section, std::string_view key,
                                   const CommandSpec& spec, const Names& names) {
  FORETUNE_TRY(const std::vector<std::string> texts, section.texts(key));
  if (texts.empty()) {
    return section.refuse(key, "is missing; it must be a list of words");
  }
  CommandTemplate out;
  for (const std::string& text : texts) {
    FORETUNE_TRY(TemplateWord word, read_word(section, key, text, spec, names));
    out.words.push_back(std::move(word));
  }
  if (texts.front().empty()) {
    return section.refuse(key, "begins with an empty word, which names no program");
  }
  return out;
}

Result<ProcessLimits> read_limits(const TomlSection& section, double time_s) {
  ProcessLimits out;
  FORETUNE_TRY(out.time_s, section.number("time_limit_s", time_s, 0.001, kLongestLimit));
  FORETUNE_TRY(const auto memory, section.integer("memory_limit_mb", 1, std::int64_t{1} << 24U));
  out.memory_bytes = memory.value_or(0) << 20U;
  FORETUNE_TRY(const auto output, section.integer("output_limit_kb", 1, std::int64_t{1} << 20U));
  if (output) {
    out.output_bytes = *output << 10U;
  }
  return out;
}

Status read_build(const TomlSection& root, CommandSpec& spec) {
  FORETUNE_TRY(const std::optional<TomlSection> section, root.section("build"));
  if (!section) {
    return {};
  }
  FORETUNE_TRY_STATUS(
      section->check_keys({"command", "time_limit_s", "memory_limit_mb", "output_limit_kb"}));
  Command build;
  FORETUNE_TRY(
      build.words,
      read_words(*section, "command", spec,
                 {.others = {Placeholder::kSource, Placeholder::kThreads, Placeholder::kJobs}}));
  FORETUNE_TRY(build.limits, read_limits(*section, kBuildLimit));
  spec.build = std::move(build);
  return {};
}

Status read_run(const TomlSection& root, CommandSpec& spec) {
  FORETUNE_TRY(const std::optional<TomlSection> section, root.section("run"));
  if (!section) {
    return root.refuse("run", "is missing; its command is what is measured");
  }
  FORETUNE_TRY_STATUS(
      section->check_keys({"command", "time_limit_s", "memory_limit_mb", "output_limit_kb"}));
  FORETUNE_TRY(spec.run.words, read_words(*section, "command", spec, names_of_run(spec, false)));
  FORETUNE_TRY(spec.run.limits, read_limits(*section, kRunLimit));
  return {};
}

// {json = ...}, {regex = ...}, {file = ...}, {bytes = ...}.
Result<NumberSource> read_source_table(const TomlSection& section, const CommandSpec& spec) {
  FORETUNE_TRY_STATUS(section.check_keys({"json", "regex", "file", "bytes"}));
  NumberSource out;
  FORETUNE_TRY(const auto json, section.text("json"));
  FORETUNE_TRY(const auto regex, section.text("regex"));
  FORETUNE_TRY(const auto file, section.text("file"));
  FORETUNE_TRY(const auto bytes, section.text("bytes"));
  const int ways = int{json.has_value()} + int{regex.has_value()} + int{bytes.has_value()};
  if (ways > 1 || (ways == 0 && !file) || (bytes && file)) {
    return section.refuse("", "must have one of json, regex and bytes, or file alone");
  }
  if (const auto& named = bytes ? bytes : file) {
    FORETUNE_TRY(out.file, read_word(section, bytes ? "bytes" : "file", *named, spec,
                                     names_of_run(spec, true)));
  }
  if (json) {
    Result<std::vector<std::string>> path = parse_json_path(*json);
    if (!path) {
      return section.refuse("json", path.error().message);
    }
    out.kind = NumberSource::Kind::kJson;
    out.path = *std::move(path);
    out.text = *json;
  } else if (regex) {
    auto pattern = GroupPattern::compile(*regex);
    if (!pattern) {
      return section.refuse("regex", pattern.error().message);
    }
    out.kind = NumberSource::Kind::kRegex;
    out.pattern = *std::move(pattern);
    out.text = *regex;
  } else {
    out.kind = bytes ? NumberSource::Kind::kBytes : NumberSource::Kind::kWhole;
  }
  return out;
}

Result<NumberSource> read_source(const TomlSection& section, const CommandSpec& spec) {
  const TomlValue* value = section.find("from");
  if (value != nullptr && value->kind == TomlValue::Kind::kTable) {
    FORETUNE_TRY(const std::optional<TomlSection> table, section.section("from"));
    return read_source_table(*table, spec);
  }
  FORETUNE_TRY(const std::string word, section.needed_text("from"));
  NumberSource out;
  if (word == "wall" || word == "stdout") {
    out.kind = word == "wall" ? NumberSource::Kind::kWall : NumberSource::Kind::kWhole;
    return out;
  }
  return section.refuse("from", "is ", quoted(word, 40),
                        "; it must be \"wall\", \"stdout\" or a table with json, regex, file or "
                        "bytes");
}

// How many nanoseconds one of them has; 0 for no unit of time.
double unit_ns(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  for (const auto& [name, ns] : kUnits) {
    if (unit == name) {
      return ns;
    }
  }
  return 0;
}

Status read_time(const TomlSection& root, CommandSpec& spec) {
  FORETUNE_TRY(const std::optional<TomlSection> section, root.section("time"));
  spec.has_time_section = section.has_value();
  if (!section) {
    return {};
  }
  FORETUNE_TRY_STATUS(section->check_keys({"from", "unit"}));
  ReportedTime time;
  FORETUNE_TRY(time.from, read_source(*section, spec));
  FORETUNE_TRY(const std::optional<std::string> unit, section->text("unit"));
  if (time.from.kind == NumberSource::Kind::kBytes) {
    return section->refuse("from", "is the size of a file, which is no time");
  }
  if (time.from.kind == NumberSource::Kind::kWall) {
    return unit ? Status(
                      section->refuse("unit", "stands beside the clock's time, which has its own"))
                : Status();
  }
  time.unit_ns = unit_ns(unit.value_or(""));
  if (time.unit_ns == 0) {
    return section->refuse("unit", "must be ns, us, ms or s");
  }
  spec.time = std::move(time);
  return {};
}

Result<MetricInfo> read_metric_info(const TomlSection& section, const std::string& name) {
  MetricInfo out;
  out.name = name;
  FORETUNE_TRY(const std::optional<std::string> unit, section.text("unit"));
  out.unit = unit.value_or("");
  FORETUNE_TRY(const std::optional<std::string> direction, section.text("direction"));
  if (direction && *direction != "minimise" && *direction != "maximise") {
    return section.refuse("direction", "is ", quoted(*direction, 40),
                          "; it must be minimise or maximise");
  }
  out.direction = direction == "maximise" ? Direction::kMaximise : Direction::kMinimise;
  FORETUNE_TRY(const std::optional<std::string> stage, section.text("stage"));
  if (stage && *stage != "run" && *stage != "evaluation") {
    return section.refuse("stage", "is ", quoted(*stage, 40), "; it must be run or evaluation");
  }
  out.stage = stage == "evaluation" ? MetricStage::kEvaluation : MetricStage::kRun;
  if (const MetricInfo* known = find_metric(common_metrics(), name)) {
    return section.refuse("", "is called like a metric that means ",
                          quoted(concat(to_text(*known), " everywhere"), 60),
                          "; another name is needed");
  }
  if (const Status good = check_metric_info(out); !good) {
    return section.refuse("", "makes no sense: ", good.error().message);
  }
  return out;
}

Result<CommandMetric> read_metric(const TomlSection& section, const std::string& name,
                                  const CommandSpec& spec) {
  FORETUNE_TRY_STATUS(section.check_keys({"unit", "direction", "from", "stage", "command",
                                          "time_limit_s", "memory_limit_mb", "output_limit_kb"}));
  CommandMetric out;
  FORETUNE_TRY(out.info, read_metric_info(section, name));
  FORETUNE_TRY(out.from, read_source(section, spec));
  out.unit_ns = unit_ns(out.info.unit);
  if (out.from.kind == NumberSource::Kind::kWall && out.unit_ns == 0) {
    return section.refuse("unit", "must be ns, us, ms or s where the number is the clock's");
  }
  const bool is_late = out.info.stage == MetricStage::kEvaluation;
  if (!is_late) {
    for (const std::string_view key :
         {"command", "time_limit_s", "memory_limit_mb", "output_limit_kb"}) {
      if (section.has(key)) {
        return section.refuse(key,
                              "needs stage = \"evaluation\"; a metric of the run comes from it");
      }
    }
    return out;
  }
  if (out.from.kind == NumberSource::Kind::kWall) {
    return section.refuse("from", "is the clock's time of a run, which no later stage has");
  }
  if (section.has("command")) {
    Command command;
    FORETUNE_TRY(command.words, read_words(section, "command", spec, names_of_run(spec, true)));
    FORETUNE_TRY(command.limits, read_limits(section, kRunLimit));
    out.command = std::move(command);
  }
  return out;
}

Status read_metrics(const TomlSection& root, CommandSpec& spec) {
  FORETUNE_TRY(const std::optional<TomlSection> all, root.section("metrics"));
  if (!all) {
    return {};
  }
  for (const auto& [name, value] : all->table().members) {
    FORETUNE_TRY(const std::optional<TomlSection> section, all->section(name));
    FORETUNE_TRY(CommandMetric metric, read_metric(*section, name, spec));
    spec.metrics.push_back(std::move(metric));
  }
  return {};
}

Status read_reference(const TomlSection& section, const ProcessLimits& limits, CommandSpec& spec) {
  ResultCheck& check = spec.check;
  check.kind = ResultCheck::Kind::kReference;
  FORETUNE_TRY(check.command.words, read_words(section, "reference", spec, names_of_problem()));
  if (section.has("prepare")) {
    Command prepare{.limits = limits};
    FORETUNE_TRY(prepare.words, read_words(section, "prepare", spec, names_of_problem()));
    check.prepare = std::move(prepare);
  }
  return {};
}

Status read_check(const TomlSection& root, CommandSpec& spec) {
  FORETUNE_TRY(const std::optional<TomlSection> section, root.section("check"));
  if (!section) {
    return {};
  }
  FORETUNE_TRY_STATUS(section->check_keys({"expected", "reference", "prepare", "command",
                                           "time_limit_s", "memory_limit_mb", "output_limit_kb"}));
  const int ways =
      int{section->has("expected")} + int{section->has("reference")} + int{section->has("command")};
  if (ways != 1) {
    return section->refuse("", "must have one of expected, reference and command");
  }
  if (section->has("prepare") && !section->has("reference")) {
    return section->refuse("prepare", "comes before a reference, and there is none");
  }
  FORETUNE_TRY(spec.check.command.limits, read_limits(*section, kRunLimit));
  if (section->has("reference")) {
    return read_reference(*section, spec.check.command.limits, spec);
  }
  if (section->has("command")) {
    spec.check.kind = ResultCheck::Kind::kCommand;
    FORETUNE_TRY(spec.check.command.words,
                 read_words(*section, "command", spec, names_of_run(spec, true)));
    return {};
  }
  spec.check.kind = ResultCheck::Kind::kExpected;
  FORETUNE_TRY(const std::string expected, section->needed_text("expected"));
  FORETUNE_TRY(spec.check.expected,
               read_word(*section, "expected", expected, spec,
                         {.parameters = false, .others = {Placeholder::kSource}}));
  return {};
}

Status read_head(const TomlSection& root, CommandSpec& spec) {
  FORETUNE_TRY_STATUS(root.check_keys({"name", "description", "version", "threads", "problem",
                                       "problems", "parameters", "constraints", "canonical",
                                       "build", "run", "time", "metrics", "check"}));
  FORETUNE_TRY(spec.name, root.needed_text("name"));
  if (!is_name(problem_name(spec.name))) {
    return root.refuse("name", "is ", quoted(spec.name, 40),
                       "; it must have letters a-z, digits, - and _, a letter first, at most 40");
  }
  FORETUNE_TRY(const std::optional<std::string> description, root.text("description"));
  spec.description = description.value_or(concat("commands of ", spec.file));
  if (spec.description.empty() || spec.description.find('\n') != std::string::npos) {
    return root.refuse("description", "must be one line of text");
  }
  FORETUNE_TRY(const auto version, root.integer("version", 1, 1'000'000));
  spec.version = static_cast<std::uint32_t>(version.value_or(1));
  FORETUNE_TRY(const auto threads, root.integer("threads", 1, kMaxThreads));
  spec.threads = static_cast<int>(threads.value_or(1));
  return {};
}

}  // namespace

Result<std::shared_ptr<const CommandSpec>> parse_command_file(std::string_view text,
                                                              const std::string& file,
                                                              const std::string& folder) {
  FORETUNE_TRY(const TomlValue document, parse_toml(text, file));
  const TomlSection root(document, file, "");
  auto spec = std::make_shared<CommandSpec>();
  spec->file = file;
  spec->source = folder;
  FORETUNE_TRY_STATUS(read_head(root, *spec));
  FORETUNE_TRY_STATUS(read_problem(root, *spec));
  FORETUNE_TRY_STATUS(read_parameters(root, *spec));
  FORETUNE_TRY_STATUS(read_rules(root, *spec));
  FORETUNE_TRY_STATUS(read_build(root, *spec));
  FORETUNE_TRY_STATUS(read_run(root, *spec));
  FORETUNE_TRY_STATUS(read_time(root, *spec));
  FORETUNE_TRY_STATUS(read_metrics(root, *spec));
  FORETUNE_TRY_STATUS(read_check(root, *spec));
  return std::shared_ptr<const CommandSpec>(std::move(spec));
}

}  // namespace foretune::command_internal
