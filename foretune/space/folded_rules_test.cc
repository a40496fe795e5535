#include "foretune/space/folded_rules.h"

#include <gtest/gtest.h>

#include "foretune/base/text.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/known_spaces.h"
#include "foretune/space/testing/folded_check.h"

namespace foretune {
namespace {

std::shared_ptr<const CompiledSpace> space_with(std::vector<Constraint> constraints) {
  return CompiledSpace::create({.schema = {.name = "x", .parameters = {{"mr", {}}, {"kc", {}}}},
                                .problem_type = kGemmProblem,
                                .domains = {},
                                .constraints = std::move(constraints),
                                .canonical = {}})
      .value();
}

std::vector<std::int64_t> fields_of(const GemmSizes& sizes) {
  const Problem problem = GemmProblem::create(sizes).value().to_problem();
  return {problem.fields().begin(), problem.fields().end()};
}

TEST(FoldedRules, EqualTheUnfoldedOnesOfEveryKnownSpace) {
  Rng rng(5);
  for (const EmbeddedText& file : known_space_texts()) {
    SCOPED_TRACE(std::string(file.name));
    const SpaceDefinition definition = known_space(file.name).value();
    const std::string arch(file.name.substr(file.name.rfind('-') + 1));
    const Hardware device = known_device(arch).value().hardware;
    FoldedFacts facts;
    for (int i = 0; i < 12; ++i) {
      const FoldedFacts some = expect_folded_is_unfolded(definition, device, rng);
      facts.illegal += some.illegal;
      facts.rules += some.rules;
    }
    EXPECT_GT(facts.illegal, 0U);
    EXPECT_GT(facts.rules, 0U);
  }
}

TEST(FoldedRules, ShareWhatIsLeftOfARule) {
  const auto space = space_with({{"mr > 4 || n <= 64", ""}, {"kc <= 32 || k % 8 == 0", ""}});
  FoldedRules rules(space, {});
  for (const std::vector<std::int32_t>& words :
       {std::vector{2, 64}, std::vector{4, 128}, std::vector{8, 64}, std::vector{8, 16}}) {
    rules.add(words);
  }
  EXPECT_EQ(rules.size(), 4U);
  EXPECT_EQ(rules.rules(), 2U);
  const std::vector<std::int64_t> fields = fields_of({.m = 8, .n = 65, .k = 16});
  FoldedRules::Outcomes outcomes;
  EXPECT_FALSE(rules.is_legal(0, fields, outcomes));
  EXPECT_FALSE(rules.is_legal(1, fields, outcomes));
  EXPECT_TRUE(rules.is_legal(2, fields, outcomes));
  EXPECT_TRUE(rules.is_legal(3, fields, outcomes));
}

TEST(FoldedRules, KnownFieldsAreFilledIn) {
  const auto space = space_with({{"k == 128 || mr == 1", ""}});
  const std::vector<std::int64_t> fields = fields_of({.m = 8, .n = 8, .k = 128});
  std::vector<std::optional<std::int64_t>> known(fields.size());
  known[static_cast<std::size_t>(GemmField::kK)] = 128;
  FoldedRules rules(space, {}, known);
  known[static_cast<std::size_t>(GemmField::kK)] = 64;
  FoldedRules others(space, {}, known);
  const std::vector<std::int32_t> words{4, 4};
  rules.add(words);
  others.add(words);
  FoldedRules::Outcomes outcomes;
  EXPECT_EQ(rules.rules() + others.rules(), 0U);
  EXPECT_TRUE(rules.is_legal(0, fields, outcomes));
  EXPECT_FALSE(others.is_legal(0, fields, outcomes));
}

TEST(FoldedRules, AConfigOfAnotherLengthIsNeverLegal) {
  FoldedRules rules(space_with({}), {});
  rules.add(std::vector<std::int32_t>{1});
  rules.add(std::vector<std::int32_t>{1, 2});
  const std::vector<std::int64_t> fields = fields_of({.m = 8, .n = 8, .k = 8});
  FoldedRules::Outcomes outcomes;
  EXPECT_FALSE(rules.is_legal(0, fields, outcomes));
  EXPECT_TRUE(rules.is_legal(1, fields, outcomes));
}

TEST(FoldedRules, MayBeMoreThanOutcomesAreKept) {
  std::vector<Constraint> constraints;
  for (int i = 0; i < 300; ++i) {
    constraints.push_back({concat("m != ", i + 1), ""});
  }
  FoldedRules rules(space_with(constraints), {});
  rules.add(std::vector<std::int32_t>{1, 1});
  EXPECT_EQ(rules.rules(), 300U);
  for (const std::int64_t m : {1, 290, 300, 301}) {
    FoldedRules::Outcomes outcomes;
    EXPECT_EQ(rules.is_legal(0, fields_of({.m = m, .n = 8, .k = 8}), outcomes), m == 301);
  }
}

}  // namespace
}  // namespace foretune
