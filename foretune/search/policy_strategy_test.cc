// The strategy that follows a policy, with a proposer of a test's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "foretune/families/null/null_layers.h"
#include "foretune/model/proposer.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/search/strategy.h"

namespace foretune {
namespace {

// Proposes given configs, some of them again and again.
class ListProposer final : public ConfigProposer {
 public:
  explicit ListProposer(std::vector<Config> configs) : configs_(std::move(configs)) {}
  std::vector<Config> propose(std::size_t count, Rng& /*rng*/) override {
    ++calls_;
    std::vector<Config> out = configs_;
    out.resize(std::min(out.size(), count));
    return out;
  }
  [[nodiscard]] int calls() const { return calls_; }

 private:
  std::vector<Config> configs_;
  int calls_ = 0;
};

class PolicyStrategyTest : public testing::Test {
 protected:
  PolicyStrategyTest()
      : problem_(GemmProblem::create({.m = 64, .n = 512, .k = 64})->to_problem()),
        space_(problem_) {
    Rng rng(5);
    while (configs_.size() < 5) {
      Config config = *space_.sample(rng);
      if (std::find(configs_.begin(), configs_.end(), config) == configs_.end()) {
        configs_.push_back(std::move(config));
      }
    }
  }

  Problem problem_;
  NullLayersSpace space_;
  std::vector<Config> configs_;
};

TEST_F(PolicyStrategyTest, ProposalsComeFirstAndThenTheNeighboursOfTheFastest) {
  ListProposer proposer(configs_);
  auto strategy = create_strategy("policy", problem_, space_, {.proposer = &proposer});
  ASSERT_TRUE(strategy) << strategy.error().message;
  Rng rng(1);
  std::vector<Config> asked;
  std::set<Config> distinct;
  for (int i = 0; i < 12; ++i) {
    const std::vector<Config> next = (*strategy)->ask(1, rng);
    ASSERT_EQ(next.size(), 1U) << i;
    asked.push_back(next.front());
    EXPECT_TRUE(distinct.insert(next.front()).second);
    EXPECT_TRUE(space_.why_not(next.front()));
    const Trial trial{.config = next.front(), .value = i == 2 ? 1.0 : 5.0 + i};
    (*strategy)->tell(std::span(&trial, 1));
  }
  EXPECT_TRUE(std::equal(configs_.begin(), configs_.end(), asked.begin()));
  // Nothing was faster than the third one.
  const std::vector<Config> near = space_.neighbours(configs_[2]);
  for (std::size_t i = configs_.size(); i < asked.size(); ++i) {
    EXPECT_NE(std::find(near.begin(), near.end(), asked[i]), near.end()) << i;
  }
}

TEST_F(PolicyStrategyTest, AProposerWithNothingEndsTheSearch) {
  ListProposer proposer({});
  auto strategy = create_strategy("policy", problem_, space_, {.proposer = &proposer});
  ASSERT_TRUE(strategy);
  Rng rng(1);
  EXPECT_TRUE((*strategy)->ask(4, rng).empty());
  EXPECT_GT(proposer.calls(), 0);
}

TEST_F(PolicyStrategyTest, WithoutAProposerItIsRefused) {
  const auto strategy = create_strategy("policy", problem_, space_, {});
  ASSERT_FALSE(strategy);
  EXPECT_EQ(strategy.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretune
