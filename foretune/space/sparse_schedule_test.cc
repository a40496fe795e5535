#include "foretune/space/schemas/sparse_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace foretune {
namespace {

using ::testing::HasSubstr;

constexpr std::array<std::int64_t, kSparseLevels> kLong{4, 4, 4, 4};

SparseLevels levels(std::string_view letters) {
  SparseLevels out{};
  for (std::size_t i = 0; i < kSparseLevels; ++i) {
    out[i] = static_cast<SparseLevel>(std::string_view("dsuqc").find(letters[i]));
  }
  return out;
}

SparseSizes sizes_of(SparseOperation operation) {
  SparseSizes sizes{.operation = operation, .rows = 100, .columns = 50, .non_zeros = 200};
  if (has_dense_loops(operation)) {
    sizes.width = 64;
  }
  return sizes;
}

SparseSchedule plain_schedule(SparseOperation operation) {
  SparseSchedule schedule;
  schedule.order = sparse_orders()[has_dense_loops(operation) ? 6 : 0];
  schedule.operands = scheduled_operands(operation);
  std::fill_n(schedule.levels.begin(), schedule.operands, levels("ddsd"));
  return schedule;
}

TEST(SparseSchedule, ThereAreSixOrdersOfFourLoopsAndNinetyOfSix) {
  ASSERT_EQ(sparse_orders().size(), 96U);
  std::set<std::string> labels;
  for (std::size_t i = 0; i < sparse_orders().size(); ++i) {
    EXPECT_EQ(sparse_orders()[i].size(), i < 6 ? 4U : 6U);
  }
  const auto& names = sparse_schedule_schema().parameters[3].labels;
  labels.insert(names.begin(), names.end());
  EXPECT_EQ(labels.size(), 96U);
  EXPECT_EQ(names[0], "r0.r1.c0.c1");
  EXPECT_EQ(names[6], "r0.r1.c0.c1.d0.d1");
}

TEST(SparseSchedule, OfAllLevelFormatsSeventyEightAreLegal) {
  std::size_t legal = 0;
  for (const std::string& label : sparse_schedule_schema().parameters[4].labels) {
    legal += are_levels_legal(levels(label), kLong) ? 1 : 0;
  }
  EXPECT_EQ(legal, 78U);
  for (const char* good : {"ddsd", "ssss", "ucuq", "dsuq"}) {
    EXPECT_TRUE(are_levels_legal(levels(good), kLong)) << good;
  }
  for (const char* bad : {"qsss", "cuuu", "ducu", "uuqs", "uuuc", "sdcs"}) {
    EXPECT_FALSE(are_levels_legal(levels(bad), kLong)) << bad;
  }
}

TEST(SparseSchedule, LevelsOfOneEntryMayHaveAnyFormat) {
  EXPECT_FALSE(are_levels_legal(levels("sucd"), kLong));
  EXPECT_TRUE(are_levels_legal(levels("sucd"), {4, 4, 4, 1}));
  EXPECT_TRUE(are_levels_legal(levels("qsss"), {1, 4, 4, 4}));
  EXPECT_FALSE(are_levels_legal(levels("qqss"), {1, 4, 4, 4}));
}

TEST(SparseSchedule, WordsComeBackAndOthersAreRefused) {
  SparseSchedule schedule = plain_schedule(SparseOperation::kPlus2);
  schedule.inner = {8, 2, 1};
  schedule.levels[1] = levels("uuqq");
  schedule.parallel = SparseLoop::kRow0;
  schedule.chunk = 16;
  const Config config = schedule.to_config();
  EXPECT_EQ(SparseSchedule::from(config).value(), schedule);
  EXPECT_EQ(
      to_text(sparse_schedule_schema(), config),
      "inner_rows=8 inner_columns=2 inner_dense=1 order=r0.r1.c0.c1 levels=ddsd levels_b=uuqq "
      "levels_c=- parallel=r0 vector=none unroll=none chunk=16");
  EXPECT_EQ(
      parse_config(sparse_schedule_schema(), to_text(sparse_schedule_schema(), config)).value(),
      config);
  Config other = config;
  other.schema = 1;
  EXPECT_EQ(SparseSchedule::from(other).error().code, ErrorCode::kMismatch);
  const auto message_of = [&](SparseScheduleField field, std::int32_t word) {
    Config wrong = config;
    wrong.words[static_cast<std::size_t>(field)] = word;
    const auto read = SparseSchedule::from(wrong);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(message_of(SparseScheduleField::kInnerRows, 3), HasSubstr("no power of two"));
  EXPECT_THAT(message_of(SparseScheduleField::kInnerDense, 2), HasSubstr("no loop runs over it"));
  EXPECT_THAT(message_of(SparseScheduleField::kOrder, 96), HasSubstr("order has no value 96"));
  EXPECT_THAT(message_of(SparseScheduleField::kLevels, -1), HasSubstr("levels has no value -1"));
  EXPECT_THAT(message_of(SparseScheduleField::kParallel, 5), HasSubstr("no loop d0 to mark"));
  EXPECT_THAT(message_of(SparseScheduleField::kChunk, 0), HasSubstr("a chunk of 0"));
  Config without_b = config;
  without_b.words[static_cast<std::size_t>(SparseScheduleField::kLevelsB)] = 0;
  without_b.words[static_cast<std::size_t>(SparseScheduleField::kLevelsC)] = 1;
  EXPECT_FALSE(SparseSchedule::from(without_b));
}

TEST(SparseSchedule, IsCheckedAgainstTheProblem) {
  const auto message_of = [](const SparseSchedule& schedule, const SparseSizes& sizes) {
    const Status checked = check_sparse_schedule(schedule, sizes);
    return checked ? std::string() : checked.error().message;
  };
  const SparseSizes spmm = sizes_of(SparseOperation::kSpmm);
  SparseSchedule schedule = plain_schedule(SparseOperation::kSpmm);
  EXPECT_EQ(message_of(schedule, spmm), "");
  EXPECT_THAT(message_of(plain_schedule(SparseOperation::kSpmv), spmm),
              HasSubstr("spmm has 6 loops, the schedule 4"));
  EXPECT_THAT(
      message_of(plain_schedule(SparseOperation::kPlus2), sizes_of(SparseOperation::kPlus3)),
      HasSubstr("plus3 has 3 sparse inputs"));
  EXPECT_THAT(message_of(schedule, {.operation = SparseOperation::kMttkrp}),
              HasSubstr("no schedule describes mttkrp"));
  schedule.inner = {1, 64, 1};
  EXPECT_THAT(message_of(schedule, spmm), HasSubstr("an inner part of 64 is longer than its axis"));
  schedule.inner = {2, 2, 1};
  schedule.levels[0] = levels("qsss");
  EXPECT_THAT(message_of(schedule, spmm), HasSubstr("no storage has the levels qsss"));
}

TEST(SparseSchedule, OuterLoopsRunOverEveryPart) {
  SparseSchedule schedule = plain_schedule(SparseOperation::kSpmm);
  schedule.inner = {16, 1, 64};
  const SparseSizes sizes = sizes_of(SparseOperation::kSpmm);
  EXPECT_EQ(loop_extent(schedule, sizes, SparseLoop::kRow0), 7);
  EXPECT_EQ(loop_extent(schedule, sizes, SparseLoop::kRow1), 16);
  EXPECT_EQ(loop_extent(schedule, sizes, SparseLoop::kColumn0), 50);
  EXPECT_EQ(loop_extent(schedule, sizes, SparseLoop::kDense0), 1);
}

}  // namespace
}  // namespace foretune
