// Tests against the libraries that tests/fake_gpu plays, which compute real products.
#include "foretune/cublaslt/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/cublaslt/matmul_data.h"

namespace foretune::cublaslt {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20U;
const cuda::Libraries kFake{.driver = FORETUNE_FAKE_GPU, .nvml = FORETUNE_FAKE_GPU};

// The device and the library that all tests share, because opening a device is slow.
struct Bench {
  std::shared_ptr<cuda::Device> device = *cuda::Device::open(kFake, 0);
  std::shared_ptr<const Library> library = *Library::open(*Api::load({FORETUNE_FAKE_GPU}));
};

Bench& bench() {
  static Bench bench;
  return bench;
}

std::unique_ptr<MatmulData> data_of(const GemmSizes& sizes) {
  auto data = MatmulData::create(bench().device, bench().library, *GemmProblem::create(sizes),
                                 kWorkspace, 5);
  EXPECT_TRUE(data) << data.error().message;
  return *std::move(data);
}

GemmSizes small(DataType dtype = DataType::kBf16, GemmLayout layout = GemmLayout::kRcr) {
  return {.m = 48, .n = 64, .k = 96, .dtype = dtype, .layout = layout};
}

CublasltConfig explicit_config() {
  return {.algorithm = 66, .tile = 18, .stages = 35, .split_k = 1, .custom = 1, .cluster = 3};
}

TEST(Api, SaysWhatItCannotLoad) {
  const auto api = Api::load({"libno-such.so.13", "libno-such.so.12"});
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(api.error().message.find("libno-such.so.13"), std::string::npos);
  EXPECT_NE(api.error().message.find("libno-such.so.12"), std::string::npos);
  EXPECT_FALSE(Api::load({}));
}

TEST(Api, TakesTheFirstThatLoads) {
  EXPECT_TRUE(Api::load({"libno-such.so.13", FORETUNE_FAKE_GPU}));
}

TEST(Matmul, RefusesTypesWithoutAProduct) {
  EXPECT_EQ(types_of(DataType::kI8).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(types_of(DataType::kF64).error().code, ErrorCode::kUnsupported);
  const GemmProblem problem = *GemmProblem::create(small());
  EXPECT_EQ(Matmul::create(bench().library, problem, {.pedantic = true}, nullptr).error().code,
            ErrorCode::kInvalidArgument);
}

TEST(Matmul, APlanIsTheConfigThatItWasMadeOf) {
  const auto data = data_of(small());
  for (CublasltConfig config : {explicit_config(),
                                CublasltConfig{.algorithm = 66,
                                               .tile = 23,
                                               .stages = 35,
                                               .split_k = 3,
                                               .reduction = 2,
                                               .swizzle = 1,
                                               .custom = 2,
                                               .cluster = 5},
                                CublasltConfig{.algorithm = 67, .tile = 11, .split_k = 1}}) {
    const auto plan = data->matmul().plan(config);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(data->matmul().config_of(*plan), config);
    EXPECT_EQ(plan->workspace_bytes > 0, config.split_k > 1);
  }
}

TEST(Matmul, SaysWhyAConfigIsRefused) {
  const auto data = data_of(small());
  CublasltConfig config = explicit_config();
  config.tile = 19;
  EXPECT_EQ(data->matmul().plan(config).error().code, ErrorCode::kUnsupported);
  config = explicit_config();
  config.algorithm = 5;
  EXPECT_EQ(data->matmul().plan(config).error().code, ErrorCode::kUnsupported);
  const auto rank = data->matmul().plan(CublasltConfig::rank(9));
  ASSERT_FALSE(rank);
  EXPECT_NE(rank.error().message.find("the heuristic returns"), std::string::npos);
}

TEST(Matmul, KeepsTheLimitOfTheWorkspace) {
  const GemmProblem problem = *GemmProblem::create(small());
  const auto matmul = *Matmul::create(bench().library, problem, {.workspace_bytes = 1000}, nullptr);
  CublasltConfig config = explicit_config();
  config.split_k = 2;
  config.reduction = 2;
  const auto plan = matmul->plan(config);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("workspace"), std::string::npos);
  const std::vector<Plan> ranks = *matmul->heuristic();
  for (const Plan& ranked : ranks) {
    EXPECT_LE(ranked.workspace_bytes, 1000U);
  }
}

TEST(Matmul, EnumeratesWhatTheLibraryAccepts) {
  const auto data = data_of(small());
  const auto found = data->matmul().enumerate({2, 4});
  ASSERT_TRUE(found) << found.error().message;
  std::set<Config> distinct;
  for (const CublasltConfig& config : *found) {
    EXPECT_TRUE(data->matmul().plan(config));
    // Reduction 1 rounds every partial sum to the result's type, which is not the requested
    // product.
    EXPECT_NE(config.reduction, 1);
    distinct.insert(config.to_config());
  }
  EXPECT_EQ(distinct.size(), found->size());
  // Algorithm 66 has 5 tiles, 4 clusters, 3 custom options, 2 swizzles, and 1 + 2 splits *
  // 2 reductions; algorithm 67 has 3 tiles, and 1 + 2 splits with one reduction.
  EXPECT_EQ(found->size(), 5U * 4 * 3 * 2 * 5 + 3U * 3);
}

using Case = std::tuple<DataType, GemmLayout, GemmOperation>;

class Products : public testing::TestWithParam<Case> {};

TEST_P(Products, AreRightAndNoticedWhenWrong) {
  const auto [dtype, layout, operation] = GetParam();
  GemmSizes sizes = small(dtype, layout);
  sizes.operation = operation;
  sizes.batch = operation == GemmOperation::kBmm ? 3 : 1;
  const auto data = data_of(sizes);
  EXPECT_FALSE(data->verify());  // still poisoned
  const auto plans = data->matmul().heuristic();
  ASSERT_TRUE(plans) << plans.error().message;
  ASSERT_FALSE(plans->empty());
  for (const Plan& plan : *plans) {
    data->poison();
    ASSERT_TRUE(data->matmul().run(plan, data->operands(0), bench().device->stream()));
    const Support right = data->verify();
    EXPECT_TRUE(right) << right.reason();
  }
  // A wrong alpha gives a wrong result: 1.25 is beyond every tolerance.
  Operands operands = data->operands(0);
  operands.alpha = 1.25;
  ASSERT_TRUE(data->matmul().run(plans->front(), operands, bench().device->stream()));
  const Support wrong = data->verify();
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.reason().find("elements are wrong"), std::string::npos);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DataType dtype : {DataType::kF32, DataType::kTf32, DataType::kF16, DataType::kBf16}) {
    for (const GemmLayout layout :
         {GemmLayout::kRcr, GemmLayout::kRrr, GemmLayout::kCrr, GemmLayout::kCcr}) {
      for (const GemmOperation operation :
           {GemmOperation::kMm, GemmOperation::kAddmm, GemmOperation::kBmm,
            GemmOperation::kAddmmRelu, GemmOperation::kAddmmGelu}) {
        all.emplace_back(dtype, layout, operation);
      }
    }
  }
  for (const GemmOperation operation : {GemmOperation::kMm, GemmOperation::kAddmm,
                                        GemmOperation::kBmm, GemmOperation::kAddmmGelu}) {
    all.emplace_back(DataType::kF8e4m3, GemmLayout::kRcr, operation);
  }
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& instance) {
  const auto& [dtype, layout, operation] = instance.param;
  return concat(to_string(dtype), "_", to_string(layout), "_", to_string(operation));
}

INSTANTIATE_TEST_SUITE_P(All, Products, testing::ValuesIn(cases()), case_name);

TEST(SmallProducts, OfOneRowColumnOrStepAreRight) {
  for (const auto& [m, n, k] :
       {std::tuple{1, 64, 64}, {64, 1, 64}, {64, 64, 1}, {1, 1, 1}, {7, 13, 31}, {127, 129, 131}}) {
    const auto data =
        data_of({.m = m, .n = n, .k = k, .dtype = DataType::kF32, .layout = GemmLayout::kRrr});
    const auto plan = data->matmul().plan(CublasltConfig::rank(1));
    ASSERT_TRUE(plan) << plan.error().message;
    ASSERT_TRUE(data->matmul().run(*plan, data->operands(0), bench().device->stream()));
    EXPECT_TRUE(data->verify()) << m << ' ' << n << ' ' << k;
  }
}

TEST(MatmulData, SetsHoldTheSameInputsElsewhere) {
  const auto data = data_of(small());
  ASSERT_TRUE(data->make_sets(4));
  ASSERT_EQ(data->sets(), 4U);
  std::set<const void*> addresses;
  for (std::size_t set = 0; set < 4; ++set) {
    addresses.insert(data->operands(set).a);
  }
  EXPECT_EQ(addresses.size(), 4U);
  EXPECT_EQ(data->operands(4).a, data->operands(0).a);
  // One product's operands are larger than the cache: two sets are enough.
  const auto large = data_of({.m = 8192, .n = 8192, .k = 8, .dtype = DataType::kBf16});
  ASSERT_TRUE(large->make_sets(100));
  EXPECT_LE(large->sets(), 3U);
}

}  // namespace
}  // namespace foretune::cublaslt
