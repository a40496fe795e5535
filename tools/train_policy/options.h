// The options of foretune-train-policy: one struct, and one table of its keys (options.cc) from
// which both the parser and the help are made. Thread safety: plain data and free functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/gym/vector_environment.h"

namespace foretune::policy_training {

enum class Algorithm : std::uint8_t { kPpo, kAppo, kA2c, kA3c, kImpala, kDqn, kApex };

struct TrainPolicyOptions {
  Algorithm algorithm = Algorithm::kPpo;
  std::string dataset = "mixed";
  std::string test;           // another data set, to evaluate on
  std::uint32_t tasks = 256;  // that "mixed" draws
  std::filesystem::path model;
  std::filesystem::path folder;
  std::filesystem::path resume;
  std::filesystem::path cache;
  double seconds = 600;
  std::uint32_t iterations = 0;   // 0: as many as the time allows
  std::uint32_t sweep = 0;        // runs with settings drawn at random; 0: one with these
  std::uint32_t pause_after = 0;  // rounds of this call; 0: all
  std::uint32_t steps = 12;
  std::uint32_t episodes = 32;
  std::uint32_t actors = 2;
  std::uint32_t width = 64;
  std::uint32_t batch = 512;
  std::uint32_t passes = 4;
  double rate = 1e-3;
  double gamma = 0.99;
  double lambda = 0.95;
  double entropy = 0.02;
  double final_entropy = 0.002;
  double imitation = 0.2;
  std::uint32_t replay = 40000;
  std::uint32_t replays = 4;
  std::uint32_t n_step = 3;
  loop::gym::RewardKind reward = loop::gym::RewardKind::kLog;
  double price = 0;
  std::optional<CpuIsa> isa;
  std::uint32_t eval_size = 25;
  std::uint32_t eval_measurements = 10;
  double peak = 0;  // GFLOP/s; 0 measures it
  bool is_deterministic = false;
  std::uint64_t seed = 1;
  bool wants_help = false;

  [[nodiscard]] bool learns_values() const {
    return algorithm == Algorithm::kDqn || algorithm == Algorithm::kApex;
  }
};

std::string_view to_string(Algorithm algorithm);
// Takes "--name value" and "--name=value", with hyphens or underscores. Errors: kInvalidArgument
// with the option and what is wrong with it.
Result<TrainPolicyOptions> parse_policy_options(std::span<const char* const> arguments);
std::string policy_help_text();

}  // namespace foretune::policy_training
