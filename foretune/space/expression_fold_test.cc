#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/expression.h"
#include "foretune/space/testing/random_expression.h"

namespace foretune {
namespace {

// `k` hides a field of the problem.
ConfigSchema fold_schema() {
  return {.name = "test",
          .version = 1,
          .kind = SchemaKind::kParametric,
          .parameters = {{"mr", {}}, {"pack", {"no", "yes"}}, {"k", {}}}};
}

const ProblemSchema& gemm() { return *find_problem_schema(kGemmProblem); }

class ExpressionFoldTest : public ::testing::Test {
 protected:
  Expression parse(const std::string& text) const {
    return Expression::parse(text, fold_schema(), gemm()).value();
  }
  Expression fold(const std::string& text) const {
    return parse(text).fold({.words = words_, .fields = known_, .hardware = hardware_});
  }

  std::vector<std::int32_t> words_{8, 1, 3};
  std::vector<std::optional<std::int64_t>> known_;
  Hardware hardware_;
};

TEST_F(ExpressionFoldTest, WhatTheConfigDecidesIsAConstant) {
  hardware_.set(HardwareValue::kCores, 4.5);
  for (const auto& [text, value] : std::vector<std::pair<std::string, std::int64_t>>{
           {"mr * k", 24},
           {"pack == pack.yes || n > 3", 1},
           {"pack == pack.no && n > 3", 0},
           {"n > 3 || pack", 1},
           {"n > 3 && pack == pack.no", 0},
           {"select(pack == pack.yes, hw.cores, n)", 4},
           {"-(mr) + !pack", -8},
           {"select(pack && mr > 4, 2, m) * select(k == 3, 3, m)", 6}}) {
    const Expression folded = fold(text);
    EXPECT_EQ(folded.constant(), value) << text;
    EXPECT_FALSE(folded.uses_problem());
  }
}

TEST_F(ExpressionFoldTest, TheRestIsAsShortAsIfItHadBeenWrittenSo) {
  for (const auto& [text, rest] : std::vector<std::pair<std::string, std::string>>{
           {"pack == pack.no || n <= mr * 16", "n <= 128"},
           {"n <= mr * 16 && pack == pack.yes", "n <= 128"},
           {"pack == pack.yes && n", "n != 0 && 1"},
           {"(mr == 8) == (n == 5)", "(n == 5) == 1"},
           {"mr * k >= m * n", "m * n <= 24"},
           {"mr - (m + n)", "8 - (m + n)"},
           {"select(pack == pack.no, m / 0, select(n > 1, mr, m)) > 2",
            "select(n > 1, 8, m) > 2"}}) {
    const Expression expected = parse(rest);
    const Expression folded = fold(text);
    EXPECT_TRUE(folded.uses_problem()) << text;
    EXPECT_TRUE(folded.parameters().empty());
    if (text != "pack == pack.yes && n") {  // has no text of its own: the truth of n
      EXPECT_TRUE(folded.has_code_of(expected)) << text;
    }
    for (const std::int64_t n : {0, 1, 5, 128, 129}) {
      const std::vector<std::int64_t> fields{0, 7, n, 9, 1, 0, 0, 0};
      EXPECT_EQ(folded.evaluate({}, fields, {}), expected.evaluate(words_, fields, {})) << text;
    }
  }
}

TEST_F(ExpressionFoldTest, RandomExpressionsKeepTheirValues) {
  std::size_t constants = 0;
  std::size_t others = 0;
  for (std::uint64_t seed = 1; seed <= 12000; ++seed) {
    Rng rng(seed);
    const ConfigSchema config = fold_schema();
    const RandomExpression tree = RandomExpression::draw(config, gemm(), config.parameters.size(),
                                                         static_cast<int>(rng.below(7)), rng);
    const std::string text = tree.text(rng);
    if (text.size() > 4096) {
      continue;
    }
    for (std::int32_t& word : words_) {
      word = static_cast<std::int32_t>(rng.below(rng.below(2) == 0 ? 2 : 300));
    }
    for (std::size_t i = 0; i < kHardwareValueCount; ++i) {
      hardware_.set(static_cast<HardwareValue>(i), rng.uniform() * 1e4);
    }
    known_.clear();
    for (std::size_t i = 0; i < gemm().fields.size() && seed % 2 == 0; ++i) {
      known_.push_back(rng.below(3) == 0 ? std::optional<std::int64_t>(rng.below(4))
                                         : std::nullopt);
    }
    const Expression whole = parse(text);
    const Expression folded = fold(text);
    ++(folded.constant() ? constants : others);
    for (int trial = 0; trial < 6; ++trial) {
      std::vector<std::int64_t> fields;
      for (std::size_t i = 0; i < gemm().fields.size(); ++i) {
        fields.push_back(i < known_.size() && known_[i] ? *known_[i]
                         : rng.below(3) == 0            ? static_cast<std::int64_t>(rng.next())
                                             : static_cast<std::int64_t>(rng.below(300)));
      }
      ASSERT_EQ(folded.evaluate({}, fields, {}), whole.evaluate(words_, fields, hardware_))
          << "seed " << seed << ": " << text;
      ASSERT_EQ(folded.evaluate({}, fields, {}), tree.evaluate({words_, fields, hardware_}));
    }
  }
  EXPECT_GT(constants, 1000U);
  EXPECT_GT(others, 1000U);
}

}  // namespace
}  // namespace foretune
