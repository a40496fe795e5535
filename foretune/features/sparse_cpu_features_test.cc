// The table of our own sparse kernels: estimates of what a format stores.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "foretune/features/feature_table.h"
#include "foretune/features/testing/named_row.h"
#include "foretune/problem/sparse/sparse_payload.h"
#include "foretune/space/schemas/sparse_cpu.h"

namespace foretune {
namespace {

const FeatureTable& table() { return *find_feature_table("sparse-cpu").value(); }

Problem square(std::int64_t non_zeros) {
  return SparseProblem::create({.operation = SparseOperation::kSpmv,
                                .rows = 1000,
                                .columns = 1000,
                                .non_zeros = non_zeros})
      ->to_problem();
}

double padding(const Problem& problem, const SparseCpuConfig& config) {
  return std::exp2(named_row(table(), problem, {}, config.to_config()).at("log2_padding"));
}

class PaddingTest : public testing::Test {
 protected:
  PaddingTest() : problem(square(3000)) {
    descriptor.info = &sparse_payload_info();
    descriptor.values.resize(kSparseValues);
    problem.set_descriptor(&descriptor);
  }
  void set(SparseValue which, double value) {
    descriptor.values[static_cast<std::size_t>(which)] = value;
  }
  PayloadDescriptor descriptor;
  Problem problem;
};

TEST_F(PaddingTest, ThreeFullDiagonals) {
  set(SparseValue::kRowMean, 3);
  set(SparseValue::kRowLongest, 3);
  set(SparseValue::kBandwidth, 0.1);
  set(SparseValue::kDiagonalShare, 1 - 3.0 / 3000);
  EXPECT_EQ(padding(problem, {}), 1);
  EXPECT_EQ(padding(problem, {.format = SparseFormat::kSell, .height = 8, .window = 8}), 1);
  EXPECT_NEAR(padding(problem, {.format = SparseFormat::kDiagonals}), 1, 1e-9);
  // Lone non-zeros fill a block each.
  EXPECT_NEAR(padding(problem, {.format = SparseFormat::kBcsr, .height = 4, .width = 2}), 8, 1e-9);
}

TEST_F(PaddingTest, NeighboursFillBlocksAndScatteredOnesManyDiagonals) {
  set(SparseValue::kRowMean, 3);
  set(SparseValue::kRowLongest, 12);
  set(SparseValue::kBandwidth, 0.1);
  set(SparseValue::kRowOverlap, 0.75);
  set(SparseValue::kRunShare, 0.5);
  EXPECT_NEAR(padding(problem, {.format = SparseFormat::kBcsr, .height = 5, .width = 3}), 4, 1e-9);
  // No more diagonals than the band has.
  EXPECT_NEAR(padding(problem, {.format = SparseFormat::kDiagonals}), 201 / 3.0, 1e-9);
}

TEST_F(PaddingTest, SortingSparesSlicesTheirLongRows) {
  set(SparseValue::kRowMean, 3);
  set(SparseValue::kRowDeviation, 6);
  SparseCpuConfig sell{.format = SparseFormat::kSell, .height = 8, .window = 8};
  EXPECT_NEAR(padding(problem, sell), 1 + 2 * std::sqrt(2 * std::log(8)), 1e-9);
  sell.window = 64;
  EXPECT_NEAR(padding(problem, sell), 1 + 2 * std::sqrt(2 * std::log(8)) / 8, 1e-9);
}

TEST(SparseCpuTable, WithoutADescriptorTheMatrixIsUnknown) {
  const auto row = named_row(table(), square(3000), {}, SparseCpuConfig{}.to_config());
  EXPECT_TRUE(std::isnan(row.at("diagonal_share")));
  EXPECT_EQ(row.at("log2_padding"), 0);
  SparseCpuConfig blocks{.format = SparseFormat::kBcsr, .height = 4, .width = 2};
  EXPECT_TRUE(
      std::isnan(named_row(table(), square(3000), {}, blocks.to_config()).at("log2_padding")));
}

}  // namespace
}  // namespace foretune
