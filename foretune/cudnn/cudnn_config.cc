#include "foretune/cudnn/cudnn_config.h"

#include <string>

#include "foretune/base/text.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {
namespace {

// Returns the text with what is missing in it added as the library's choice.
std::string completed(std::string_view line) {
  std::string text(line);
  for (const Parameter& parameter : cudnn_schema().parameters) {
    bool is_given = false;
    for (const std::string_view word : split(line, ' ')) {
      is_given = is_given || word.substr(0, word.find('=')) == parameter.name;
    }
    if (!is_given) {
      const std::string_view value = parameter.name == "heuristic" ? "none"
                                     : parameter.name == "rank"    ? "0"
                                                                   : "-1";
      text += concat(" ", parameter.name, "=", value);
    }
  }
  return text;
}

}  // namespace

SpaceDefinition cudnn_space() {
  SpaceDefinition definition;
  definition.schema = cudnn_schema();
  definition.problem_type = kConvProblem;
  std::string knobs;
  for (std::size_t i = 3; i < definition.schema.parameters.size(); ++i) {
    knobs += concat(knobs.empty() ? "" : " + ", definition.schema.parameters[i].name);
  }
  const std::size_t count = definition.schema.parameters.size() - 3;
  definition.constraints = {
      {"(heuristic > 0) == (rank > 0)", "a rank and the heuristic that it is of go together"},
      {"(heuristic > 0) == (engine < 0)", "a config is a rank of a heuristic or an engine"},
      {concat("heuristic == 0 || ", knobs, " == -", count),
       "a rank of a heuristic leaves the knobs to the library"},
  };
  return definition;
}

Result<FamilyInfo> cudnn_info() {
  FamilyInfo info;
  info.name = kCudnnName;
  info.description = kCudnnDescription;
  info.problem_type = kConvProblem;
  info.config_schema = cudnn_schema();
  FORETUNE_TRY(info.space, CompiledSpace::create(cudnn_space()));
  return info;
}

Result<std::vector<Config>> parse_cudnn_configs(std::string_view text) {
  std::vector<Config> configs;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const Result<Config> config = parse_config(cudnn_schema(), completed(line));
    if (!config) {
      return fail(ErrorCode::kInvalidArgument, "line ", number, ": ", config.error().message);
    }
    if (const auto checked = CudnnConfig::from(*config); !checked) {
      return fail(ErrorCode::kInvalidArgument, "line ", number, ": ", checked.error().message);
    }
    configs.push_back(*config);
  }
  return configs;
}

}  // namespace foretune
