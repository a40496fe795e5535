// foretune env-search: LoopTune's searches, with LoopTune's option names. `tune --strategies` does
// the same for every family. Only here are LoopTune's data sets, whose benchmarks may start from a
// schedule, and its recipe.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/text.h"
#include "foretune/workflow/environment_search.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/contest_log.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

std::vector<std::pair<std::string, std::string>> manifest_of(const EnvSearchArguments& arguments,
                                                             const Invocation& invocation,
                                                             const PreparedEnvSearch& prepared) {
  return {{"command", json_quoted(invocation.command_line)},
          {"data_set", json_quoted(arguments.dataset)},
          {"measurements", concat(arguments.measurements)},
          {"seconds", concat(prepared.options.tune.budget.seconds.value_or(0))},
          {"steps", concat(arguments.steps)},
          {"actions", json_quoted(arguments.actions)},
          {"seed", concat(invocation.seed)},
          {"peak_is_measured", arguments.peak_gflops > 0 ? "false" : "true"},
          {"isa", json_quoted(to_string(prepared.isa))}};
}

Result<int> search_environment(const EnvSearchArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const PreparedEnvSearch ready, prepare_env_search(arguments));
  FORETUNE_TRY(ContestLog log,
               ContestLog::create({.folder = arguments.output,
                                   .source = ready.source,
                                   .has_graphs = arguments.debug,
                                   .max_steps = static_cast<std::size_t>(arguments.steps),
                                   .manifest = manifest_of(arguments, invocation, ready)},
                                  ready.contestants));
  EnvSearchHooks hooks;
  hooks.stop = &stop_flag();
  hooks.on_result = [&](const ContestResults& results, const Space& space) {
    return log.add(results, space);
  };
  FORETUNE_TRY(const ContestResults results, run_env_search(ready, invocation, hooks));
  FORETUNE_TRY_STATUS(log.finish(results));
  return stop_flag().load() ? kExitInterrupted : kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_env_search(OptionList& list) {
  return prepare_with<EnvSearchArguments, search_environment>(list);
}

}  // namespace foretune::cli
