// foretune env-generate: writes lists of loop-nest benchmarks from ranges of sizes, and lists the
// built-in data sets.
#include <algorithm>
#include <cstddef>
#include <string>

#include "foretune/base/text.h"
#include "foretune/loop/gym/benchmarks.h"
#include "foretune/workflow/benchmark_generation.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

Result<int> show_datasets() {
  for (const loop::gym::DatasetInfo& info : loop::gym::benchmark_datasets()) {
    const std::string name =
        concat(info.name, std::string(20 - std::min<std::size_t>(19, info.name.size()), ' '));
    const std::string count = concat(info.count);
    print(concat(name, std::string(6 - std::min<std::size_t>(5, count.size()), ' '), count, "  ",
                 info.what, "\n"));
  }
  return kExitOk;
}

Result<int> generate(const EnvGenerateArguments& arguments, const Invocation& invocation) {
  if (arguments.list) {
    return show_datasets();
  }
  EnvGenerateHooks hooks;
  hooks.on_written = [](const std::string& path, std::size_t benchmarks) {
    print(concat("wrote ", path, ": ", count_of(benchmarks, "benchmark"), "\n"));
  };
  FORETUNE_TRY_STATUS(run_generation(arguments, invocation, hooks));
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_env_generate(OptionList& list) {
  return prepare_with<EnvGenerateArguments, generate>(list);
}

}  // namespace foretune::cli
