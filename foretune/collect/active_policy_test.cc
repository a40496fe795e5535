#include "foretune/collect/active_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/text.h"

namespace foretune {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

ActivePolicy policy(std::string_view name) { return find_active_policy(name).value(); }

std::vector<std::size_t> choose(const ActivePolicy& policy, const std::vector<double>& scores,
                                const std::vector<double>& uncertainty, std::size_t count,
                                std::uint64_t seed = 1, double incumbent = 0) {
  Rng rng(seed);
  return choose_candidates(policy, {scores, uncertainty, incumbent}, count, rng);
}

TEST(ActivePolicy, EveryPolicyIsFoundByItsNameAndAnUnknownOneNamesThem) {
  std::set<std::string_view> names;
  for (const ActivePolicy& known : active_policies()) {
    EXPECT_EQ(policy(known.name).description, known.description);
    EXPECT_TRUE(names.insert(known.name).second) << known.name;
    EXPECT_LE(known.best + known.improving + known.uncertain, 1) << known.name;
  }
  const auto unknown = find_active_policy("bets");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("mixed, random, best"));
  EXPECT_FALSE(policy("random").wants_model());
  EXPECT_TRUE(policy("best").wants_model());
}

TEST(ActivePolicy, ExpectedImprovementIsThatOfTheNormalDistribution) {
  // By numerical integration of max(0, incumbent - x) over the density.
  EXPECT_NEAR(expected_improvement(0, 1, 0), 0.3989423, 1e-7);
  EXPECT_NEAR(expected_improvement(0, 1, 1), 1.0833155, 1e-7);
  EXPECT_NEAR(expected_improvement(1, 0.5, 0), 0.0042454, 1e-6);
  EXPECT_DOUBLE_EQ(expected_improvement(-2, 0, 0), 2);
  EXPECT_DOUBLE_EQ(expected_improvement(2, 0, 0), 0);
}

TEST(ActivePolicy, EachAimTakesItsOwnFirst) {
  const std::vector<double> scores{0.3, 0.1, 0.2, 0.9};
  const std::vector<double> uncertainty{0.1, 0.1, 0.1, 0.4};
  EXPECT_THAT(choose(policy("best"), scores, uncertainty, 2), ElementsAre(1, 2));
  EXPECT_THAT(choose(policy("disagreement"), scores, uncertainty, 2), ElementsAre(3, 0));
  // 0.2 above the incumbent by 0.4 uncertain is worth more than 0.1 by 0.1.
  EXPECT_THAT(choose(policy("improvement"), {0.2, 0.1, 0.5}, {0.4, 0.1, 0.1}, 2),
              ElementsAre(0, 1));
}

TEST(ActivePolicy, NothingIsChosenTwiceAndAllWhenThereAreTooFew) {
  const std::vector<double> scores{3, 1, 2};
  const std::vector<double> uncertainty{1, 2, 3};
  for (const ActivePolicy& known : active_policies()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      EXPECT_THAT(choose(known, scores, uncertainty, 7, seed), UnorderedElementsAre(0, 1, 2))
          << known.name;
    }
    EXPECT_TRUE(choose(known, {}, {}, 4).empty());
    EXPECT_TRUE(choose(known, scores, uncertainty, 0).empty());
  }
}

TEST(ActivePolicy, TheMixHoldsOverManySlots) {
  // The best predictions are the first, the most uncertain the last.
  constexpr std::size_t kCount = 4000;
  std::vector<double> scores;
  std::vector<double> uncertainty;
  for (std::size_t i = 0; i < kCount; ++i) {
    scores.push_back(static_cast<double>(i));
    uncertainty.push_back(static_cast<double>(i));
  }
  const std::vector<std::size_t> chosen = choose(policy("mixed"), scores, uncertainty, 400);
  const auto low = std::count_if(chosen.begin(), chosen.end(), [](auto i) { return i < 200; });
  const auto high =
      std::count_if(chosen.begin(), chosen.end(), [](auto i) { return i >= kCount - 100; });
  EXPECT_NEAR(static_cast<double>(low), 200, 35);
  EXPECT_NEAR(static_cast<double>(high), 100, 30);
}

TEST(ActivePolicy, ScoresThatAreNoNumberComeLast) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(choose(policy("best"), {nan, 2, 1}, {nan, 1, 1}, 2), ElementsAre(2, 1));
  EXPECT_THAT(choose(policy("improvement"), {nan, 2, 1}, {nan, 1, 1}, 2), ElementsAre(2, 1));
  EXPECT_GT(largest_improvement({std::vector<double>{nan, 2}, std::vector<double>{nan, 1}, 2}), 0);
}

TEST(ActivePolicy, TheSameGeneratorChoosesTheSame) {
  const std::vector<double> scores{5, 4, 3, 2, 1, 0};
  EXPECT_EQ(choose(policy("mixed"), scores, scores, 3, 9),
            choose(policy("mixed"), scores, scores, 3, 9));
  std::set<std::vector<std::size_t>> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    seen.insert(choose(policy("random"), scores, scores, 3, seed));
  }
  EXPECT_GT(seen.size(), 20U);
}

TEST(ActivePolicy, SharesAreEvenAndTheRemainderGoesToTheNeediest) {
  const std::vector<double> needs{0.1, 0.3, 0.2};
  const std::vector<std::size_t> room{9, 9, 9};
  EXPECT_THAT(share_out(6, needs, room, false), ElementsAre(2, 2, 2));
  EXPECT_THAT(share_out(7, needs, room, false), ElementsAre(2, 3, 2));
  EXPECT_THAT(share_out(0, needs, room, false), Each(0U));
  EXPECT_TRUE(share_out(5, {}, {}, false).empty());
}

TEST(ActivePolicy, ByNeedTheNeedierHalfGetsMoreAndNobodyNothing) {
  const std::vector<double> needs{0.1, 0.4, 0.2, 0.3};
  const std::vector<std::size_t> room{9, 9, 9, 9};
  EXPECT_THAT(share_out(10, needs, room, true), ElementsAre(1, 4, 1, 4));
  EXPECT_THAT(share_out(3, needs, room, true), ElementsAre(0, 1, 1, 1));
}

TEST(ActivePolicy, WhatHasNoRoomGoesToTheOthers) {
  const std::vector<double> needs{0.1, 0.4, 0.2, 0.3};
  EXPECT_THAT(share_out(10, needs, std::vector<std::size_t>{9, 2, 9, 0}, true),
              ElementsAre(4, 2, 4, 0));
  EXPECT_THAT(share_out(100, needs, std::vector<std::size_t>{1, 2, 3, 0}, false),
              ElementsAre(1, 2, 3, 0));
}

}  // namespace
}  // namespace foretune
