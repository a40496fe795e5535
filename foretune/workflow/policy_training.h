// Training a policy that schedules loop nests: the options of `foretune train-policy`, which are
// those of LoopTune's rllib_agent.py as far as they have a meaning here, and the command line of
// the program that does it, foretune-train-policy, the only part that is linked to libtorch beside
// the trainer of networks.
//
// Thread safety: any thread may call these functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"

namespace foretune::workflow {

struct TrainPolicyArguments {
  std::string trainer = "ppo";
  std::string dataset = "mixed";
  std::string test = "mm64_256_16_test25";
  std::string model;
  std::string output;
  std::string resume;
  std::string cache;
  double seconds = 600;
  std::int64_t iterations = 0;
  std::int64_t sweep = 0;
  std::int64_t steps = 12;
  std::int64_t network = 64;
  std::int64_t actors = 2;
  std::int64_t computations = 256;
  std::int64_t eval_size = 25;
  std::int64_t eval_time = 10;
  std::string reward = "log";
  double price = 0;
  std::string isa;

  void visit(OptionList& list);
};

// Returns the program and its arguments. Errors: kNotFound where the program was not built.
Result<std::vector<std::string>> policy_training_command(const TrainPolicyArguments& arguments,
                                                         const Invocation& invocation);

}  // namespace foretune::workflow
