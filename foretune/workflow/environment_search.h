// The options of LoopTune's searches over a data set of loop nests, and the searches themselves.
// Nothing here prints.
//
//   EnvSearchArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const PreparedEnvSearch prepared, prepare_env_search(arguments));
//   FORETUNE_TRY(const ContestResults results, run_env_search(prepared, invocation, hooks));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/gym/benchmarks.h"
#include "foretune/model/model_file.h"
#include "foretune/space/space.h"
#include "foretune/tune/strategy_contest.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

struct EnvSearchArguments {
  std::string dataset = "mm64_256_16_test25";
  std::int64_t eval_size = 0;
  std::string methods;
  std::string policy;
  std::int64_t measurements = 0;
  double eval_time = 0;
  std::int64_t steps = 10;
  std::string actions;
  std::string isa;
  double peak_gflops = 0;
  std::string output;
  bool debug = false;

  void visit(OptionList& list);
};

struct PreparedEnvSearch {
  std::vector<Contestant> contestants;
  std::vector<loop::gym::Benchmark> benchmarks;
  std::vector<std::string> family_options;  // of all benchmarks
  CpuIsa isa = CpuIsa::kGeneric;
  double peak_gflops = 0;  // 0: it is measured
  std::string source;      // one line below figures
  ContestOptions options;
  std::unique_ptr<Model> policy;  // of the method looptune; may be null
};

// Errors: kInvalidArgument for options that make no sense, kNotFound for an unknown method or data
// set.
Result<PreparedEnvSearch> prepare_env_search(const EnvSearchArguments& arguments);

struct EnvSearchHooks {
  const std::atomic<bool>* stop = nullptr;  // once true, the search ends after its measurement
  // Once a benchmark, the last of the results, is searched; may be empty. Its error ends the run.
  std::function<Status(const ContestResults&, const Space&)> on_result;
};

// Searches one benchmark after another. Returns those that were searched by all methods. Errors:
// those of run_contest(), with the benchmark's name, and of the hook.
Result<ContestResults> run_env_search(const PreparedEnvSearch& prepared,
                                      const Invocation& invocation, const EnvSearchHooks& hooks);

}  // namespace foretune::workflow
