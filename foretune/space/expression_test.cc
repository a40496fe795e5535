#include "foretune/space/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/testing/random_expression.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

// `k` hides a field of the problem, and `dtype` one with labels.
ConfigSchema schema() {
  return {.name = "test",
          .version = 1,
          .kind = SchemaKind::kParametric,
          .parameters = {{"mr", {}},
                         {"pack", {"no", "yes", "128x64"}},
                         {"k", {}},
                         {"select", {}},
                         {"dtype", {"narrow", "wide"}}}};
}

const ProblemSchema& gemm() { return *find_problem_schema(kGemmProblem); }

class ExpressionTest : public ::testing::Test {
 protected:
  std::int64_t value(std::string_view text) const {
    const Result<Expression> expression = Expression::parse(text, schema(), gemm());
    EXPECT_TRUE(expression) << text << ": " << (expression ? "" : expression.error().message);
    return expression ? expression->evaluate(words_, fields_, hardware_) : -777;
  }
  static std::string refusal(std::string_view text) {
    const Result<Expression> expression = Expression::parse(text, schema(), gemm());
    EXPECT_FALSE(expression) << text;
    return expression ? std::string() : expression.error().message;
  }

  std::vector<std::int32_t> words_{8, 1, 3, 5, 1};
  // op m n k batch dtype layout
  std::vector<std::int64_t> fields_{2, 100, 200, 300, 4, 0, 1, 0};
  Hardware hardware_;
};

TEST_F(ExpressionTest, PrecedenceAndAssociativity) {
  EXPECT_EQ(value("2 + 3 * 4"), 14);
  EXPECT_EQ(value("(2 + 3) * 4"), 20);
  EXPECT_EQ(value("10 - 3 - 2"), 5);
  EXPECT_EQ(value("100 / 10 / 5"), 2);
  EXPECT_EQ(value("7 % 4 * 2"), 6);
  EXPECT_EQ(value("1 + 2 == 3"), 1);
  EXPECT_EQ(value("3 < 2 < 1"), 1);  // (3 < 2) < 1
  EXPECT_EQ(value("0 && 0 || 1"), 1);
  EXPECT_EQ(value("0 && (0 || 1)"), 0);
  EXPECT_EQ(value("1 || 0 && 0"), 1);
  EXPECT_EQ(value("-2 * 3"), -6);
  EXPECT_EQ(value("!2 + 1"), 1);
  EXPECT_EQ(value("- -5"), 5);
  EXPECT_EQ(value("!!7"), 1);
  EXPECT_EQ(value("2 - -3"), 5);
}

TEST_F(ExpressionTest, NamesLabelsFactsAndHiding) {
  hardware_.set(HardwareValue::kCores, 6);
  hardware_.set(HardwareValue::kClockMhz, 2600.9);
  EXPECT_EQ(value("mr"), 8);
  EXPECT_EQ(value("m"), 100);
  EXPECT_EQ(value("problem.m"), 100);
  EXPECT_EQ(value("k"), 3);
  EXPECT_EQ(value("problem.k"), 300);
  EXPECT_EQ(value("pack == pack.yes"), 1);
  EXPECT_EQ(value("pack.128x64"), 2);
  EXPECT_EQ(value("op == op.bmm"), 1);
  EXPECT_EQ(value("dtype.wide"), 1);
  EXPECT_EQ(value("problem.dtype"), 0);
  EXPECT_EQ(value("hw.cores"), 6);
  EXPECT_EQ(value("hw.clock_mhz"), 2600);
  EXPECT_EQ(value("hw.l1_bytes"), 0);
  EXPECT_EQ(value("select"), 5);  // a parameter of that name
  EXPECT_EQ(value("select (1, 2, 3)"), 2);
}

TEST_F(ExpressionTest, DivisionRoundsDownAndByZeroIsZero) {
  EXPECT_EQ(value("7 / 2"), 3);
  EXPECT_EQ(value("-7 / 2"), -4);
  EXPECT_EQ(value("7 / -2"), -4);
  EXPECT_EQ(value("-7 / -2"), 3);
  EXPECT_EQ(value("7 % 3"), 1);
  EXPECT_EQ(value("-7 % 3"), 2);
  EXPECT_EQ(value("7 % -3"), -2);
  EXPECT_EQ(value("5 / 0"), 0);
  EXPECT_EQ(value("5 % 0"), 0);
  EXPECT_EQ(value("ceil_div(7, 2)"), 4);
  EXPECT_EQ(value("ceil_div(-7, 2)"), -3);
  EXPECT_EQ(value("ceil_div(7, 0)"), 0);
  EXPECT_EQ(value("round_up(13, 8)"), 16);
  EXPECT_EQ(value("round_up(16, 8)"), 16);
  EXPECT_EQ(value("round_up(13, 0)"), 0);
}

TEST_F(ExpressionTest, ArithmeticSaturates) {
  const std::string largest = "9223372036854775807";
  const std::string smallest = "(-9223372036854775807 - 1)";
  EXPECT_EQ(value(largest + " + 1"), kLargest);
  EXPECT_EQ(value(smallest), kSmallest);
  EXPECT_EQ(value(smallest + " - 1"), kSmallest);
  EXPECT_EQ(value("-" + smallest), kLargest);
  EXPECT_EQ(value(smallest + " / -1"), kLargest);
  EXPECT_EQ(value(smallest + " % -1"), 0);
  EXPECT_EQ(value(largest + " * -2"), kSmallest);
  EXPECT_EQ(value(smallest + " * -2"), kLargest);
  EXPECT_EQ(value("ceil_div(" + smallest + ", -1)"), kLargest);
  EXPECT_EQ(value("round_up(" + largest + ", 1000)"), kLargest);
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
    return Expression::parse(text, schema(), gemm()).value();
  };
  EXPECT_EQ(parse("1 + hw.cores").last_parameter(), -1);
  EXPECT_FALSE(parse("1 + hw.cores").uses_problem());
  EXPECT_EQ(parse("mr + pack").last_parameter(), 1);
  EXPECT_FALSE(parse("k").uses_problem());
  EXPECT_TRUE(parse("problem.k").uses_problem());
  EXPECT_FALSE(parse("op.bmm").uses_problem()) << "a label is a constant";
  EXPECT_EQ(parse("1 || dtype").last_parameter(), 4);
}

TEST_F(ExpressionTest, CountsInRealNumbers) {
  hardware_.set(HardwareValue::kClockMhz, 2600.5);
  const auto real = [&](std::string_view text) {
    const auto expression = Expression::parse(text, schema(), gemm(), Arithmetic::kReal);
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
  const auto two = Expression::parse("log2(m, n)", schema(), gemm(), Arithmetic::kReal);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, HasSubstr("log2 takes 1 argument"));
  EXPECT_FALSE(Expression::parse("m / mr", schema(), gemm(), Arithmetic::kReal)->uses_hardware());
  EXPECT_TRUE(
      Expression::parse("m / hw.cores", schema(), gemm(), Arithmetic::kReal)->uses_hardware());
}

TEST_F(ExpressionTest, ExplainsWithTheValuesOfItsNames) {
  hardware_.set(HardwareValue::kCores, 2);
  const Expression expression =
      Expression::parse("mr * mr <= problem.m && pack == pack.no || op != 1 || k < hw.cores",
                        schema(), gemm())
          .value();
  EXPECT_EQ(expression.explain(words_, fields_, hardware_),
            "mr=8 problem.m=100 pack=yes op=bmm k=3 hw.cores=2");
  words_[1] = 9;  // no label of that number
  EXPECT_THAT(expression.explain(words_, fields_, hardware_), HasSubstr("pack=9"));
  EXPECT_EQ(Expression::parse("1", schema(), gemm())->explain(words_, fields_, hardware_), "");
}

TEST_F(ExpressionTest, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(refusal("mr <= foo"),
            "expression 'mr <= foo', position 7: 'foo' is neither a parameter nor a field of the "
            "problem");
  EXPECT_THAT(refusal("pakc == 1"), HasSubstr("did you mean 'pack'?"));
  EXPECT_THAT(refusal(""), HasSubstr("position 1: a value was expected"));
  EXPECT_THAT(refusal("1 +"), HasSubstr("position 4: a value was expected"));
  EXPECT_THAT(refusal("1 + * 2"), HasSubstr("position 5: a value was expected"));
  EXPECT_THAT(refusal("(1 + 2"), HasSubstr("position 7: ')' or an operator was expected"));
  EXPECT_THAT(refusal("1 2"), HasSubstr("position 3: an operator or the end was expected"));
  EXPECT_THAT(refusal("1)"), HasSubstr("position 2"));
  EXPECT_THAT(refusal("min(1)"), HasSubstr("',' was expected; min takes 2 arguments"));
  EXPECT_THAT(refusal("min(1, 2, 3)"), HasSubstr("')' was expected; min takes 2 arguments"));
  EXPECT_THAT(refusal("min(1"), HasSubstr("',' was expected"));
  EXPECT_THAT(refusal("pack.maybe"), HasSubstr("'maybe' is not a label of pack: no, yes, 128x64"));
  EXPECT_THAT(refusal("mr.x"), HasSubstr("not a label of mr, which has none"));
  EXPECT_THAT(refusal("hw.speed"), HasSubstr("'speed' is not a hardware value"));
  EXPECT_THAT(refusal("hw."), HasSubstr("not a hardware value"));
  EXPECT_THAT(refusal("problem.q"), HasSubstr("'q' is not a field of the problem"));
  EXPECT_THAT(refusal("foo.bar"), HasSubstr("'foo' is neither"));
  EXPECT_THAT(refusal("9223372036854775808"), HasSubstr("the number is too large"));
  EXPECT_THAT(refusal("a = 1"), HasSubstr("'a' is neither"));
  EXPECT_THAT(refusal("mr = 1"), HasSubstr("position 4: an operator or the end"));
  EXPECT_THAT(refusal("mr & 1"), HasSubstr("position 4"));
  EXPECT_THAT(refusal("1.5"), HasSubstr("position 2"));
  EXPECT_THAT(refusal("mr\n< 1"), HasSubstr("expression 'mr?< 1', position 3"));
  EXPECT_THAT(refusal(std::string("mr\0", 3)), HasSubstr("position 3"));
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
    const ConfigSchema config = schema();
    const RandomExpression tree = RandomExpression::draw(config, gemm(), config.parameters.size(),
                                                         static_cast<int>(rng.below(7)), rng);
    const std::string text = tree.text(rng);
    if (text.size() > 4096) {
      continue;
    }
    const Result<Expression> compiled = Expression::parse(text, config, gemm());
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
    const Result<Expression> expression = Expression::parse(text, schema(), gemm());
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
