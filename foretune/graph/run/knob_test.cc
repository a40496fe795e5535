#include "foretune/graph/run/knob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "foretune/base/rng.h"

namespace foretune::graph {
namespace {

using ::testing::HasSubstr;

TEST(Knob, NumbersAndNamesOfTheCatalogueAreDistinctAndComeBack) {
  const auto knobs = knob_catalogue("all");
  ASSERT_TRUE(knobs) << knobs.error().message;
  EXPECT_EQ(knobs->size(), 3U * (1 + 3 * 9));
  EXPECT_EQ(std::set<std::int32_t>(knobs->begin(), knobs->end()).size(), knobs->size());
  for (const std::int32_t knob : *knobs) {
    const auto variant = variant_of_knob(knob);
    ASSERT_TRUE(variant) << variant.error().message;
    EXPECT_EQ(knob_of(*variant), knob);
    EXPECT_EQ(*parse_knob(knob_text(knob)), knob);
  }
}

TEST(Knob, NumbersStayAsTheyAreInFiles) {
  EXPECT_EQ(knob_of({}), 0);
  EXPECT_EQ(knob_of({.type = DataType::kI8, .skip_rows = 2, .skip_rows_at = 1}), 2 + 2 * 8 + 64);
  EXPECT_EQ(knob_text(2 + 2 * 8 + 64), "i8+rows2.1");
  EXPECT_EQ(*parse_knob("f16+weights3.2+before"), 3 + (3 << 21) + (2 << 24) + (1 << 27));
}

TEST(Knob, RandomNumbersAreKnobsOrRefused) {
  Rng rng(1);
  int knobs = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto number = static_cast<std::int32_t>(rng.next() >> (32 + rng.below(28)));
    const auto variant = variant_of_knob(number);
    if (variant) {
      ++knobs;
      EXPECT_EQ(knob_of(*variant), number);
      EXPECT_EQ(*parse_knob(knob_text(number)), number);
    } else {
      EXPECT_THAT(variant.error().message, HasSubstr("is the number of no knob"));
    }
  }
  EXPECT_GT(knobs, 100);
}

TEST(Knob, TextsThatAreNoneAreRefused) {
  for (const char* text : {"", "i9", "f64", "i8+", "i8+rows", "i8+rows2", "i8+rows1.0",
                           "i8+rows2.2", "i8+lines2.0", "f32+rows8.0", "f32+rows2.0.1"}) {
    EXPECT_FALSE(parse_knob(text)) << text;
  }
  EXPECT_FALSE(knob_catalogue("f32,i8,none"));
  EXPECT_EQ(knob_catalogue("f32, i8")->size(), 2U);
}

}  // namespace
}  // namespace foretune::graph
