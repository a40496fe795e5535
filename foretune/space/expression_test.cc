#include "foretune/space/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/testing/refusals.h"
#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/testing/random_expression.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

// `k` hides a field of the problem, and `dtype` one with labels.
ConfigSchema tile_schema() {
  return {.name = "test",
          .version = 1,
          .kind = SchemaKind::kParametric,
          .parameters = {{"mr", {}},
                         {"pack", {"no", "yes", "128x64"}},
                         {"k", {}},
                         {"select", {}},
                         {"dtype", {"narrow", "wide"}}}};
}

const ProblemSchema& gemm_schema() { return *find_problem_schema(kGemmProblem); }

class ExpressionTest : public ::testing::Test {
 protected:
  std::int64_t value(std::string_view text) const {
    const Result<Expression> expression = Expression::parse(text, tile_schema(), gemm_schema());
    EXPECT_TRUE(expression) << text << ": " << (expression ? "" : expression.error().message);
    return expression ? expression->evaluate(words_, fields_, hardware_) : -777;
  }
  void expect_values(const std::vector<std::pair<std::string, std::int64_t>>& expected) const {
    for (const auto& [text, wanted] : expected) {
      EXPECT_EQ(value(text), wanted) << text;
    }
  }
  static std::string refusal(std::string_view text) {
    const Result<Expression> expression = Expression::parse(text, tile_schema(), gemm_schema());
    EXPECT_FALSE(expression) << text;
    return expression ? std::string() : expression.error().message;
  }

  std::vector<std::int32_t> words_{8, 1, 3, 5, 1};
  // op m n k batch dtype layout
  std::vector<std::int64_t> fields_{2, 100, 200, 300, 4, 0, 1, 0};
  Hardware hardware_;
};

TEST_F(ExpressionTest, PrecedenceAndAssociativity) {
  expect_values({{"2 + 3 * 4", 14},
                 {"(2 + 3) * 4", 20},
                 {"10 - 3 - 2", 5},
                 {"100 / 10 / 5", 2},
                 {"7 % 4 * 2", 6},
                 {"1 + 2 == 3", 1},
                 {"3 < 2 < 1", 1},  // (3 < 2) < 1
                 {"0 && 0 || 1", 1},
                 {"0 && (0 || 1)", 0},
                 {"1 || 0 && 0", 1},
                 {"-2 * 3", -6},
                 {"!2 + 1", 1},
                 {"- -5", 5},
                 {"!!7", 1},
                 {"2 - -3", 5}});
}

TEST_F(ExpressionTest, NamesLabelsFactsAndHiding) {
  hardware_.set(HardwareValue::kCores, 6);
  hardware_.set(HardwareValue::kClockMhz, 2600.9);
  expect_values({{"mr", 8},
                 {"m", 100},
                 {"problem.m", 100},
                 {"k", 3},
                 {"problem.k", 300},
                 {"pack == pack.yes", 1},
                 {"pack.128x64", 2},
                 {"op == op.bmm", 1},
                 {"dtype.wide", 1},
                 {"problem.dtype", 0},
                 {"hw.cores", 6},
                 {"hw.clock_mhz", 2600},
                 {"hw.l1_bytes", 0},
                 {"select", 5},  // a parameter of that name
                 {"select (1, 2, 3)", 2}});
}

TEST_F(ExpressionTest, DivisionRoundsDownAndByZeroIsZero) {
  expect_values({{"7 / 2", 3},
                 {"-7 / 2", -4},
                 {"7 / -2", -4},
                 {"-7 / -2", 3},
                 {"7 % 3", 1},
                 {"-7 % 3", 2},
                 {"7 % -3", -2},
                 {"5 / 0", 0},
                 {"5 % 0", 0},
                 {"ceil_div(7, 2)", 4},
                 {"ceil_div(-7, 2)", -3},
                 {"ceil_div(7, 0)", 0},
                 {"round_up(13, 8)", 16},
                 {"round_up(16, 8)", 16},
                 {"round_up(13, 0)", 0}});
}

TEST_F(ExpressionTest, ArithmeticSaturates) {
  const std::string largest = "9223372036854775807";
  const std::string smallest = "(-9223372036854775807 - 1)";
  expect_values({{largest + " + 1", kLargest},
                 {smallest, kSmallest},
                 {smallest + " - 1", kSmallest},
                 {"-" + smallest, kLargest},
                 {smallest + " / -1", kLargest},
                 {smallest + " % -1", 0},
                 {largest + " * -2", kSmallest},
                 {smallest + " * -2", kLargest},
                 {"ceil_div(" + smallest + ", -1)", kLargest},
                 {"round_up(" + largest + ", 1000)", kLargest}});
}

TEST_F(ExpressionTest, FactsThatNoIntegerHoldsSaturate) {
  hardware_.set(HardwareValue::kCores, 1e300);
  EXPECT_EQ(value("hw.cores"), kLargest);
  hardware_.set(HardwareValue::kCores, -1e300);
  EXPECT_EQ(value("hw.cores"), kSmallest);
  hardware_.set(HardwareValue::kCores, -0.5);
  EXPECT_EQ(value("hw.cores"), -1);
  hardware_.set(HardwareValue::kCores, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(value("hw.cores"), 0);
}

TEST_F(ExpressionTest, DependenciesAreKnown) {
  const auto parse = [](std::string_view text) {
    return Expression::parse(text, tile_schema(), gemm_schema()).value();
  };
  EXPECT_THAT(parse("1 + hw.cores").parameters(), testing::IsEmpty());
  EXPECT_FALSE(parse("1 + hw.cores").uses_problem());
  EXPECT_THAT(parse("pack + mr + pack").parameters(), testing::ElementsAre(0, 1));
  EXPECT_FALSE(parse("k").uses_problem());
  EXPECT_TRUE(parse("problem.k").uses_problem());
  EXPECT_FALSE(parse("op.bmm").uses_problem()) << "a label is a constant";
  EXPECT_THAT(parse("1 || dtype").parameters(), testing::ElementsAre(4));
}

TEST_F(ExpressionTest, CountsInRealNumbers) {
  hardware_.set(HardwareValue::kClockMhz, 2600.5);
  const auto real = [&](std::string_view text) {
    const auto expression =
        Expression::parse(text, tile_schema(), gemm_schema(), Arithmetic::kReal);
    EXPECT_TRUE(expression) << text << ": " << (expression ? "" : expression.error().message);
    return expression ? expression->evaluate_real(words_, fields_, hardware_) : -777;
  };
  EXPECT_EQ(real("1 / 4"), 0.25);
  EXPECT_EQ(real("m / mr"), 12.5);
  EXPECT_EQ(real("m / 0 + 7 % 0"), 0);
  EXPECT_EQ(real("(1 / 2) % (1 / 3)"), 0.5 - 1.0 / 3);
  EXPECT_EQ(real("-7 % 4"), 1);
  EXPECT_EQ(real("ceil_div(m, mr)"), 13);
  EXPECT_EQ(real("round_up(m, mr)"), 104);
  EXPECT_EQ(real("log2(mr) + log2(2)"), 4);
  EXPECT_EQ(real("log2(0) + log2(-4)"), 0);
  EXPECT_EQ(real("log2(min(m, 64)) * 2"), 12);
  EXPECT_EQ(real("hw.clock_mhz"), 2600.5);
  EXPECT_EQ(real("select(m / 3 > 33 && pack == pack.yes, 1 / 8, 2)"), 0.125);
  EXPECT_EQ(real("!(1 / 2) + (0 || 1 / 2)"), 1);
  EXPECT_THAT(refusal("log2(m)"), HasSubstr("'log2' is neither a parameter nor a field"));
  const auto two = Expression::parse("log2(m, n)", tile_schema(), gemm_schema(), Arithmetic::kReal);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, HasSubstr("log2 takes 1 argument"));
  EXPECT_FALSE(Expression::parse("m / mr", tile_schema(), gemm_schema(), Arithmetic::kReal)
                   ->uses_hardware());
  EXPECT_TRUE(Expression::parse("m / hw.cores", tile_schema(), gemm_schema(), Arithmetic::kReal)
                  ->uses_hardware());
}

TEST_F(ExpressionTest, ExplainsWithTheValuesOfItsNames) {
  hardware_.set(HardwareValue::kCores, 2);
  const Expression expression =
      Expression::parse("mr * mr <= problem.m && pack == pack.no || op != 1 || k < hw.cores",
                        tile_schema(), gemm_schema())
          .value();
  EXPECT_EQ(expression.explain(words_, fields_, hardware_),
            "mr=8 problem.m=100 pack=yes op=bmm k=3 hw.cores=2");
  words_[1] = 9;  // no label of that number
  EXPECT_THAT(expression.explain(words_, fields_, hardware_), HasSubstr("pack=9"));
  EXPECT_EQ(
      Expression::parse("1", tile_schema(), gemm_schema())->explain(words_, fields_, hardware_),
      "");
}

TEST_F(ExpressionTest, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(refusal("mr <= foo"),
            "expression 'mr <= foo', position 7: 'foo' is neither a parameter nor a field of the "
            "problem");
  testing_support::expect_refusals(
      [](std::string_view text) { return Expression::parse(text, tile_schema(), gemm_schema()); },
      {{"pakc == 1", "did you mean 'pack'?"},
       {"", "position 1: a value was expected"},
       {"1 +", "position 4: a value was expected"},
       {"1 + * 2", "position 5: a value was expected"},
       {"(1 + 2", "position 7: ')' or an operator was expected"},
       {"1 2", "position 3: an operator or the end was expected"},
       {"1)", "position 2"},
       {"min(1)", "',' was expected; min takes 2 arguments"},
       {"min(1, 2, 3)", "')' was expected; min takes 2 arguments"},
       {"min(1", "',' was expected"},
       {"pack.maybe", "'maybe' is not a label of pack: no, yes, 128x64"},
       {"mr.x", "not a label of mr, which has none"},
       {"hw.speed", "'speed' is not a hardware value"},
       {"hw.", "not a hardware value"},
       {"problem.q", "'q' is not a field of the problem"},
       {"foo.bar", "'foo' is neither"},
       {"9223372036854775808", "the number is too large"},
       {"a = 1", "'a' is neither"},
       {"mr = 1", "position 4: an operator or the end"},
       {"mr & 1", "position 4"},
       {"1.5", "position 2"},
       {"mr\n< 1", "expression 'mr?< 1', position 3"},
       {std::string("mr\0", 3), "position 3"}});
}

TEST_F(ExpressionTest, NestingAndLengthHaveLimits) {
  const auto nested = [](int levels, const std::string& open, const std::string& close) {
    std::string text = "1";
    for (int i = 0; i < levels; ++i) {
      text = concat(open, text, close);
    }
    return text;
  };
  EXPECT_EQ(value(nested(64, "(", ")")), 1);
  EXPECT_THAT(refusal(nested(65, "(", ")")), HasSubstr("more than 64 levels"));
  EXPECT_EQ(value(nested(64, "!", "")), 1);
  EXPECT_THAT(refusal(nested(65, "-", "")), HasSubstr("more than 64 levels"));
  EXPECT_EQ(value(nested(64, "min(2,", ")")), 1);
  EXPECT_THAT(refusal(nested(65, "max(2,", ")")), HasSubstr("more than 64 levels"));
  // This needs as many intermediate values as the limits allow: three operators and a call per
  // level.
  EXPECT_EQ(value(nested(64, "mr != mr - mr * min(mr, ", ")")), 1);
  EXPECT_EQ(value(nested(64, "mr && 0 || mr == mr + 0 * max(mr, ", ")")), 1);

  std::string sum = "1";
  while (sum.size() + 2 <= 4096) {
    sum += "+1";
  }
  EXPECT_EQ(value(sum), static_cast<std::int64_t>(sum.size() + 1) / 2);
  EXPECT_THAT(refusal(sum + "+ 1"), HasSubstr("over the limit of 4096"));
  std::string words = "mr";
  while (words.size() + 4 <= 4096) {
    words += "||mr";
  }
  EXPECT_EQ(value(words), 1);
}

// Draws values at the edges of the range, and a few ordinary ones.
std::int64_t random_field(Rng& rng) {
  return rng.below(3) == 0 ? static_cast<std::int64_t>(rng.next())
                           : static_cast<std::int64_t>(rng.below(300));
}

TEST_F(ExpressionTest, RandomExpressionsEqualTheTreeWalk) {
  std::size_t nonzero = 0;
  std::size_t total = 0;
  for (std::uint64_t seed = 1; seed <= 12000; ++seed) {
    Rng rng(seed);
    const ConfigSchema config = tile_schema();
    const RandomExpression tree = RandomExpression::draw(
        config, gemm_schema(), config.parameters.size(), static_cast<int>(rng.below(7)), rng);
    const std::string text = tree.text(rng);
    if (text.size() > 4096) {
      continue;
    }
    const Result<Expression> compiled = Expression::parse(text, config, gemm_schema());
    ASSERT_TRUE(compiled) << "seed " << seed << ": " << compiled.error().message;
    for (int trial = 0; trial < 6; ++trial) {
      for (std::int32_t& word : words_) {
        word = rng.below(4) == 0 ? static_cast<std::int32_t>(rng.next())
                                 : static_cast<std::int32_t>(rng.below(4));
      }
      for (std::int64_t& field : fields_) {
        field = random_field(rng);
      }
      for (std::size_t i = 0; i < kHardwareValueCount; ++i) {
        hardware_.set(static_cast<HardwareValue>(i), rng.uniform() * 1e4);
      }
      const std::int64_t expected = tree.evaluate({words_, fields_, hardware_});
      ASSERT_EQ(compiled->evaluate(words_, fields_, hardware_), expected)
          << "seed " << seed << ": " << text;
      nonzero += expected != 0 ? 1 : 0;
      ++total;
    }
  }
  // The drawn expressions must not be trivial.
  EXPECT_GT(nonzero, total / 5);
  EXPECT_LT(nonzero, total * 4 / 5);
}

TEST_F(ExpressionTest, RandomTextNeverCrashesTheParser) {
  static constexpr auto kPieces = std::to_array<std::string_view>(
      {"mr",     "pack", "pack.yes", "hw.cores", "problem.m", "k", "(",  ")",  ",",        "min",
       "select", "+",    "-",        "*",        "/",         "%", "&&", "||", "==",       "!",
       "<=",     "0",    "17",       " ",        ".",         "=", "&",  "\t", "round_up("});
  std::size_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    Rng rng(seed);
    std::string text;
    const std::uint64_t pieces = 1 + rng.below(10);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      text += kPieces[rng.below(kPieces.size())];
    }
    const Result<Expression> expression = Expression::parse(text, tile_schema(), gemm_schema());
    if (expression) {
      static_cast<void>(expression->evaluate(words_, fields_, hardware_));
      ++accepted;
    } else {
      ASSERT_EQ(expression.error().code, ErrorCode::kInvalidArgument) << text;
      ASSERT_THAT(expression.error().message, HasSubstr("position")) << text;
    }
  }
  EXPECT_GT(accepted, 100U);
}

}  // namespace
}  // namespace foretune
