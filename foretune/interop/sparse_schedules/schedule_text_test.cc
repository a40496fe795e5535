#include "foretune/interop/sparse_schedules/schedule_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/interop/sparse_schedules/testing/random_schedule.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

// The example of bcsstk38 with 128 dense columns, as AutoSparse printed it.
constexpr std::string_view kSpmm =
    "2 i 2 i0 256 i1 16 k 2 k0 512 k1 8 1 A 4 i0 i1 k0 k1 A 4 i0 1 i1 2 k0 2 k1 2 1 j 2 j0 32 j1 4 "
    "6 i0 i1 k0 k1 j0 j1 i0 j1 None 0 104 4";

SparseSizes spmm_sizes() {
  return {.operation = SparseOperation::kSpmm,
          .rows = 8032,
          .columns = 8032,
          .non_zeros = 355460,
          .width = 128};
}

std::string replaced(std::string_view text, std::string_view part, std::string_view by) {
  std::string out(text);
  const std::size_t place = out.find(part);
  EXPECT_NE(place, std::string::npos) << part;
  return out.replace(place, part.size(), by);
}

TEST(AutosparseText, IsReadPartByPart) {
  const auto read = parse_autosparse_schedule(kSpmm, spmm_sizes());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->threads, 104);
  EXPECT_EQ(to_text(sparse_schedule_schema(), read->schedule.to_config()),
            "inner_rows=16 inner_columns=8 inner_dense=4 order=r0.r1.c0.c1.d0.d1 levels=suuu "
            "levels_b=- levels_c=- parallel=r0 vector=d1 unroll=none chunk=4");
  EXPECT_EQ(loop_extent(read->schedule, spmm_sizes(), SparseLoop::kRow0), 502);
  EXPECT_EQ(autosparse_schedule(read->schedule, spmm_sizes(), 104).value(), kSpmm);
}

TEST(AutosparseText, BothOrdersOfTheSplitsAreOneSchedule) {
  const std::string swapped =
      replaced(kSpmm, "i 2 i0 256 i1 16 k 2 k0 512 k1 8", "k 2 k0 512 k1 8 i 2 i0 256 i1 16");
  const auto read = parse_autosparse_schedule(swapped, spmm_sizes());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, parse_autosparse_schedule(kSpmm, spmm_sizes()).value());
  EXPECT_EQ(autosparse_schedule(read->schedule, spmm_sizes(), 104).value(), kSpmm);
}

TEST(AutosparseText, LevelsAreListedByAxisAndKeptInTheOrderOfStorage) {
  const SparseSizes sizes{
      .operation = SparseOperation::kSpmv, .rows = 131072, .columns = 8192, .non_zeros = 4611968};
  const std::string text =
      "2 i 2 i0 16384 i1 8 j 2 j0 2048 j1 4 1 A 4 j0 j1 i0 i1 A 4 i0 2 i1 2 j0 0 j1 2 0 4 j0 j1 i0 "
      "i1 None None None 0 128 1";
  const auto read = parse_autosparse_schedule(text, sizes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_string(read->schedule.levels[0]), "duuu");
  EXPECT_EQ(read->schedule.parallel, std::nullopt);
  EXPECT_EQ(autosparse_schedule(read->schedule, sizes, 128).value(), text);
}

TEST(AutosparseText, TheOutputOfASumHasTheHigherLevelOfItsInputs) {
  const SparseSizes sizes{
      .operation = SparseOperation::kPlus2, .rows = 8032, .columns = 8032, .non_zeros = 355460};
  const std::string text =
      "2 i 2 i0 512 i1 8 j 2 j0 512 j1 8 3 A 4 i0 j0 i1 j1 B 4 i0 j0 i1 j1 C 4 i0 j0 i1 j1 A 4 i0 "
      "2 "
      "i1 2 j0 1 j1 1 B 4 i0 0 i1 2 j0 0 j1 1 C 4 i0 2 i1 2 j0 1 j1 1 0 4 i0 j0 i1 j1 None None "
      "None "
      "0 104 8";
  const auto read = parse_autosparse_schedule(text, sizes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->schedule.operands, 2U);
  EXPECT_EQ(to_string(read->schedule.levels[1]), "ddus");
  EXPECT_EQ(autosparse_schedule(read->schedule, sizes, 104).value(), text);
  const auto other =
      parse_autosparse_schedule(replaced(text, "C 4 i0 2 i1 2 j0 1", "C 4 i0 2 i1 2 j0 0"), sizes);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("its inputs make them"));
}

TEST(AutosparseText, RefusalsSayTheWordOrTheRule) {
  struct Case {
    const char* part;
    const char* by;
    const char* message;
  };
  for (const Case& wrong : std::vector<Case>{
           {"2 i 2", "1 i 2", "word 1 is '1', not '2'"},
           {"i 2 i0 256", "x 2 i0 256", "word 2 is 'x', not an axis to split"},
           {"k 2 k0 512 k1 8 1", "i 2 i0 256 i1 16 1", "the axis i is not split here, or twice"},
           {"i1 16", "i1 many", "word 7 is 'many', not an inner part"},
           {"i1 16", "i1 12", "12 is no power of two"},
           {"i0 256", "i0 502", "i0 is 502, but an extent of 8032 makes it 256"},
           {"A 4 i0 i1 k0 k1", "A 4 i0 k0 i1 k1", "the order of storage is not that of the loops"},
           {"A 4 i0 i1 k0 k1", "A 4 i0 i0 k0 k1", "the level of i1 is given twice or not stored"},
           {"k1 2 1 j", "k1 7 1 j", "word 30 is '7', not a code of a level from 0 to 4"},
           {"i0 1 i1 2 k0 2 k1 2", "i0 3 i1 2 k0 2 k1 2", "no storage has the levels quuu"},
           {"6 i0 i1 k0 k1 j0 j1", "6 i0 i1 k0 k1 j1 j0", "outer parts first"},
           {"i0 j1 None", "j7 j1 None", "not a parallel loop or None"},
           {"None 0", "None 4", "the unroll factor is 4, but the unrolled loop makes it 0"},
           {" 104 4", " 104 0", "a chunk of 0 iterations"},
           {" 104 4", " 104", "the text ends where a chunk should follow"},
           {" 104 4", " 104 4 5", "words follow the chunk"}}) {
    const auto read =
        parse_autosparse_schedule(replaced(kSpmm, wrong.part, wrong.by), spmm_sizes());
    ASSERT_FALSE(read) << wrong.by;
    EXPECT_THAT(read.error().message, HasSubstr(wrong.message));
  }
  EXPECT_EQ(parse_autosparse_schedule(kSpmm, {.operation = SparseOperation::kMttkrp}).error().code,
            ErrorCode::kUnsupported);
}

TEST(WacoText, SaysTheSameAsTheOtherNotationWithOtherDigits) {
  const SparseSizes sizes = spmm_sizes();
  const auto read = parse_waco_schedule("32 4 8 i1 i0 k1 k0 j1 j0 1 0 0 1 i1 48 2", sizes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(
      autosparse_schedule(read->schedule, sizes, 128).value(),
      "2 i 2 i0 128 i1 32 k 2 k0 1024 k1 4 1 A 4 i0 i1 k0 k1 A 4 i0 0 i1 1 k0 1 k1 0 1 j 2 j0 "
      "16 j1 8 6 i0 i1 k0 k1 j0 j1 i0 None None 0 128 2");
  EXPECT_EQ(waco_schedule(read->schedule, sizes, 48).value(),
            "32 4 8 i1 i0 k1 k0 j1 j0 1 0 0 1 i1 48 2");
}

TEST(WacoText, ThePortReadsTheSizesOfSddmmInAnotherOrder) {
  SparseSizes sizes = spmm_sizes();
  sizes.operation = SparseOperation::kSddmm;
  const std::string text = "2 64 16 i1 j1 i0 j0 k1 k0 1 0 1 0 j1 48 1";
  const SparseSchedule original = parse_waco_schedule(text, sizes).value().schedule;
  const SparseSchedule port = parse_waco_schedule(text, sizes, WacoReading::kPort).value().schedule;
  EXPECT_THAT(original.inner, testing::ElementsAre(2, 64, 16));
  EXPECT_THAT(port.inner, testing::ElementsAre(2, 16, 64));
  EXPECT_EQ(original.parallel, SparseLoop::kColumn0);
  EXPECT_EQ(port.parallel, SparseLoop::kColumn1);
  EXPECT_EQ(waco_schedule(port, sizes, 48, WacoReading::kPort).value(), text);
}

TEST(WacoText, RefusesWhatTheNotationCannotSay) {
  const SparseSizes sizes = spmm_sizes();
  const std::string text = "32 4 8 i1 i0 k1 k0 j1 j0 1 0 0 1 i1 48 2";
  for (const auto& [part, by, message] :
       std::vector<std::array<const char*, 3>>{{"1 0 0 1", "1 0 0 2", "not a bit of a level"},
                                               {"i1 48", "j1 48", "does not share j1"},
                                               {"i1 48", "i0 48", "does not share i0"},
                                               {"i1 i0", "i1 i1", "the loop i0 is missing"},
                                               {"48 2", "48 2 1", "words follow the chunk"}}) {
    const auto read = parse_waco_schedule(replaced(text, part, by), sizes);
    ASSERT_FALSE(read) << by;
    EXPECT_THAT(read.error().message, HasSubstr(message));
  }
  SparseSchedule schedule = parse_waco_schedule(text, sizes).value().schedule;
  schedule.vector = SparseLoop::kDense1;
  EXPECT_EQ(waco_schedule(schedule, sizes, 1).error().code, ErrorCode::kUnsupported);
  schedule.vector.reset();
  schedule.parallel.reset();
  EXPECT_EQ(waco_schedule(schedule, sizes, 1).error().code, ErrorCode::kUnsupported);
  schedule.parallel = SparseLoop::kDense0;
  EXPECT_EQ(waco_schedule(schedule, sizes, 1).error().code, ErrorCode::kUnsupported);
}

TEST(ScheduleText, EverythingThatIsLegalComesBack) {
  Rng rng(7);
  std::size_t in_waco = 0;
  for (int i = 0; i < 3000; ++i) {
    const SparseSizes sizes = testing_support::random_scheduled_sizes(rng);
    const SparseSchedule schedule = testing_support::random_schedule(sizes, rng);
    const auto text = autosparse_schedule(schedule, sizes, 7);
    ASSERT_TRUE(text) << text.error().message;
    const auto read = parse_autosparse_schedule(*text, sizes);
    ASSERT_TRUE(read) << *text << "\n" << read.error().message;
    ASSERT_EQ(read->schedule, schedule) << *text;
    ASSERT_EQ(read->threads, 7);
    ASSERT_EQ(SparseSchedule::from(schedule.to_config()).value(), schedule);
    for (const WacoReading reading : {WacoReading::kOriginal, WacoReading::kPort}) {
      if (const auto waco = waco_schedule(schedule, sizes, 7, reading)) {
        ++in_waco;
        ASSERT_EQ(parse_waco_schedule(*waco, sizes, reading).value(), *read) << *waco;
      }
    }
  }
  EXPECT_GT(in_waco, 10U);
}

// A text that was changed at random is refused, or is the text of the schedule that was read.
TEST(ScheduleText, DamagedTextsAreRefusedOrMeanSomethingElse) {
  Rng rng(8);
  std::size_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const SparseSizes sizes = testing_support::random_scheduled_sizes(rng);
    std::string text =
        autosparse_schedule(testing_support::random_schedule(sizes, rng), sizes, 7).value();
    text[rng.below(text.size())] = "0123456789ijkABCDN \n"[rng.below(20)];
    const auto read = parse_autosparse_schedule(text, sizes);
    if (!read) {
      ++refused;
      EXPECT_FALSE(read.error().message.empty());
      continue;
    }
    const std::string written = autosparse_schedule(read->schedule, sizes, read->threads).value();
    EXPECT_EQ(parse_autosparse_schedule(written, sizes).value(), *read);
  }
  EXPECT_GT(refused, 3000U);
}

}  // namespace
}  // namespace foretune
