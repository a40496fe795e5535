#include "foretune/loop/machine/expected_outputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/loop/machine/testing/loop_samples.h"

namespace foretune::loop {
namespace {

constexpr std::uint64_t kSeed = 20261123;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A computation with operands and the results of its reduction before any step.
struct Sample {
  explicit Sample(Computation with_steps, std::uint64_t seed = 1)
      : computation(std::move(with_steps)) {
    Rng rng(seed);
    values = whole_inputs(computation, rng);
    inputs.assign(values.begin(), values.end());
    Computation reduction = computation;
    reduction.steps.clear();
    for (const double sum : reference(reduction, inputs)) {
      sums.push_back(static_cast<float>(sum));
    }
  }

  [[nodiscard]] bool is_right() const { return has_right_sums(computation, inputs, sums); }

  // Returns true when the check passes with one of the sums changed.
  [[nodiscard]] bool passes_with(std::size_t place, float value) {
    const float right = sums[place];
    sums[place] = value;
    const bool passes = is_right();
    sums[place] = right;
    return passes;
  }

  Computation computation;
  std::vector<std::vector<float>> values;
  Inputs inputs;
  std::vector<float> sums;
};

bool is_sum_of_products(const Computation& computation) {
  return computation.has_reduction() && computation.combined == 2 &&
         computation.combine == Op::kMultiply && computation.reduce == Op::kAdd;
}

TEST(RightSums, AreRightAndEverySingleWrongOneIsFound) {
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(concat("seed ", kSeed + seed));
    Rng rng(kSeed + seed);
    Sample sample(random_computation(rng), kSeed + seed);
    if (!is_sum_of_products(sample.computation)) {
      EXPECT_FALSE(sample.is_right());
      continue;
    }
    if (!sample.is_right()) {
      continue;  // no variable that only one input moves with
    }
    ++checked;
    for (int i = 0; i < 10; ++i) {
      const std::size_t place = rng.below(sample.sums.size());
      const float right = sample.sums[place];
      if (std::isnan(right)) {
        EXPECT_TRUE(sample.passes_with(place, 7)) << "nothing is computed there";
        continue;
      }
      for (const float wrong : {right + 1, right - 1, right + 0.5F, -right - 1, right + 0x1p23F,
                                1e30F, kNan, std::numeric_limits<float>::infinity()}) {
        ASSERT_FALSE(sample.passes_with(place, wrong))
            << sample.computation.name << ": " << wrong << " for " << right << " at " << place;
      }
    }
  }
  EXPECT_GT(checked, 75);
}

// Random signs would let these errors cancel half of the time.
TEST(RightSums, ErrorsThatAddUpToNothingAreFound) {
  Sample sample(*matmul({.m = 30, .n = 50, .k = 20}));
  ASSERT_TRUE(sample.is_right());
  Rng rng(kSeed);
  for (int i = 0; i < 1000; ++i) {
    const std::vector<float> right = sample.sums;
    const std::size_t row = 50 * rng.below(30);
    const std::size_t first = rng.below(50);
    const std::size_t second = (first + 1 + rng.below(49)) % 50;
    const auto error = static_cast<float>(rng.between(1, 100));
    sample.sums[row + first] += error;
    sample.sums[row + second] -= error;
    ASSERT_FALSE(sample.is_right()) << first << " and " << second << " of a row, by " << error;
    sample.sums = right;
  }
}

TEST(RightSums, TakeWholeInputs) {
  Sample sample(*matmul({.m = 3, .n = 4, .k = 5}));
  ASSERT_TRUE(sample.is_right());
  sample.values[1][7] += 0.25F;
  EXPECT_FALSE(sample.is_right());
}

class ExpectedOutputs : public testing::Test {
 protected:
  void SetUp() override {
    if (best_cpu_isa() < CpuIsa::kAvx2) {
      GTEST_SKIP() << "this CPU runs no AVX2";
    }
  }

  static void expect_reference(const Computation& computation) {
    Rng rng(2);
    const std::vector<std::vector<float>> values = whole_inputs(computation, rng);
    const Inputs inputs(values.begin(), values.end());
    const Jit jit(VectorUnit::of(CpuIsa::kAvx2));
    const std::vector<double> expected = reference(computation, inputs);
    const std::vector<double> got = expected_outputs(computation, inputs, jit);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t place = 0; place < got.size(); ++place) {
      ASSERT_TRUE(got[place] == expected[place] ||
                  (std::isnan(got[place]) && std::isnan(expected[place])))
          << computation.name << " place " << place;
    }
  }
};

TEST_F(ExpectedOutputs, AreTheReferencesAlsoWhereTheyAreCompiled) {
  expect_reference(*matmul({.m = 20, .n = 30, .k = 40, .epilogue = {.bias = true}}));
  expect_reference(*matmul({.m = 130,
                            .n = 110,
                            .k = 90,
                            .transpose_b = true,
                            .epilogue = {.bias = true, .relu = true}}));
  expect_reference(*conv2d({.batch = 2,
                            .channels = 24,
                            .out_channels = 40,
                            .height = 17,
                            .width = 21,
                            .kernel_height = 3,
                            .kernel_width = 3,
                            .pad = 1,
                            .groups = 2,
                            .epilogue = {.relu = true}}));
  expect_reference(*reduction(1100, 1000, Op::kMax, false));
}

TEST_F(ExpectedOutputs, EverySingleWrongSumOfALargeProductIsFound) {
  Rng rng(kSeed);
  const Computation computation = *matmul({.m = 512, .n = 512, .k = 512});
  const auto values = whole_inputs(computation, rng);
  const Inputs inputs(values.begin(), values.end());
  const std::vector<double> expected =
      expected_outputs(computation, inputs, Jit(VectorUnit::of(CpuIsa::kAvx2)));
  std::vector<float> sums(expected.begin(), expected.end());
  ASSERT_TRUE(has_right_sums(computation, inputs, sums));
  for (int i = 0; i < 300; ++i) {
    float& sum = sums[rng.below(sums.size())];
    const float right = sum;
    sum += static_cast<float>(rng.between(1, 16) * (i % 2 == 0 ? 1 : -1));
    ASSERT_FALSE(has_right_sums(computation, inputs, sums)) << sum << " for " << right;
    sum = right;
  }
}

}  // namespace
}  // namespace foretune::loop
