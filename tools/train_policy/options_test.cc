#include "options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foretune::policy_training {
namespace {

Result<TrainPolicyOptions> parsed(const std::vector<const char*>& words) {
  return parse_policy_options(words);
}

TEST(TrainPolicyOptions, TakesLoopTunesWords) {
  const auto options =
      parsed({"--trainer=dqn.ApexTrainer", "--iter", "7", "--dataset", "mm64_256_16_train",
              "--steps=10", "--eval-size", "5", "--eval_time=4", "--network", "32"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->algorithm, Algorithm::kApex);
  EXPECT_EQ(options->iterations, 7U);
  EXPECT_EQ(options->dataset, "mm64_256_16_train");
  EXPECT_EQ(options->steps, 10U);
  EXPECT_EQ(options->eval_size, 5U);
  EXPECT_EQ(options->eval_measurements, 4U);
  EXPECT_EQ(options->width, 32U);
}

TEST(TrainPolicyOptions, RefusesWithTheOptionsName) {
  for (const auto& [words, wanted] : std::vector<std::pair<std::vector<const char*>, std::string>>{
           {{"--trainer", "sarsa"}, "there is no trainer 'sarsa'"},
           {{"--steps", "0"}, "--steps"},
           {{"--lr", "nan"}, "--lr"},
           {{"--reward", "gold"}, "share, log or best"},
           {{"--isa", "generic"}, "avx2 or avx512"},
           {{"--wandb_url", "x"}, "there is no option --wandb_url"},
           {{"--seconds"}, "--seconds needs a value"},
           {{"seconds"}, "is no option"}}) {
    const auto options = parsed(words);
    ASSERT_FALSE(options) << words.front();
    EXPECT_EQ(options.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(options.error().message.find(wanted), std::string::npos) << options.error().message;
  }
}

TEST(TrainPolicyOptions, TheHelpNamesEveryTrainer) {
  const std::string help = policy_help_text();
  for (const char* const name : {"ppo", "appo", "a2c", "a3c", "impala", "dqn", "apex"}) {
    EXPECT_NE(help.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace foretune::policy_training
