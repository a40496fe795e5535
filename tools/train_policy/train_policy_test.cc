// Runs foretune-train-policy with rewards by a formula: what repeats, what goes on after a pause,
// and that every trainer becomes better than chance.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/model/model_file.h"
#include "foretune/model/policy/policy_body.h"

namespace foretune {
namespace {

struct Ran {
  int code = -1;
  std::string output;
  // The numbers behind "share" in its lines.
  [[nodiscard]] std::vector<double> shares() const {
    std::vector<double> out;
    for (const std::string_view line : split(output, '\n')) {
      const std::vector<std::string_view> words = split_words(line);
      for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        if (words[i] == "share") {
          out.push_back(parse_double(words[i + 1]).value_or(0));
        }
      }
    }
    return out;
  }
};

Ran train(const std::string& arguments) {
  Ran ran;
  const std::string command = concat(FORETUNE_TRAIN_POLICY, " --deterministic yes --episodes 16 ",
                                     "--network 16 --batch 128 --tasks 12 ", arguments, " 2>&1");
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return ran;
  }
  std::array<char, 512> buffer{};
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) {
    ran.output += buffer.data();
  }
  const int status = ::pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

class TrainPolicyTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) /
        concat("train_policy_", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  static PolicyNetwork policy(const std::string& file) {
    const auto model = read_model(file);
    EXPECT_TRUE(model) << (model ? "" : model.error().message);
    return model ? policy_of(*model)->policy : PolicyNetwork();
  }

  std::filesystem::path folder_;
};

TEST_F(TrainPolicyTest, OneActorGivesTheSameModelTwice) {
  for (const char* const trainer : {"ppo", "impala", "dqn"}) {
    const std::string options = concat("--actors 1 --iter 6 --trainer ", trainer, " --model ");
    const Ran first = train(options + path("a.ftm"));
    ASSERT_EQ(first.code, 0) << first.output;
    const Ran second = train(options + path("b.ftm"));
    ASSERT_EQ(second.code, 0) << second.output;
    EXPECT_EQ(*read_file(path("a.ftm")), *read_file(path("b.ftm"))) << trainer;
    const Ran other = train(concat(options, path("c.ftm"), " --seed 2"));
    ASSERT_EQ(other.code, 0);
    EXPECT_NE(policy(path("a.ftm")), policy(path("c.ftm"))) << trainer;
  }
}

TEST_F(TrainPolicyTest, APausedRunGoesOnToTheSamePolicy) {
  const std::string options = concat("--actors 1 --iter 6 --model ", path("a.ftm"));
  const Ran whole = train(options);
  ASSERT_EQ(whole.code, 0) << whole.output;
  const PolicyNetwork wanted = policy(path("a.ftm"));
  std::filesystem::remove(path("a.ftm"));
  const Ran paused = train(concat(options, " --pause_after 2 --folder ", path("run")));
  ASSERT_EQ(paused.code, 0) << paused.output;
  EXPECT_FALSE(std::filesystem::exists(path("a.ftm")));
  const Ran resumed = train(concat(options, " --resume ", path("run")));
  ASSERT_EQ(resumed.code, 0) << resumed.output;
  EXPECT_EQ(policy(path("a.ftm")), wanted);
}

TEST_F(TrainPolicyTest, ACheckpointOfOtherOptionsIsRefusedInOneSentence) {
  ASSERT_EQ(train(concat("--iter 6 --pause_after 1 --folder ", path("run"))).code, 0);
  const Ran other = train(concat("--iter 6 --steps 9 --resume ", path("run")));
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.output.find("is of a run with other options"), std::string::npos) << other.output;
}

TEST_F(TrainPolicyTest, ASweepKeepsTheBestOfItsRuns) {
  const Ran ran = train(
      concat("--actors 1 --iter 3 --sweep 3 --model ", path("a.ftm"), " --folder ", path("sweep")));
  ASSERT_EQ(ran.code, 0) << ran.output;
  const std::string table = *read_text_file(path("sweep") + "/sweep.csv");
  const std::vector<std::string_view> rows = split(trim(table), '\n');
  ASSERT_EQ(rows.size(), 4U) << table;
  EXPECT_NE(split(rows[1], ',')[1], split(rows[2], ',')[1]) << table;
  const auto share_of = [&](std::size_t row) {
    return *parse_double(split(rows[row], ',').back());
  };
  std::size_t best = 1;
  for (std::size_t row = 2; row < rows.size(); ++row) {
    best = share_of(row) > share_of(best) ? row : best;
  }
  EXPECT_EQ(concat(policy(path("a.ftm")).width()), split(rows[best], ',')[6]) << table;
  EXPECT_TRUE(std::filesystem::exists(path("sweep") + "/run-2/policy.checkpoint"));
  EXPECT_FALSE(std::filesystem::exists(path("a.ftm.0")));
  EXPECT_FALSE(std::filesystem::exists(path("a.ftm.2")));
  const Ran refused = train("--sweep 2");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.output.find("a sweep needs --model"), std::string::npos) << refused.output;
}

TEST_F(TrainPolicyTest, EveryTrainerBecomesBetterThanChance) {
  for (const char* const trainer : {"ppo", "appo", "a2c", "a3c", "impala", "dqn", "apex"}) {
    // Trainers with one pass over a round are given more rounds.
    const bool is_slow = std::string_view(trainer) != "ppo";
    const Ran ran =
        train(concat("--actors 1 --seconds 40 --entropy 0.005 --lr 0.003 --trainer ", trainer,
                     " --iter ", is_slow ? 40 : 20, " --model ", path("model.ftm")));
    ASSERT_EQ(ran.code, 0) << trainer << ": " << ran.output;
    const std::vector<double> shares = ran.shares();
    ASSERT_GE(shares.size(), 2U) << ran.output;
    EXPECT_GT(shares.back(), 1.2 * shares.front()) << trainer << ": " << ran.output;
  }
}

}  // namespace
}  // namespace foretune
