// The table of sparse schedules: values by hand, and the estimates that they come from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/features/feature_table.h"
#include "foretune/features/internal/schedule_walk.h"
#include "foretune/features/testing/named_row.h"
#include "foretune/interop/sparse_schedules/testing/random_schedule.h"
#include "foretune/space/schemas/cpu_gemm.h"
#include "foretune/space/schemas/sparse_schedule.h"

namespace foretune {
namespace {

using features_internal::MatrixShape;
using features_internal::ScheduleWalk;
using features_internal::walk_schedule;

const FeatureTable& table() { return *find_feature_table("sparse-schedule").value(); }

// A dense matrix, so that the estimates are exact.
Problem dense_problem() {
  return SparseProblem::create({.operation = SparseOperation::kSpmm,
                                .rows = 64,
                                .columns = 32,
                                .non_zeros = 64 * 32,
                                .width = 16})
      ->to_problem();
}

SparseSchedule csr() {
  return SparseSchedule::from(
             parse_config(sparse_schedule_schema(),
                          "inner_rows=1 inner_columns=1 inner_dense=4 order=r0.r1.c0.c1.d0.d1 "
                          "levels=ddsd levels_b=- levels_c=- parallel=r0 vector=none unroll=none "
                          "chunk=8")
                 .value())
      .value();
}

Hardware four_cores() {
  Hardware hardware;
  hardware.set(HardwareValue::kCores, 2);
  hardware.set(HardwareValue::kThreadsPerCore, 2);
  hardware.set(HardwareValue::kL2Bytes, 1024);
  return hardware;
}

TEST(ScheduleWalk, CountsTurnsAndPositionsOfCsr) {
  const ScheduleWalk walk = walk_schedule(csr(), MatrixShape::of(dense_problem()));
  EXPECT_EQ(walk.loops, 6U);
  EXPECT_NEAR(walk.positions[0], 64, 1e-6);
  EXPECT_NEAR(walk.positions[1], 64, 1e-6);
  EXPECT_NEAR(walk.positions[3], walk.value_count, 1e-9);
  EXPECT_NEAR(walk.turns[0], 64, 1e-6);
  EXPECT_NEAR(walk.turns[5] / walk.value_count, 16, 1e-6);
  EXPECT_NEAR(walk.length[4], 4, 1e-6);
  EXPECT_NEAR(walk.length[5], 4, 1e-6);
  EXPECT_NEAR(walk.index_bytes, 4 * (walk.positions[2] + 65), 1e-6);
}

TEST(ScheduleWalk, DenseLevelsFillBlocks) {
  const Problem sparse =
      SparseProblem::create(
          {.operation = SparseOperation::kSpmv, .rows = 4096, .columns = 4096, .non_zeros = 4096})
          ->to_problem();
  SparseSchedule blocks;
  blocks.inner = {8, 8, 1};
  blocks.order = {SparseLoop::kRow0, SparseLoop::kColumn0, SparseLoop::kRow1, SparseLoop::kColumn1};
  blocks.levels[0] = {SparseLevel::kDense, SparseLevel::kCompressed, SparseLevel::kDense,
                      SparseLevel::kDense};
  const ScheduleWalk walk = walk_schedule(blocks, MatrixShape::of(sparse));
  // 4,096 random non-zeros hit nearly as many of the 262,144 blocks, which store 64 values each.
  EXPECT_NEAR(walk.positions[1], 4064, 8);
  EXPECT_NEAR(walk.value_count, 64 * walk.positions[1], 1e-6);
  blocks.levels[0][2] = blocks.levels[0][3] = SparseLevel::kCompressed;
  EXPECT_NEAR(walk_schedule(blocks, MatrixShape::of(sparse)).value_count, 4096, 2);
}

TEST(SparseScheduleTable, ValuesByHand) {
  auto row = named_row(table(), dense_problem(), four_cores(), csr().to_config());
  EXPECT_EQ(row["log2_rows"], 6);
  EXPECT_EQ(row["log2_density"], 0);
  EXPECT_EQ(row["threads"], 4);
  EXPECT_TRUE(std::isnan(row["row_longest"]));
  EXPECT_EQ(row["log2_inner_dense"], 2);
  EXPECT_EQ(row["place_r0"], 0);
  EXPECT_EQ(row["place_d1"], 5);
  EXPECT_EQ(row["level_c0"], 1);
  EXPECT_EQ(row["innermost"], 5);
  EXPECT_EQ(row["parallel"], 1);
  EXPECT_EQ(row["parallel_place"], 0);
  EXPECT_EQ(row["log2_chunk"], 3);
  EXPECT_NEAR(row["log2_iterations"], 6, 1e-9);
  EXPECT_NEAR(row["log2_rounds"], 0, 1e-9);
  EXPECT_NEAR(row["log2_chunks_a_thread"], 1, 1e-9);
  EXPECT_EQ(row["used_threads"], 1);
  EXPECT_EQ(row["balance"], 1);
  EXPECT_NEAR(row["log2_innermost"], 2, 1e-9);
  // One row of the output and all of B.
  EXPECT_NEAR(row["log2_inside_1"], std::log2(4 * (1 + 32) * 16), 1e-9);
  EXPECT_NEAR(row["log2_inside_4"], std::log2(4 * (1 + 1) * 16), 1e-9);
}

TEST(SparseScheduleTable, EveryPartOfEveryLegalScheduleIsFinite) {
  Rng rng(3);
  for (int i = 0; i < 500; ++i) {
    const SparseSizes sizes = testing_support::random_scheduled_sizes(rng);
    const Problem problem = SparseProblem::create(sizes)->to_problem();
    const Config config = testing_support::random_schedule(sizes, rng).to_config();
    for (const Hardware& hardware : {Hardware(), four_cores()}) {
      for (const auto& [name, value] : named_row(table(), problem, hardware, config)) {
        const auto& columns = table().columns();
        const auto column = std::find_if(
            columns.begin(), columns.end(),
            [&, wanted = name](const FeatureInfo& info) { return info.name == wanted; });
        EXPECT_TRUE(std::isfinite(value) || column->may_be_missing)
            << name << " of " << to_text(sparse_schedule_schema(), config);
      }
    }
  }
}

TEST(SparseScheduleTable, DescribesNoOtherConfigs) {
  EXPECT_TRUE(table().supports(kSparseProblem, sparse_schedule_schema()));
  EXPECT_FALSE(table().supports(kSparseProblem, cpu_gemm_schema()));
  EXPECT_FALSE(table().supports(kGemmProblem, sparse_schedule_schema()));
}

}  // namespace
}  // namespace foretune
