#include "foretune/space/listed_space.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

ConfigSchema listed_schema() {
  return {.name = "listed-test", .parameters = {{"tile", {}}, {"split", {}}}};
}

Config listed_config(std::int32_t tile, std::int32_t split) {
  return {.schema = listed_schema().id(), .words = {tile, split}};
}

std::shared_ptr<const CompiledSpace> rules() {
  SpaceDefinition definition;
  definition.problem_type = kGemmProblem;
  definition.schema = listed_schema();
  definition.domains = {{8, 16, 32, 64}, {1, 2, 4}};
  definition.constraints = {{"split <= 1 || k >= 16 * split", "the parts are too short"}};
  return *CompiledSpace::create(definition);
}

ListedSpace space(std::string unlisted, std::int64_t k = 64) {
  return {listed_schema(),
          {listed_config(8, 1), listed_config(8, 4), listed_config(16, 1), listed_config(64, 1)},
          rules(),
          GemmProblem::create({.m = 8, .n = 8, .k = k})->to_problem(),
          Hardware(),
          std::move(unlisted)};
}

TEST(ListedSpace, ListsItsConfigsInOrder) {
  const ListedSpace listed = space("");
  ASSERT_EQ(listed.enumerable()->count(), 4U);
  EXPECT_EQ(listed.enumerable()->unrank(1), listed_config(8, 4));
  EXPECT_EQ(listed.enumerable()->unrank(3), listed_config(64, 1));
}

TEST(ListedSpace, TakesLegalConfigsThatAreNotListed) {
  EXPECT_TRUE(space("").why_not(listed_config(32, 2)));
  const Support refused = space("", 16).why_not(listed_config(32, 2));
  EXPECT_FALSE(refused);
  EXPECT_NE(refused.reason().find("the parts are too short"), std::string::npos);
}

TEST(ListedSpace, RefusesThemWhereItIsTold) {
  const ListedSpace listed = space("not recorded");
  EXPECT_TRUE(listed.why_not(listed_config(8, 4)));
  EXPECT_EQ(listed.why_not(listed_config(32, 2)).reason(), "not recorded");
  // The rule is the better reason.
  EXPECT_NE(space("not recorded", 16).why_not(listed_config(32, 2)).reason(), "not recorded");
}

TEST(ListedSpace, DrawsEveryConfig) {
  const ListedSpace listed = space("");
  Rng rng(1);
  std::set<Config> drawn;
  for (int i = 0; i < 200; ++i) {
    drawn.insert(*listed.sample(rng));
  }
  EXPECT_EQ(drawn.size(), 4U);
}

TEST(ListedSpace, AnEmptyListHasNothingToDraw) {
  const ListedSpace empty(listed_schema(), {}, nullptr,
                          GemmProblem::create({.m = 8, .n = 8, .k = 8})->to_problem(), Hardware(),
                          "nothing is recorded");
  Rng rng(1);
  EXPECT_EQ(empty.sample(rng).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(empty.count(), 0U);
}

TEST(ListedSpace, NeighboursAreTheNearestListedOnEitherSide) {
  const ListedSpace listed = space("");
  const std::vector<Config> expected{listed_config(8, 1), listed_config(64, 1)};
  EXPECT_EQ(listed.neighbours(listed_config(16, 1)), expected);
  const std::vector<Config> of_corner{listed_config(16, 1), listed_config(8, 4)};
  EXPECT_EQ(listed.neighbours(listed_config(8, 1)), of_corner);
}

}  // namespace
}  // namespace foretune
