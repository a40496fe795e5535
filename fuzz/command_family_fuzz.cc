// Any text as the file of a family of commands: it is refused with one line that names file and
// place, or its space can be walked and every command expanded. Nothing is started.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "foretune/base/text.h"
#include "foretune/families/command/command_file.h"

namespace {

using foretune::command_internal::CommandSpec;
using foretune::command_internal::CommandTemplate;
using foretune::command_internal::Expansion;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

Expansion some_values(const CommandSpec& spec) {
  Expansion out{.source = "/source",
                .build = "/build",
                .folder = "/folder",
                .output = "/folder/output",
                .threads = spec.threads,
                .jobs = 2};
  for (const auto& parameter : spec.parameters) {
    const auto word = static_cast<std::size_t>(parameter.default_word);
    out.parameters.push_back(parameter.texts.empty() ? "1" : parameter.texts.at(word));
  }
  for (const auto& field : spec.fields) {
    out.fields.push_back(field.labels.empty() ? "1" : field.labels.front());
  }
  return out;
}

void check_command(const CommandTemplate& command, const Expansion& values) {
  for (const std::string& word : expand(command, values)) {
    require(word.find('\0') == std::string::npos);  // or the program would see half of it
  }
}

void check_spec(const std::shared_ptr<const CommandSpec>& spec) {
  const foretune::command_internal::CommandProblem problem(spec);
  require(problem.info().schema.fields.size() == spec->fields.size());
  const foretune::SpaceDefinition space = space_definition(*spec);
  require(space.domains.size() == spec->parameters.size());
  for (std::size_t i = 0; i < space.domains.size(); ++i) {
    const auto& parameter = spec->parameters[i];
    require(!space.domains[i].empty());
    require(parameter.labels.size() == parameter.texts.size());
    require(parameter.labels.empty() || parameter.labels.size() == space.domains[i].size());
  }
  const Expansion values = some_values(*spec);
  check_command(spec->run.words, values);
  if (spec->build) {
    check_command(spec->build->words, values);
  }
  check_command(spec->check.command.words, values);
  for (const auto& metric : spec->metrics) {
    if (metric.command) {
      check_command(metric.command->words, values);
    }
    if (metric.from.kind != foretune::command_internal::NumberSource::Kind::kWall) {
      const auto number = read_number(metric.from, "time: 5 ms\n{\"a\": [1, {\"b\": 2}]}", values);
      require(number.has_value() || !number.error().message.empty());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = foretune::command_internal::parse_command_file(text, "f.toml", "/source");
  if (spec) {
    check_spec(*spec);
    return 0;
  }
  const std::string& reason = spec.error().message;
  require(reason.starts_with("f.toml") && reason.size() < 4000);
  require(reason.find('\n') == std::string::npos);
  return 0;
}
