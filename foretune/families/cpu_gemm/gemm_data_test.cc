#include "foretune/families/cpu_gemm/gemm_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "foretune/families/cpu_gemm/gemm_reference.h"
#include "foretune/families/cpu_gemm/testing/right_output.h"

namespace foretune {
namespace {

constexpr GemmData::Limits kSampled{.full_check_flops = 0, .sampled_outputs = 200};

GemmProblem typed_problem(const GemmSizes& sizes) {
  const auto problem = GemmProblem::create(sizes);
  EXPECT_TRUE(problem);
  return *problem;
}

std::unique_ptr<GemmData> data_of(const GemmSizes& sizes, const GemmData::Limits& limits = {}) {
  auto data = GemmData::create(typed_problem(sizes), 1, limits);
  EXPECT_TRUE(data);
  return std::move(*data);
}

TEST(GemmReferenceTest, AgreesWithTheTripleLoop) {
  Rng rng(5);
  for (int trial = 0; trial < 200; ++trial) {
    const auto rows = static_cast<std::ptrdiff_t>(rng.between(1, 11));
    const auto columns = static_cast<std::ptrdiff_t>(rng.between(1, 600));
    const auto k = static_cast<std::ptrdiff_t>(rng.between(1, 20));
    std::vector<float> a(static_cast<std::size_t>(rows * k));
    std::vector<float> b(static_cast<std::size_t>(k * columns));
    for (auto* values : {&a, &b}) {
      for (float& value : *values) {
        value = static_cast<float>(rng.between(-8, 8));
      }
    }
    std::vector<double> out(static_cast<std::size_t>(rows * columns), -1);
    reference_product(a.data(), k, b.data(), columns, rows, columns, k, out.data());
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
      for (std::ptrdiff_t j = 0; j < columns; ++j) {
        // Products and sums of small integers are exact in every order.
        double sum = 0;
        for (std::ptrdiff_t p = 0; p < k; ++p) {
          sum += static_cast<double>(a[static_cast<std::size_t>(i * k + p)]) *
                 static_cast<double>(b[static_cast<std::size_t>(p * columns + j)]);
        }
        ASSERT_EQ(out[static_cast<std::size_t>(i * columns + j)], sum);
      }
    }
  }
}

TEST(GemmDataTest, InputsAreUniformAndFollowTheSeed) {
  const GemmSizes sizes{.m = 300, .n = 200, .k = 100};
  const auto one = data_of(sizes);
  const auto same = data_of(sizes);
  auto other = GemmData::create(typed_problem(sizes), 2);
  ASSERT_TRUE(other);
  const std::size_t count = 300 * 100;
  const std::span<const float> a(one->operands().a, count);
  EXPECT_TRUE(std::equal(a.begin(), a.end(), same->operands().a));
  EXPECT_FALSE(std::equal(a.begin(), a.end(), (*other)->operands().a));
  double sum = 0;
  double squares = 0;
  for (const float value : a) {
    ASSERT_GE(value, -1.0F);
    ASSERT_LT(value, 1.0F);
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(sum / count, 0, 0.02);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.02);
  EXPECT_EQ(one->bytes(), 4 * (300 * 100 + 100 * 200 + 300 * 200));
}

struct Check {
  GemmSizes sizes;
  GemmData::Limits limits;
};

std::vector<Check> checks() {
  const std::vector<GemmSizes> shapes{
      {.m = 1, .n = 1, .k = 1},
      {.m = 37, .n = 53, .k = 29},
      {.m = 1, .n = 300, .k = 700},
      {.m = 300, .n = 1, .k = 700},
      {.m = 40, .n = 24, .k = 1},
      {.m = 20, .n = 30, .k = 5000},
      {.m = 33, .n = 17, .k = 40, .operation = GemmOperation::kAddmm},
      {.m = 12, .n = 19, .k = 23, .batch = 5, .operation = GemmOperation::kBmm},
      {.m = 35, .n = 47, .k = 29, .layout = GemmLayout::kRcr},
      {.m = 35, .n = 47, .k = 29, .operation = GemmOperation::kAddmm, .layout = GemmLayout::kCrr},
      {.m = 14,
       .n = 19,
       .k = 23,
       .batch = 3,
       .operation = GemmOperation::kBmm,
       .layout = GemmLayout::kCcr}};
  std::vector<Check> out;
  for (const GemmSizes& sizes : shapes) {
    out.push_back({sizes, {}});
    out.push_back({sizes, {.kept_reference_elements = 0}});
    out.push_back({sizes, kSampled});
  }
  return out;
}

TEST(GemmDataTest, RightResultsPassWithALargeMargin) {
  for (const auto& [sizes, limits] : checks()) {
    const auto data = data_of(sizes, limits);
    EXPECT_FALSE(data->verify()) << "a poisoned output passed";
    multiply(*data);
    for (int again = 0; again < 2; ++again) {
      const Support right = data->verify();
      EXPECT_TRUE(right) << right.reason();
      EXPECT_LT(data->worst_relative_error(), 0.5) << "m " << sizes.m << " k " << sizes.k;
    }
  }
}

// Changes single elements in every mode: the check by sign vectors alone finds them too.
TEST(GemmDataTest, AnySingleWrongElementIsFound) {
  for (const auto& [sizes, limits] : checks()) {
    const auto data = data_of(sizes, limits);
    multiply(*data);
    ASSERT_TRUE(data->verify());
    const std::size_t step = std::max<std::size_t>(1, data->output().size() / 60);
    for (std::size_t i = 0; i < data->output().size(); i += step) {
      float& element = data->output()[i];
      const float right = element;
      const float magnitude = std::sqrt(static_cast<float>(sizes.k)) / 3;
      for (const float wrong :
           {right + 0.1F * magnitude, -right - 1.0F, 1e30F, std::numeric_limits<float>::quiet_NaN(),
            std::numeric_limits<float>::infinity()}) {
        element = wrong;
        const Support found = data->verify();
        ASSERT_FALSE(found) << "element " << i << " of m " << sizes.m << " n " << sizes.n << " k "
                            << sizes.k << ": " << wrong << " for " << right;
        ASSERT_FALSE(found.reason().empty());
      }
      element = right;
    }
    EXPECT_TRUE(data->verify());
  }
}

// Tests the bound that the header states for elements that are not compared one by one.
TEST(GemmDataTest, ASingleErrorOfTwiceTheBoundOfItsRowIsFoundAnywhere) {
  const auto data = data_of({.m = 64, .n = 512, .k = 300}, kSampled);
  multiply(*data);
  ASSERT_TRUE(data->verify());
  const float bound = 3.6e-7F * 300 * std::sqrt(512.0F);
  constexpr float kSpread = 1.2F;  // room for norms of a row and of B above their mean
  Rng rng(9);
  for (int i = 0; i < 300; ++i) {
    float& element = data->output()[rng.below(data->output().size())];
    const float right = element;
    element += 2 * kSpread * (i % 2 == 0 ? bound : -bound);
    ASSERT_FALSE(data->verify()) << element << " for " << right;
    element = right;
  }
}

TEST(GemmDataTest, MissingTilesRowsAndTermsAreFound) {
  for (const GemmData::Limits& limits : {GemmData::Limits(), kSampled}) {
    const auto data = data_of({.m = 60, .n = 90, .k = 64}, limits);
    const std::ptrdiff_t n = 90;
    multiply(*data);
    ASSERT_TRUE(data->verify());
    const std::vector<float> right(data->output().begin(), data->output().end());
    const auto restore = [&] { std::copy(right.begin(), right.end(), data->output().begin()); };

    for (std::ptrdiff_t j = 80; j < 88; ++j) {
      data->output()[static_cast<std::size_t>(57 * n + j)] = 0;
    }
    EXPECT_FALSE(data->verify()) << "a tile that was never computed";
    restore();

    std::swap_ranges(data->output().begin() + 10 * n, data->output().begin() + 11 * n,
                     data->output().begin() + 20 * n);
    EXPECT_FALSE(data->verify()) << "two rows exchanged";
    restore();

    // Leaves the last step of the depth out of one tile.
    const GemmOperands operands = data->operands();
    for (std::ptrdiff_t i = 4; i < 8; ++i) {
      for (std::ptrdiff_t j = 8; j < 16; ++j) {
        data->output()[static_cast<std::size_t>(i * n + j)] -=
            operands.a[i * operands.a_stride + 63] * operands.b[63 * operands.b_stride + j];
      }
    }
    EXPECT_FALSE(data->verify()) << "a product missing in each sum of a tile";
    restore();

    data->poison();
    EXPECT_FALSE(data->verify()) << "nothing computed at all";
    restore();
    EXPECT_TRUE(data->verify());
  }
}

TEST(GemmDataTest, AMissingBiasIsFound) {
  for (const GemmData::Limits& limits : {GemmData::Limits(), kSampled}) {
    const auto data =
        data_of({.m = 20, .n = 30, .k = 40, .operation = GemmOperation::kAddmm}, limits);
    multiply(*data);
    ASSERT_TRUE(data->verify());
    GemmOperands operands = data->operands();
    operands.beta = 0;
    auto gemm = BlockedGemm::create({.m = 20, .n = 30, .k = 40},
                                    {.isa = CpuIsa::kGeneric, .mr = 4, .nr = 8}, nullptr);
    ASSERT_TRUE(gemm);
    gemm->run(operands, {});
    EXPECT_FALSE(data->verify());
  }
}

// The result of a plain loop over the operands of each type passes; a change by one unit of an
// integer, or by 2^-8 in f32, does not.
TEST(GemmDataTest, JudgesOtherTypes) {
  for (const GemmData::Limits& limits : {GemmData::Limits(), kSampled}) {
    for (const GemmOperation operation :
         {GemmOperation::kMm, GemmOperation::kAddmm, GemmOperation::kAddmmRelu}) {
      const GemmSizes sizes{.m = 13, .n = 21, .k = 34, .operation = operation};
      GemmSizes bf16 = sizes;
      bf16.dtype = DataType::kBf16;
      const auto data = data_of(bf16, limits);
      const Bf16GemmOperands operands = data->bf16_operands();
      const auto value = [](Bf16 element) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(element.bits) << 16U);
      };
      for (std::ptrdiff_t i = 0; i < 13; ++i) {
        for (std::ptrdiff_t j = 0; j < 21; ++j) {
          float sum = operation == GemmOperation::kMm ? 0.0F : operands.c_in[j];
          for (std::ptrdiff_t p = 0; p < 34; ++p) {
            sum += value(operands.a[i * 34 + p]) * value(operands.b[p * 21 + j]);
          }
          operands.c[i * 21 + j] = std::max(sum, operands.floor);
        }
      }
      EXPECT_TRUE(data->verify()) << data->verify().reason();
      data->output()[150] += 0x1p-8F;
      EXPECT_FALSE(data->verify());
    }
    const auto data = data_of({.m = 13,
                               .n = 21,
                               .k = 34,
                               .operation = GemmOperation::kAddmm,
                               .dtype = DataType::kI8,
                               .layout = GemmLayout::kRcr},
                              limits);
    const I8GemmOperands operands = data->i8_operands();
    for (std::ptrdiff_t i = 0; i < 13; ++i) {
      for (std::ptrdiff_t j = 0; j < 21; ++j) {
        std::int32_t sum = operands.c_in[j];
        for (std::ptrdiff_t p = 0; p < 34; ++p) {
          sum += operands.a[i * 34 + p] * operands.b[j * 34 + p];
        }
        operands.c[i * 21 + j] = sum;
      }
    }
    EXPECT_TRUE(data->verify()) << data->verify().reason();
    ++operands.c[150];
    EXPECT_FALSE(data->verify());
  }
}

TEST(GemmDataTest, RefusesOtherTypes) {
  EXPECT_FALSE(
      GemmData::create(typed_problem({.m = 4, .n = 4, .k = 4, .dtype = DataType::kF64}), 1));
  constexpr std::int64_t kHuge = 2147483647;
  EXPECT_FALSE(GemmData::create(typed_problem({.m = kHuge, .n = kHuge, .k = kHuge}), 1));
}

}  // namespace
}  // namespace foretune
