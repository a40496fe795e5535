// The features of Diode's models against values computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/features/testing/foreign_row.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/schemas/triton.h"

namespace foretune {
namespace {

using testing::DoubleEq;
using testing::Pointwise;

Problem product(DataType dtype) {
  return GemmProblem::create({.m = 2000, .n = 500, .k = 4000, .dtype = dtype}).value().to_problem();
}

std::vector<double> row_of(const char* table, const Problem& problem, const Config& config) {
  std::vector<double> row(find_feature_table(table).value()->columns().size());
  foreign_row(**find_feature_table(table), problem, Hardware(), config, row);
  return row;
}

const Config kTile{.schema = 1, .words = {128, 64, 32, 8, 3, 4}};

TEST(DiodeFeatures, V1ByHand) {
  // 8e6 + 2e6 + 1e6 elements.
  EXPECT_THAT(row_of("gemm-diode-v1", product(DataType::kF16), kTile),
              Pointwise(DoubleEq(), std::vector<double>{16, 2000, 500, 4000, 0.022, 8, 8 / 0.022,
                                                        32, 128, 64, 3, 4}));
  // The bits are the true ones.
  EXPECT_EQ(row_of("gemm-diode-v1", product(DataType::kBf16), kTile)[0], 16);
  EXPECT_EQ(row_of("gemm-diode-v1", product(DataType::kF32), kTile)[0], 32);
  EXPECT_EQ(row_of("gemm-diode-v1", product(DataType::kF8e4m3), kTile)[0], 8);
}

TEST(DiodeFeatures, All36ByHand) {
  const std::vector<double> expected{2000,
                                     500,
                                     4000,
                                     1,
                                     16,
                                     0.022,
                                     8,
                                     8 / 0.022,
                                     4,
                                     0.5,
                                     0.125,
                                     1e6,
                                     8e6,
                                     2e6,
                                     4e9,
                                     std::log(2000),
                                     std::log(500),
                                     128,
                                     64,
                                     32,
                                     8,
                                     3,
                                     4,
                                     0,
                                     0,
                                     0,
                                     8192,
                                     4096,
                                     2048,
                                     262144,
                                     128,
                                     32,
                                     16,
                                     std::log(128),
                                     std::log(64),
                                     std::log(32)};
  EXPECT_THAT(row_of("gemm-diode", product(DataType::kF16), kTile),
              Pointwise(DoubleEq(), expected));
}

// Diode's mistake: only f16 has 16 bits, and the bytes follow.
TEST(DiodeFeatures, OtherTypesCountAs32Bits) {
  for (const DataType dtype : {DataType::kBf16, DataType::kF8e5m2, DataType::kI8, DataType::kF32}) {
    const auto row = row_of("gemm-diode", product(dtype), kTile);
    EXPECT_EQ(row[4], 32);
    EXPECT_DOUBLE_EQ(row[5], 0.044);
    EXPECT_DOUBLE_EQ(row[7], 8 / 0.044);
  }
}

TEST(DiodeFeatures, BatchIsInNoSum) {
  const Problem batched = GemmProblem::create({.m = 2000,
                                               .n = 500,
                                               .k = 4000,
                                               .batch = 7,
                                               .operation = GemmOperation::kBmm,
                                               .dtype = DataType::kF16})
                              .value()
                              .to_problem();
  EXPECT_EQ(row_of("gemm-diode-v1", batched, kTile),
            row_of("gemm-diode-v1", product(DataType::kF16), kTile));
  auto row = row_of("gemm-diode", batched, kTile);
  EXPECT_EQ(row[3], 7);
  row[3] = 1;
  EXPECT_EQ(row, row_of("gemm-diode", product(DataType::kF16), kTile));
}

TEST(DiodeFeatures, TemplatesAreTiles) {
  const Config with_template{.schema = 2, .words = {1, 128, 64, 32, 8, 3, 4}};
  const Config library{.schema = 2, .words = {0, 0, 0, 0, 0, 0, 0}};
  for (const char* table : {"gemm-diode-v1", "gemm-diode"}) {
    const Problem problem = product(DataType::kF16);
    EXPECT_EQ(row_of(table, problem, with_template), row_of(table, problem, kTile));
    for (const double value : row_of(table, problem, library)) {
      EXPECT_TRUE(std::isfinite(value));
    }
  }
}

// Configs of torch-diode's documents.
TEST(DiodeFeatures, FlagsAreSeenWhereTheConfigHasThem) {
  const Problem problem = product(DataType::kF16);
  const Config plain{.schema = 3, .words = {128, 64, 32, 8, 3, 4, 0, 0, 0, 0}};
  const Config flagged{.schema = 3, .words = {128, 64, 32, 8, 3, 4, 1, 0, 1, 1}};
  EXPECT_EQ(row_of("gemm-diode", problem, plain), row_of("gemm-diode", problem, kTile));
  auto expected = row_of("gemm-diode", problem, kTile);
  expected[23] = 1;
  expected[25] = 1;
  EXPECT_EQ(row_of("gemm-diode", problem, flagged), expected);
  EXPECT_EQ(row_of("gemm-diode-v1", problem, flagged), row_of("gemm-diode-v1", problem, kTile));
}

// Models of ours that name no table keep theirs.
TEST(DiodeFeatures, DescribeAllSchemasAndAreNobodysDefault) {
  const std::vector<std::pair<const char*, ConfigSchema>> defaults{
      {"gemm-triton", triton_gemm_schema()},
      {"gemm-triton-templates", triton_matmul_schema()},
      {"gemm-triton-flags", diode_triton_schema()}};
  for (const auto& [ours, schema] : defaults) {
    std::vector<std::string> known;
    for (const FeatureTable* table : feature_tables()) {
      if (table->supports(kGemmProblem, schema)) {
        known.emplace_back(table->name());
      }
    }
    EXPECT_THAT(known, testing::ElementsAre(ours, "gemm-diode-v1", "gemm-diode"));
  }
}

}  // namespace
}  // namespace foretune
