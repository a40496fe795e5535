#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/testing/damaged_text.h"
#include "foretune/base/testing/refusals.h"
#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

SpaceDefinition definition() {
  return {
      .schema = {.name = "cpu-gemm",
                 .version = 2,
                 .kind = SchemaKind::kParametric,
                 .parameters = {{"mr", {}}, {"order", {"nkm", "mkn"}}, {"mc", {}}}},
      .problem_type = kGemmProblem,
      .domains = {{-1, 4, 8}, {0, 1}, {64, 128}},
      .constraints = {{"mr  <=\tm", "the block is # higher (\"quoted\", 100 %) than C: \xc3\xa4"},
                      {" mc % mr == 0 ", ""},
                      {"hw.cores >= 0", "  blanks at both ends  "}},
      .canonical = {{"mc", "min(mc, round_up(m, mr))"}, {"order", " order"}}};
}

std::string refusal(SpaceDefinition bad) {
  const auto compiled = CompiledSpace::create(std::move(bad));
  EXPECT_FALSE(compiled);
  return compiled ? std::string() : compiled.error().message;
}

// An edit that makes definition() illegal, and a part of the sentence that says why.
struct BadEdit {
  void (*edit)(SpaceDefinition& bad);
  std::string_view reason;
};

void expect_edits_refused(const std::vector<BadEdit>& edits) {
  for (const auto& [edit, reason] : edits) {
    SpaceDefinition bad = definition();
    edit(bad);
    EXPECT_THAT(refusal(bad), HasSubstr(std::string(reason)));
  }
}

TEST(DefinitionText, IsReadable) {
  SpaceDefinition plain = definition();
  plain.constraints = {{"mr <= m", "the block is higher than C"}};
  plain.canonical.pop_back();
  EXPECT_EQ(plain.text(),
            "space cpu-gemm 2 gemm\n"
            "parameter mr [] -1 4 8\n"
            "parameter order [nkm mkn] 0 1\n"
            "parameter mc [] 64 128\n"
            "constraint mr <= m # the block is higher than C\n"
            "canonical mc min(mc, round_up(m, mr))\n");
}

TEST(DefinitionText, RoundTripsToTheByte) {
  ASSERT_TRUE(CompiledSpace::create(definition()));
  EXPECT_EQ(SpaceDefinition::parse(definition().text()).value(), definition());
  SpaceDefinition without_domains = definition();
  without_domains.domains.clear();
  ASSERT_TRUE(CompiledSpace::create(without_domains));
  EXPECT_EQ(SpaceDefinition::parse(without_domains.text()).value(), without_domains);
}

TEST(DefinitionText, ReasonsMayHoldEveryPrintableCharacter) {
  SpaceDefinition all = definition();
  all.constraints[0].reason.clear();
  for (char c = 0x20; c < 0x7f; ++c) {
    all.constraints[0].reason.push_back(c);
  }
  ASSERT_TRUE(CompiledSpace::create(all));
  EXPECT_EQ(SpaceDefinition::parse(all.text()).value(), all);
}

TEST(DefinitionText, WhatCannotBeWrittenIsRefusedAtOnce) {
  expect_edits_refused({
      {[](SpaceDefinition& bad) { bad.constraints[0].reason = "two\nlines"; }, "no text form"},
      {[](SpaceDefinition& bad) {
         bad.constraints[0].reason = "harmless\nconstraint 0 # smuggled";
       },
       "no text form"},
      {[](SpaceDefinition& bad) { bad.schema.name = "two words"; }, "no text form"},
      {[](SpaceDefinition& bad) { bad.schema.name = ""; }, "no text form"},
      {[](SpaceDefinition& bad) {
         bad.schema.parameters[0].labels = {"a]b"};
         bad.domains[0] = {0};
       },
       "no text form"},
      {[](SpaceDefinition& bad) {
         bad.schema.parameters[2].name = "m c";
         bad.constraints.pop_back();
       },
       ""},
      {[](SpaceDefinition& bad) { bad.constraints.assign(13000, {"1", ""}); },
       "at most 12289 statements"},
  });
}

TEST(DefinitionText, HostileTextIsRefusedWithAReason) {
  testing_support::expect_refusals(
      SpaceDefinition::parse,
      {{"", "empty"},
       {"\n \n", "empty"},
       {"parameter a [] 1\n", "begins with one 'space' line"},
       {"space x 1 gemm\nspace x 1 gemm\n", "one 'space' line"},
       {"space x gemm\n", "name, version and problem type"},
       {"space x -1 gemm\n", "name, version"},
       {"space x 4294967296 gemm\n", "name, version"},
       {"space x 1 fft\n", "'fft' problems"},
       {"space x 1 gemm\nfoo\n", "statement 2 of the space: 'foo'"},
       {"space x 1 gemm\nparameter a 1 2\n", "name, [labels] and values"},
       {"space x 1 gemm\nparameter a ]1[\n", "name, [labels] and values"},
       {"space x 1 gemm\nparameter [] 1\n", "not a new parameter name"},
       {"space x 1 gemm\nparameter a [] 1\nparameter a [] 1\n", "'a' is not a new parameter name"},
       {"space x 1 gemm\nparameter a [] 1.5\n", "'1.5'"},
       {"space x 1 gemm\nparameter a [] 2147483648\n", "'2147483648'"},
       {"space x 1 gemm\nparameter a [] 1\nparameter b []\n",
        "some parameters of the space have values and some have none"},
       {"space x 1 gemm\nconstraint a < 1\n", "a reason"},
       {"space x 1 gemm\ncanonical a\n", "a parameter and an expression"},
       {std::string((1U << 20U) + 1, ' '), "over the limit"},
       {"space x 1 gemm\n\x1b[2J\n", "'?[2J'"}});
}

TEST(DefinitionText, MutatedTextNeverCrashesAndWhatCompilesRoundTrips) {
  const std::string original = definition().text();
  std::size_t compiled_count = 0;
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    Rng rng(seed);
    const std::string text = testing_support::damaged_text(original, rng);
    const Result<SpaceDefinition> parsed = SpaceDefinition::parse(text);
    if (!parsed) {
      continue;
    }
    const auto compiled = CompiledSpace::create(*parsed);
    if (compiled) {
      ++compiled_count;
      ASSERT_EQ(SpaceDefinition::parse((*compiled)->definition().text()).value(), *parsed)
          << "seed " << seed;
    }
  }
  EXPECT_GT(compiled_count, 100U);
}

TEST(CompiledSpace, RefusesDefinitionsThatMakeNoSense) {
  EXPECT_THAT(refusal({}), HasSubstr("1 to 4096 parameters, not 0"));
  for (const std::vector<std::int32_t>& domain :
       {std::vector<std::int32_t>{}, std::vector<std::int32_t>{2, 1},
        std::vector<std::int32_t>{1, 1}}) {
    SpaceDefinition bad = definition();
    bad.domains[0] = domain;
    EXPECT_THAT(refusal(bad), HasSubstr("the values of mr are not an ascending list"));
  }
  expect_edits_refused({
      {[](SpaceDefinition& bad) { bad.schema.kind = SchemaKind::kSequence; }, "parametric schema"},
      {[](SpaceDefinition& bad) { bad.domains.pop_back(); }, "3 parameters but 2 domains"},
      {[](SpaceDefinition& bad) { bad.domains[1] = {0, 2}; },
       "order has 2 labels, but values from 0 to 2"},
      {[](SpaceDefinition& bad) { bad.schema.parameters[1].labels = {"same", "same"}; },
       "has a label twice"},
      {[](SpaceDefinition& bad) { bad.schema.parameters[0].name = "hw"; }, "cannot be called 'hw'"},
      {[](SpaceDefinition& bad) { bad.schema.parameters[1].name = "mr"; }, "the same name"},
      {[](SpaceDefinition& bad) { bad.constraints[1].expression = "mr <"; },
       "constraint 2 of cpu-gemm: expression 'mr <', position 5"},
      {[](SpaceDefinition& bad) { bad.canonical[0].first = "nc"; }, "'nc' is not a parameter"},
      {[](SpaceDefinition& bad) { bad.canonical[0].second = "q"; },
       "canonical rule for mc: expression 'q', position 1"},
      {[](SpaceDefinition& bad) { bad.problem_type = ProblemType{5}; }, "problem type unknown"},
  });
}

}  // namespace
}  // namespace foretune
