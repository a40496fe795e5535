// Products whose B is a file of weights: right results pass whatever the weights are, and wrong
// ones do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/families/cpu_gemm/cpu_gemm.h"
#include "foretune/families/cpu_gemm/gemm_data.h"
#include "foretune/families/cpu_gemm/testing/right_output.h"
#include "foretune/hardware/cpu.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr GemmData::Limits kBySample{.full_check_flops = 0, .sampled_outputs = 200};

std::span<const std::byte> file_of(const std::vector<float>& weights) {
  return std::as_bytes(std::span(weights));
}

GemmProblem product_with(GemmSizes sizes, const std::vector<float>& weights) {
  sizes.payload = Digest::of(file_of(weights));
  return GemmProblem::create(sizes).value();
}

std::unique_ptr<GemmData> data_with(const GemmSizes& sizes, const std::vector<float>& weights,
                                    const GemmData::Limits& limits = {}) {
  auto data = GemmData::create(product_with(sizes, weights), 1, limits, file_of(weights));
  EXPECT_TRUE(data) << data.error().message;
  return std::move(*data);
}

struct WeightsKind {
  std::string name;
  std::function<float(Rng& rng, std::size_t index)> value;
};

// As trained ones are, and as nasty as floats can be.
std::vector<WeightsKind> kinds() {
  const auto scaled = [](double value, int exponent) {
    return static_cast<float>(std::ldexp(value, exponent));
  };
  return {
      {"normal", [](Rng& rng, std::size_t) { return static_cast<float>(0.02 * rng.normal()); }},
      {"positive", [](Rng& rng, std::size_t) { return static_cast<float>(1 + rng.uniform()); }},
      {"equal", [](Rng&, std::size_t) { return 0.1F; }},
      {"zero", [](Rng&, std::size_t) { return 0.0F; }},
      {"sparse",
       [](Rng& rng, std::size_t) {
         return rng.below(20) == 0 ? static_cast<float>(rng.normal()) : -0.0F;
       }},
      {"of all magnitudes",
       [=](Rng& rng, std::size_t) {
         return scaled(rng.normal(), static_cast<int>(rng.between(-120, 100)));
       }},
      {"falling", [=](Rng&, std::size_t i) { return scaled(1.5, 20 - static_cast<int>(i % 40)); }},
      {"growing", [=](Rng&, std::size_t i) { return scaled(1.5, static_cast<int>(i % 40) - 20); }},
      {"subnormal",
       [=](Rng& rng, std::size_t) {
         return scaled(rng.normal(), static_cast<int>(rng.between(-150, -126)));
       }},
      {"with one that is large",
       [](Rng& rng, std::size_t i) {
         return i % 97 == 13 ? 1e6F : static_cast<float>(0.01 * rng.normal());
       }},
  };
}

std::vector<float> weights_like(const WeightsKind& kind, const GemmSizes& sizes, Rng& rng) {
  std::vector<float> out(static_cast<std::size_t>(sizes.n * sizes.k));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = kind.value(rng, i);
  }
  return out;
}

TEST(GemmWeightsDataTest, BIsTheFileAndAllElseIsAsWithoutOne) {
  const GemmSizes sizes{.m = 3, .n = 4, .k = 2, .operation = GemmOperation::kAddmm};
  const std::vector<float> weights{1, 2, 3, 4, 5, 6, 7, 8};
  const auto data = data_with(sizes, weights);
  const auto plain = GemmData::create(GemmProblem::create(sizes).value(), 1).value();
  EXPECT_TRUE(std::equal(weights.begin(), weights.end(), data->operands().b));
  EXPECT_TRUE(std::equal(data->operands().a, data->operands().a + 6, plain->operands().a));
  EXPECT_TRUE(std::equal(data->operands().c_in, data->operands().c_in + 4, plain->operands().c_in));
  EXPECT_FALSE(std::equal(weights.begin(), weights.end(), plain->operands().b));
}

TEST(GemmWeightsDataTest, RightResultsPassWhateverTheWeights) {
  constexpr std::uint64_t kWeightsSeed = 41;
  SCOPED_TRACE(concat("seed ", kWeightsSeed));
  Rng rng(kWeightsSeed);
  const std::vector<GemmSizes> shapes{
      {.m = 1, .n = 1, .k = 1},
      {.m = 37, .n = 53, .k = 29},
      {.m = 5, .n = 70, .k = 3000, .layout = GemmLayout::kRcr},
      {.m = 33, .n = 17, .k = 400, .operation = GemmOperation::kAddmm},
      {.m = 9, .n = 20, .k = 128, .operation = GemmOperation::kBmm, .layout = GemmLayout::kCcr},
      {.m = 4, .n = 3, .k = 20000, .layout = GemmLayout::kCrr}};
  for (const WeightsKind& kind : kinds()) {
    for (const GemmSizes& sizes : shapes) {
      const std::vector<float> weights = weights_like(kind, sizes, rng);
      for (const GemmData::Limits& limits : {GemmData::Limits(), kBySample}) {
        const auto data = data_with(sizes, weights, limits);
        for (const std::int32_t kc : {16, 1024}) {
          data->poison();
          multiply(*data, kc);
          const Support right = data->verify();
          EXPECT_TRUE(right) << kind.name << ", k " << sizes.k << ": " << right.reason();
          EXPECT_LT(data->worst_relative_error(), 0.7) << kind.name << ", k " << sizes.k;
        }
      }
    }
  }
}

// One running sum of all, as far from pairwise summation as it gets.
TEST(GemmWeightsDataTest, OneLongChainOfSumsPasses) {
  Rng rng(42);
  const GemmSizes sizes{.m = 2, .n = 5, .k = 50000};
  for (const WeightsKind& kind : kinds()) {
    const std::vector<float> weights = weights_like(kind, sizes, rng);
    const auto data = data_with(sizes, weights);
    const GemmOperands operands = data->operands();
    for (std::ptrdiff_t i = 0; i < sizes.m; ++i) {
      for (std::ptrdiff_t j = 0; j < sizes.n; ++j) {
        float sum = 0;
        for (std::ptrdiff_t p = 0; p < sizes.k; ++p) {
          sum += operands.a[i * sizes.k + p] * operands.b[p * sizes.n + j];
        }
        operands.c[i * sizes.n + j] = sum;
      }
    }
    EXPECT_TRUE(data->verify()) << kind.name << ": " << data->verify().reason();
    EXPECT_LT(data->worst_relative_error(), 0.7) << kind.name;
  }
}

TEST(GemmWeightsDataTest, AMissingProductIsFound) {
  Rng rng(43);
  const GemmSizes sizes{.m = 6, .n = 10, .k = 4000, .layout = GemmLayout::kRcr};
  const std::vector<float> weights = weights_like(kinds()[0], sizes, rng);
  const auto data = data_with(sizes, weights);
  multiply(*data, 256);
  ASSERT_TRUE(data->verify());
  const GemmOperands operands = data->operands();
  int found = 0;
  int tried = 0;
  for (std::ptrdiff_t p = 0; p < sizes.k; p += 7) {
    const float product = operands.a[2 * sizes.k + p] * operands.b[3 * sizes.k + p];
    if (std::fabs(product) < 0.5F * 0.8F * 0.02F) {
      continue;  // below the average
    }
    float& element = data->output()[2 * 10 + 3];
    const float right = element;
    element -= product;
    ++tried;
    found += data->verify() ? 0 : 1;
    element = right;
  }
  EXPECT_GT(tried, 100);
  EXPECT_EQ(found, tried);
}

TEST(GemmWeightsDataTest, WrongColumnsAreFoundInDeepProducts) {
  Rng rng(44);
  const GemmSizes sizes{.m = 3, .n = 8, .k = 100000};
  for (const GemmData::Limits& limits : {GemmData::Limits(), kBySample}) {
    const std::vector<float> weights = weights_like(kinds()[0], sizes, rng);
    const auto data = data_with(sizes, weights, limits);
    multiply(*data, 256);
    ASSERT_TRUE(data->verify()) << data->verify().reason();
    std::swap(data->output()[8 + 2], data->output()[8 + 3]);
    EXPECT_FALSE(data->verify());
    std::swap(data->output()[8 + 2], data->output()[8 + 3]);
    data->output()[5] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(data->verify());
  }
}

// Every element, also where only the sign vectors look.
TEST(GemmWeightsDataTest, AnySingleWrongElementIsFound) {
  Rng rng(45);
  const GemmSizes sizes{.m = 40, .n = 200, .k = 64};
  const auto data = data_with(sizes, weights_like(kinds()[0], sizes, rng), kBySample);
  multiply(*data, 64);
  ASSERT_TRUE(data->verify());
  for (std::size_t i = 0; i < data->output().size(); i += 37) {
    float& element = data->output()[i];
    const float right = element;
    element += 0.01F * 0.02F * 4.6F;  // a hundredth of its deviation
    EXPECT_FALSE(data->verify()) << i;
    element = right;
  }
}

TEST(GemmWeightsDataTest, RefusesWhatCouldNotBeChecked) {
  const auto refusal = [](const GemmSizes& sizes, const std::vector<float>& weights) {
    const auto data =
        GemmData::create(product_with(sizes, weights), 1, GemmData::Limits(), file_of(weights));
    return data ? std::string() : data.error().message;
  };
  EXPECT_THAT(refusal({.m = 2, .n = 2, .k = 2}, {1, 2, NAN, 4}), HasSubstr("NaN"));
  EXPECT_THAT(refusal({.m = 2, .n = 2, .k = 2}, {1, 2, 3}), HasSubstr("3 values"));
  EXPECT_THAT(refusal({.m = 2, .n = 2, .k = 2}, {1, 2, 3e38F, 4}), HasSubstr("might overflow"));
  constexpr std::int64_t kDeep = (1 << 20) + 1;
  EXPECT_THAT(refusal({.m = 1, .n = 1, .k = kDeep}, std::vector<float>(kDeep, 1)),
              HasSubstr("cannot be checked"));
}

// ---- the family ---------------------------------------------------------------------------------

class CpuGemmWeightsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Family> family_with(std::vector<std::string> folders) {
    FamilyOptions options;
    options.fingerprint = cpu_fingerprint(read_cpu_facts(), CpuPeaks());
    options.fingerprint.hardware.set(HardwareValue::kCores, 2);
    options.payload_folders = std::move(folders);
    auto family = make_cpu_gemm(options);
    EXPECT_TRUE(family) << family.error().message;
    return std::move(*family);
  }
  Problem problem_with(GemmSizes sizes, const std::vector<float>& weights) {
    EXPECT_TRUE(write_file_atomically(folder_ / "w", file_of(weights)));
    return product_with(sizes, weights).to_problem();
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(CpuGemmWeightsTest, RandomConfigsOfAllLayoutsAreRight) {
  constexpr std::uint64_t kWeightsSeed = 46;
  SCOPED_TRACE(concat("seed ", kWeightsSeed));
  Rng rng(kWeightsSeed);
  const auto family = family_with({folder_.path().string()});
  int verified = 0;
  for (const WeightsKind& kind : kinds()) {
    for (int layout = 0; layout < 4; ++layout) {
      const GemmSizes sizes{.m = rng.between(1, 40),
                            .n = rng.between(1, 90),
                            .k = rng.between(1, 300),
                            .operation = static_cast<GemmOperation>(rng.below(2)),
                            .layout = static_cast<GemmLayout>(layout)};
      const Problem problem = problem_with(sizes, weights_like(kind, sizes, rng));
      const auto space = family->space(problem).value();
      const EnumerableSpace& listed = *space->enumerable();
      const auto data = family->make_data(problem, 7);
      ASSERT_TRUE(data) << data.error().message;
      for (int i = 0; i < 4; ++i) {
        const Config config = listed.unrank(rng.below(listed.count()));
        const auto run = family->prepare(problem, config).value()->bind(problem, **data);
        ASSERT_TRUE(run) << run.error().message;
        (*data)->poison();
        (*run)->run();
        const Support right = (*data)->verify();
        ASSERT_TRUE(right) << kind.name << " " << problem.text() << ": " << right.reason();
        ++verified;
      }
    }
  }
  EXPECT_EQ(verified, 160);
}

TEST_F(CpuGemmWeightsTest, MissingAndWrongWeightsAreOneSentence) {
  const std::vector<float> weights{1, 2, 3, 4, 5, 6};
  const Problem problem = problem_with({.m = 2, .n = 2, .k = 3}, weights);
  EXPECT_THAT(family_with({})->make_data(problem, 1).error().message,
              HasSubstr("no folder of payloads was named"));
  const auto family = family_with({folder_.path().string()});
  EXPECT_TRUE(family->make_data(problem, 1));
  const Problem other = product_with({.m = 2, .n = 2, .k = 2}, weights).to_problem();
  EXPECT_THAT(family->make_data(other, 1).error().message, HasSubstr((folder_ / "w").string()));
  EXPECT_TRUE(write_file_atomically(folder_ / "w", file_of({1, 2, 3, 4, 5, 7})));
  const auto changed = family->make_data(problem, 1);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(changed.error().message, HasSubstr("has another content now"));
}

// Callers bring their own operands, and no folder.
TEST_F(CpuGemmWeightsTest, KernelsNeedNoFolder) {
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(read_cpu_facts(), CpuPeaks());
  const auto family = create_cpu_gemm(options).value();
  const Problem problem = product_with({.m = 2, .n = 2, .k = 3}, {1, 2, 3, 4, 5, 6}).to_problem();
  EXPECT_TRUE(family->kernel(problem, family->default_configs(problem).at(0)));
}

}  // namespace
}  // namespace foretune
