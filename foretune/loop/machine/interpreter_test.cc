#include "foretune/loop/machine/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "foretune/base/text.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::NanSensitiveDoubleEq;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kNanFloat = std::numeric_limits<float>::quiet_NaN();

std::vector<double> value_of(const Result<Computation>& computation,
                             const std::vector<std::vector<float>>& inputs) {
  EXPECT_TRUE(computation.has_value()) << computation.error().message;
  return reference(*computation, Inputs(inputs.begin(), inputs.end()));
}

TEST(Reference, MultipliesMatrices) {
  const std::vector<float> a{1, 2, 3, 4, 5, 6};     // 2 x 3
  const std::vector<float> b{1, 0, 2, -1, 3, 1};    // 3 x 2
  const std::vector<float> a_t{1, 4, 2, 5, 3, 6};   // 3 x 2
  const std::vector<float> b_t{1, 2, 3, 0, -1, 1};  // 2 x 3
  const auto product = ElementsAre(14, 1, 32, 1);
  EXPECT_THAT(value_of(matmul({.m = 2, .n = 2, .k = 3}), {a, b}), product);
  EXPECT_THAT(value_of(matmul({.m = 2, .n = 2, .k = 3, .transpose_a = true}), {a_t, b}), product);
  EXPECT_THAT(value_of(matmul({.m = 2, .n = 2, .k = 3, .transpose_b = true}), {a, b_t}), product);
  EXPECT_THAT(value_of(matmul({.m = 2, .n = 2, .k = 3, .epilogue = {.bias = true, .relu = true}}),
                       {a, b, {-20, 5}}),
              ElementsAre(0, 6, 12, 6));
}

TEST(Reference, MultipliesEveryMatrixOfABatch) {
  EXPECT_THAT(value_of(matmul({.m = 1, .n = 2, .k = 1, .batch = 2}), {{2, 3}, {1, 10, 5, 7}}),
              ElementsAre(2, 20, 15, 21));
}

TEST(Reference, ReadsZerosInThePaddingOfAConvolution) {
  const ConvSizes sizes{.height = 1, .width = 3, .kernel_height = 1, .kernel_width = 3};
  EXPECT_THAT(value_of(conv2d(sizes), {{1, 2, 3}, {10, 100, 1000}}), ElementsAre(3210));
  ConvSizes padded = sizes;
  padded.kernel_height = 3;
  padded.pad = 1;
  const std::vector<float> kernel{0, 0, 0, 10, 100, 1000, 0, 0, 0};
  EXPECT_THAT(value_of(conv2d(padded), {{1, 2, 3}, kernel}), ElementsAre(2100, 3210, 320));
  padded.stride = 2;
  EXPECT_THAT(value_of(conv2d(padded), {{1, 2, 3}, kernel}), ElementsAre(2100, 320));
}

TEST(Reference, KeepsTheGroupsOfAConvolutionApart) {
  ConvSizes sizes{.channels = 2, .out_channels = 2, .height = 1, .width = 2, .groups = 2};
  EXPECT_THAT(value_of(conv2d(sizes), {{1, 2, 3, 4}, {10, 100}}), ElementsAre(10, 20, 300, 400));
  sizes.channels_last = true;
  EXPECT_THAT(value_of(conv2d(sizes), {{1, 2, 3, 4}, {10, 100}}), ElementsAre(10, 200, 30, 400));
}

TEST(Reference, Reduces) {
  const std::vector<float> in{1, -2, 3, -4, 5, -6};
  EXPECT_THAT(value_of(reduction(2, 3, Op::kAdd, false), {in}), ElementsAre(2, -5));
  EXPECT_THAT(value_of(reduction(2, 3, Op::kMax, false), {in}), ElementsAre(3, 5));
  EXPECT_THAT(value_of(reduction(2, 3, Op::kMin, true), {in}), ElementsAre(-4, -2, -6));
}

TEST(Reference, TakesStepsInTheirOrder) {
  const std::vector<Step> steps{{.op = Op::kSubtract, .constant = 3},
                                {.op = Op::kMultiply, .input = 1},
                                {.op = Op::kDivide, .constant = 4},
                                {.op = Op::kMin, .input = 2}};
  EXPECT_THAT(value_of(elementwise(1, 3, steps), {{1, 2, 9}, {2, 3, 4}, {0, 0, 1}}),
              ElementsAre(-1, -0.75, 1));
}

TEST(Reference, LeavesWhatNoPointWrites) {
  Computation computation = *elementwise(2, 2, {});
  computation.output.dimensions[0].stride = 3;
  EXPECT_THAT(value_of(computation, {{1, 2, 3, 4}}),
              ElementsAre(1, 2, NanSensitiveDoubleEq(kNan), 3, 4));
}

TEST(Reference, SumsInDoubles) {
  EXPECT_THAT(value_of(reduction(1, 3, Op::kAdd, false), {{16777216, 1, 1}}),
              ElementsAre(16777218));
}

// Sizes of the steps over one variable, outermost first.
Nest steps_over(std::initializer_list<std::int64_t> steps) {
  Nest nest;
  for (const std::int64_t step : steps) {
    nest.loops.push_back({.var = 0, .step = step});
  }
  nest.loops.push_back({.var = 1, .step = 1});
  return nest;
}

TEST(Interpret, WalksNestedRemainders) {
  const Computation computation = *reduction(23, 2, Op::kAdd, true);
  Rng rng(5);
  const auto values = whole_inputs(computation, rng);
  const Inputs inputs(values.begin(), values.end());
  const auto expected = reference(computation, inputs);
  for (const Nest& nest : {steps_over({1}), steps_over({5, 1}), steps_over({7, 3, 2, 1}),
                           steps_over({100, 16, 16, 1})}) {
    const auto got = interpret(computation, nest, inputs);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    EXPECT_EQ(*got, expected);
  }
}

TEST(Interpret, FindsWhatANestDoesNotVisit) {
  const Computation computation = *reduction(23, 2, Op::kAdd, true);
  const std::vector<float> values(46, 1);
  const Inputs inputs{values};
  const auto error_of = [&](const Nest& nest) {
    const auto got = interpret(computation, nest, inputs);
    EXPECT_FALSE(got.has_value());
    EXPECT_EQ(got.error().code, ErrorCode::kInternal);
    return got.error().message;
  };
  EXPECT_EQ(error_of(steps_over({4, 2})), "the nest does not visit 22 of 46 points");
  EXPECT_EQ(error_of(steps_over({2, 4})), "the nest does not visit 22 of 46 points");
  EXPECT_EQ(error_of(steps_over({})), "the nest does not visit 44 of 46 points");
  EXPECT_EQ(error_of(steps_over({0, 1})), "a loop moves in steps of 0 over variable 0 of 2");
  Nest other_variable = steps_over({1});
  other_variable.loops[1].var = 2;
  EXPECT_EQ(error_of(other_variable), "a loop moves in steps of 1 over variable 2 of 2");
}

TEST(Interpret, AgreesWithTheReferenceOnRandomNests) {
  constexpr std::uint64_t kSeed = 29;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  std::size_t longest = 0;
  for (int i = 0; i < 60; ++i) {
    const Computation computation = random_computation(rng);
    const Nest nest = random_nest(computation, rng, 12);
    longest = std::max(longest, nest.loops.size());
    const auto values = whole_inputs(computation, rng);
    const Inputs inputs(values.begin(), values.end());
    const auto expected = reference(computation, inputs);
    const auto got = interpret(computation, nest, inputs);
    ASSERT_TRUE(got.has_value()) << got.error().message << "\n" << tree_text(computation, nest);
    ASSERT_EQ(got->size(), expected.size());
    for (std::size_t place = 0; place < expected.size(); ++place) {
      const bool both_empty = std::isnan(expected[place]) && std::isnan((*got)[place]);
      ASSERT_TRUE(both_empty || (*got)[place] == expected[place])
          << computation.name << " place " << place << "\n"
          << tree_text(computation, nest);
    }
  }
  EXPECT_GE(longest, 8U);
}

TEST(WholeInputs, AreSmallWholeNumbersAndNoZeroDivides) {
  const Computation computation =
      *elementwise(20, 20, {{.op = Op::kAdd, .input = 1}, {.op = Op::kDivide, .input = 2}});
  Rng rng(3);
  const auto inputs = whole_inputs(computation, rng);
  ASSERT_EQ(inputs.size(), 3U);
  std::vector<int> zeros;
  for (const std::vector<float>& values : inputs) {
    EXPECT_EQ(values.size(), 400U);
    int zero = 0;
    for (const float value : values) {
      EXPECT_EQ(value, std::round(value));
      EXPECT_THAT(value, AllOf(Ge(-4.0F), Le(4.0F)));
      zero += value == 0 ? 1 : 0;
    }
    zeros.push_back(zero);
  }
  EXPECT_GT(zeros[0], 10);
  EXPECT_GT(zeros[1], 10);
  EXPECT_EQ(zeros[2], 0);
}

TEST(Difference, IsExactWithoutADivision) {
  const Computation computation = *elementwise(1, 3, {});
  const std::vector<double> expected{1, kNan, 3};
  EXPECT_EQ(difference(computation, expected, std::vector<float>{1, 7, 3}), "");
  EXPECT_EQ(difference(computation, expected, std::vector<float>{1, kNanFloat, 3}), "");
  EXPECT_EQ(difference(computation, expected, std::vector<float>{1, 7, 3.0000002F}),
            "place 2 is 3.000000238418579 instead of 3, 1 of 3 are wrong");
  EXPECT_THAT(difference(computation, expected, std::vector<float>{kNanFloat, 7, 2}),
              AllOf(HasSubstr("place 0 is nan instead of 1"), HasSubstr("2 of 3")));
  EXPECT_EQ(difference(computation, expected, std::vector<float>{1, 7}), "2 values instead of 3");
}

TEST(Difference, AllowsADivisionAFewUnitsInTheLastPlace) {
  const Computation computation = *elementwise(1, 3, {{.op = Op::kDivide, .constant = 3}});
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> expected{1.0 / 3, 1000.0 / 3, infinity};
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(difference(computation, expected, std::vector<float>{1 / 3.0F, 1000 / 3.0F, infinite}),
            "");
  EXPECT_EQ(difference(computation, expected, std::vector<float>{0.3333336F, 333.33343F, infinite}),
            "");
  EXPECT_THAT(difference(computation, expected, std::vector<float>{0.333336F, 333.3343F, infinite}),
              HasSubstr("2 of 3 are wrong"));
  EXPECT_THAT(difference(computation, expected, std::vector<float>{kNanFloat, kNanFloat, 1}),
              HasSubstr("3 of 3 are wrong"));
}

}  // namespace
}  // namespace foretune::loop
