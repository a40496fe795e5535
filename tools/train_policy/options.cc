#include "options.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

#include "foretune/base/text.h"

namespace foretune::policy_training {
namespace {

struct AlgorithmName {
  Algorithm algorithm;
  std::string_view name;
  std::string_view looptune;  // as LoopTune's --trainer names it
};
constexpr std::array kAlgorithms{
    AlgorithmName{Algorithm::kPpo, "ppo", "ppo.PPOTrainer"},
    AlgorithmName{Algorithm::kAppo, "appo", "ppo.APPOTrainer"},
    AlgorithmName{Algorithm::kA2c, "a2c", "a3c.A2CTrainer"},
    AlgorithmName{Algorithm::kA3c, "a3c", "a3c.A3CTrainer"},
    AlgorithmName{Algorithm::kImpala, "impala", "impala.ImpalaTrainer"},
    AlgorithmName{Algorithm::kDqn, "dqn", "dqn.DQNTrainer"},
    AlgorithmName{Algorithm::kApex, "apex", "dqn.ApexTrainer"},
};

using Setter = Status (*)(TrainPolicyOptions& options, std::string_view text);

template <auto Member>
Status set_text(TrainPolicyOptions& options, std::string_view text) {
  if (text.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the value is empty");
  }
  options.*Member = text;
  return {};
}

template <auto Member, std::uint32_t Low, std::uint32_t High>
Status set_count(TrainPolicyOptions& options, std::string_view text) {
  const std::optional<std::uint64_t> value = parse_uint(text);
  if (!value || *value < Low || *value > High) {
    return fail(ErrorCode::kInvalidArgument, quoted(text, 40), " is no whole number from ", Low,
                " to ", High);
  }
  options.*Member = static_cast<std::uint32_t>(*value);
  return {};
}

template <auto Member, int Low, int High>
Status set_number(TrainPolicyOptions& options, std::string_view text) {
  const std::optional<double> value = parse_double(text);
  if (!value || !(*value >= Low) || !(*value <= High)) {
    return fail(ErrorCode::kInvalidArgument, quoted(text, 40), " is no number from ", Low, " to ",
                High);
  }
  options.*Member = *value;
  return {};
}

Status set_algorithm(TrainPolicyOptions& options, std::string_view text) {
  std::vector<std::string> names;
  for (const AlgorithmName& each : kAlgorithms) {
    if (text == each.name || text == each.looptune) {
      options.algorithm = each.algorithm;
      return {};
    }
    names.emplace_back(each.name);
  }
  return fail(ErrorCode::kInvalidArgument, "there is no trainer ", quoted(text, 40), "; there are ",
              join(names, ", "));
}

Status set_reward(TrainPolicyOptions& options, std::string_view text) {
  FORETUNE_TRY(options.reward, loop::gym::parse_reward_kind(text));
  return {};
}

Status set_isa(TrainPolicyOptions& options, std::string_view text) {
  const std::optional<CpuIsa> isa = parse_cpu_isa(text);
  if (!isa || *isa == CpuIsa::kGeneric) {
    return fail(ErrorCode::kInvalidArgument, "an isa is avx2 or avx512, not ", quoted(text, 40));
  }
  options.isa = *isa;
  return {};
}

Status set_seed(TrainPolicyOptions& options, std::string_view text) {
  const std::optional<std::uint64_t> value = parse_uint(text);
  if (!value) {
    return fail(ErrorCode::kInvalidArgument, quoted(text, 40), " is no whole number");
  }
  options.seed = *value;
  return {};
}

Status set_deterministic(TrainPolicyOptions& options, std::string_view text) {
  if (text != "yes" && text != "no") {
    return fail(ErrorCode::kInvalidArgument, quoted(text, 40), " is neither yes nor no");
  }
  options.is_deterministic = text == "yes";
  return {};
}

struct Option {
  std::string_view name;
  std::string_view value;
  std::string_view description;
  Setter set;
};

using T = TrainPolicyOptions;
constexpr std::array kOptions{
    Option{"trainer", "NAME", "ppo, appo, a2c, a3c, impala, dqn, apex, or LoopTune's name of one",
           &set_algorithm},
    Option{"dataset", "NAME",
           "mixed (products, convolutions, reductions and chains drawn by the seed), products, or "
           "benchmarks as foretune env --bench takes them",
           &set_text<&T::dataset>},
    Option{"test", "NAME", "benchmarks that the policy is evaluated on and never learns from",
           &set_text<&T::test>},
    Option{"tasks", "COUNT", "computations that mixed and products draw",
           &set_count<&T::tasks, 1, 100000>},
    Option{"model", "FILE", "model file to write", &set_text<&T::model>},
    Option{"folder", "DIR", "folder for evaluations, curves and checkpoints",
           &set_text<&T::folder>},
    Option{"resume", "DIR", "folder of a run to go on with", &set_text<&T::resume>},
    Option{"cache", "DIR",
           "folder of files with known times, one for each type of problem, which grow",
           &set_text<&T::cache>},
    Option{"seconds", "S", "time for learning", &set_number<&T::seconds, 0, 1000000>},
    Option{"iter", "COUNT", "rounds of playing and learning at most; 0 is no limit",
           &set_count<&T::iterations, 0, 1000000>},
    Option{"sweep", "COUNT",
           "runs that share the time, all but the first with settings drawn at random; the best "
           "writes the model. 0 is one run with the settings as they are",
           &set_count<&T::sweep, 0, 10000>},
    Option{"pause_after", "COUNT",
           "rounds after which this call ends, without a model, for --resume to go on with; 0 is "
           "never",
           &set_count<&T::pause_after, 0, 1000000>},
    Option{"steps", "COUNT", "actions of an episode", &set_count<&T::steps, 1, 64>},
    Option{"episodes", "COUNT", "episodes that an actor plays at once",
           &set_count<&T::episodes, 1, 4096>},
    Option{"actors", "COUNT", "threads that play", &set_count<&T::actors, 1, 256>},
    Option{"network", "WIDTH", "units of the network's layers", &set_count<&T::width, 1, 512>},
    Option{"batch", "COUNT", "states of one update", &set_count<&T::batch, 1, 1000000>},
    Option{"passes", "COUNT", "passes over what was played (ppo)", &set_count<&T::passes, 1, 100>},
    Option{"lr", "RATE", "learning rate at the beginning", &set_number<&T::rate, 0, 1>},
    Option{"gamma", "SHARE", "discount of a later reward", &set_number<&T::gamma, 0, 1>},
    Option{"lambda", "SHARE", "GAE's discount", &set_number<&T::lambda, 0, 1>},
    Option{"entropy", "WEIGHT", "weight of the policy's entropy at the beginning",
           &set_number<&T::entropy, 0, 10>},
    Option{"final_entropy", "WEIGHT", "and at the end", &set_number<&T::final_entropy, 0, 10>},
    Option{"imitation", "WEIGHT", "weight of imitating the best episode of each computation",
           &set_number<&T::imitation, 0, 100>},
    Option{"replay", "COUNT", "steps that dqn and apex keep", &set_count<&T::replay, 16, 10000000>},
    Option{"replays", "COUNT", "how often they learn from each", &set_count<&T::replays, 1, 1000>},
    Option{"n_step", "COUNT", "steps of a return (dqn, apex)", &set_count<&T::n_step, 1, 64>},
    Option{"reward", "NAME",
           "share (LoopTune's), log (of the speed-up), best (what the fastest so far gains)",
           &set_reward},
    Option{"price", "REWARD", "price of a measurement", &set_number<&T::price, 0, 10>},
    Option{"isa", "NAME", "avx2 or avx512; by default the best of this CPU", &set_isa},
    Option{"eval_size", "COUNT", "benchmarks of an evaluation",
           &set_count<&T::eval_size, 0, 100000>},
    Option{"eval_time", "COUNT", "measurements of each",
           &set_count<&T::eval_measurements, 1, 100000>},
    Option{"peak", "GFLOPS", "peak that counts as 100 %; 0 measures it",
           &set_number<&T::peak, 0, 1000000>},
    Option{"deterministic", "yes|no",
           "rewards by a formula instead of measurements, so that runs repeat to the bit",
           &set_deterministic},
    Option{"seed", "NUMBER", "seed of all that is random", &set_seed},
};

std::string canonical_name(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

}  // namespace

std::string_view to_string(Algorithm algorithm) {
  for (const AlgorithmName& each : kAlgorithms) {
    if (each.algorithm == algorithm) {
      return each.name;
    }
  }
  return "";
}

Result<TrainPolicyOptions> parse_policy_options(std::span<const char* const> arguments) {
  TrainPolicyOptions options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view word = arguments[i];
    if (word == "--help" || word == "-h") {
      options.wants_help = true;
      return options;
    }
    if (!word.starts_with("--")) {
      return fail(ErrorCode::kInvalidArgument, quoted(word, 40), " is no option");
    }
    word.remove_prefix(2);
    const std::size_t equals = word.find('=');
    const std::string name = canonical_name(word.substr(0, equals));
    const auto* const found = std::find_if(kOptions.begin(), kOptions.end(),
                                           [&](const Option& each) { return each.name == name; });
    if (found == kOptions.end()) {
      return fail(ErrorCode::kInvalidArgument, "there is no option --", name);
    }
    if (equals == std::string_view::npos && i + 1 >= arguments.size()) {
      return fail(ErrorCode::kInvalidArgument, "--", name, " needs a value");
    }
    const std::string_view value =
        equals == std::string_view::npos ? arguments[++i] : word.substr(equals + 1);
    if (const Status status = found->set(options, value); !status) {
      return fail_because(status.error(), "--", name);
    }
  }
  return options;
}

std::string policy_help_text() {
  std::string out =
      "usage: foretune-train-policy [--NAME VALUE]...\n\n"
      "Trains a policy that schedules loop nests, and writes it as a model.\n\n";
  for (const Option& option : kOptions) {
    const std::string left = concat("  --", option.name, " ", option.value);
    out += concat(left, std::string(left.size() < 26 ? 26 - left.size() : 1, ' '),
                  option.description, "\n");
  }
  return out;
}

}  // namespace foretune::policy_training
