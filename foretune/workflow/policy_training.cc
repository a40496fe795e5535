#include "foretune/workflow/policy_training.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/workflow/trainer_program.h"

namespace foretune::workflow {

void TrainPolicyArguments::visit(OptionList& list) {
  list.add("model", model, "FILE", "model file to write").require();
  list.add("trainer", trainer, "NAME",
           "ppo, appo, a2c, a3c, impala, dqn or apex; dqn.ApexTrainer and LoopTune's other names "
           "mean the same");
  list.add("dataset", dataset, "NAME",
           "computations to learn from: mixed (products, convolutions, reductions and chains drawn "
           "by --seed), products, or a data set (env-generate --list)");
  list.add("test", test, "NAME", "computations to evaluate on, from which nothing is learned");
  list.add("computations", computations, "N", "how many mixed and products draw").at_least(1);
  list.add("seconds", seconds, "S", "time to learn for");
  list.add("iter", iterations, "N", "limit of rounds of play and learning; 0 is no limit")
      .at_least(0);
  list.add("sweep", sweep, "N",
           "runs that share --seconds, all but the first with settings drawn at random; the best "
           "one's model is written")
      .at_least(0);
  list.add("steps", steps, "N", "actions of an episode").at_least(1).at_most(64);
  list.add("network", network, "WIDTH", "units of the network's layers").at_least(1).at_most(512);
  list.add("actors", actors, "N", "threads that play").at_least(1).at_most(256);
  list.add("reward", reward, "NAME",
           "share (of the peak, LoopTune's), log (of the speed-up), best (what the fastest so far "
           "gains)")
      .choose({"share", "log", "best"});
  list.add("price", price, "REWARD", "price of a measurement");
  list.add("isa", isa, "NAME", "instruction set to compile for").choose({"avx2", "avx512"});
  list.add("eval-size", eval_size, "N", "benchmarks of the evaluation at the end").at_least(0);
  list.add("eval-time", eval_time, "N", "measurements of each").at_least(1);
  list.add("output", output, "FOLDER", "folder for curves, evaluations and checkpoints");
  list.add("cache", cache, "FOLDER",
           "folder with measured schedules, one file for each type of problem as tune --cache has "
           "them; what is known there is not measured again, and what is measured is added");
  list.add("resume", resume, "FOLDER", "folder of a run to go on with, instead of --output");
}

Result<std::vector<std::string>> policy_training_command(const TrainPolicyArguments& arguments,
                                                         const Invocation& invocation) {
  const std::filesystem::path program =
      trainer_program("foretune-train-policy", invocation.worker_command.front());
  if (!std::filesystem::exists(program)) {
    return fail(ErrorCode::kNotFound,
                "policies are trained by the program foretune-train-policy, which is not at ",
                program.string(), "; it is built where libtorch is found");
  }
  std::vector<std::string> command{program.string()};
  const auto add = [&](std::string_view name, std::string value) {
    if (!value.empty()) {
      command.push_back(concat("--", name));
      command.push_back(std::move(value));
    }
  };
  add("model", arguments.model);
  add("trainer", arguments.trainer);
  add("dataset", arguments.dataset);
  add("test", arguments.test);
  add("tasks", concat(arguments.computations));
  add("seconds", concat(arguments.seconds));
  add("iter", concat(arguments.iterations));
  add("sweep", concat(arguments.sweep));
  add("steps", concat(arguments.steps));
  add("network", concat(arguments.network));
  add("actors", concat(arguments.actors));
  add("reward", arguments.reward);
  add("price", concat(arguments.price));
  add("isa", arguments.isa);
  add("eval-size", concat(arguments.eval_size));
  add("eval-time", concat(arguments.eval_time));
  add("folder", arguments.output);
  add("cache", arguments.cache);
  add("resume", arguments.resume);
  add("seed", concat(invocation.seed));
  return command;
}

}  // namespace foretune::workflow
