#include "foretune/base/quantities.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretune {
namespace {

TEST(Quantities, DurationsHaveTheirTwoLargestUnits) {
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(119.4), "119 s");
  EXPECT_EQ(seconds_text(200), "3 min 20 s");
  EXPECT_EQ(seconds_text(7500), "2 h 5 min");
  EXPECT_EQ(seconds_text(-1), "?");
  EXPECT_EQ(seconds_text(std::nan("")), "?");
}

TEST(Quantities, TimesHaveThreeOrFourDigits) {
  EXPECT_EQ(nanoseconds_text(0), "0 ns");
  EXPECT_EQ(nanoseconds_text(812.4), "812 ns");
  EXPECT_EQ(nanoseconds_text(3524), "3.52 us");
  EXPECT_EQ(nanoseconds_text(352400), "352.4 us");
  EXPECT_EQ(nanoseconds_text(12.44e6), "12.4 ms");
  EXPECT_EQ(nanoseconds_text(2.5e9), "2.50 s");
  EXPECT_EQ(nanoseconds_text(-1), "-");
}

TEST(Quantities, BytesComeInPowersOf1024) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(640), "640 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1 KiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(100 * 1024), "100 KiB");
  EXPECT_EQ(bytes_text(1024 * 1024 - 1), "1 MiB");
  EXPECT_EQ(bytes_text(12.5 * 1024 * 1024), "12.5 MiB");
  EXPECT_EQ(bytes_text(1e18), "888 PiB");
  EXPECT_EQ(bytes_text(-2048), "-2 KiB");
}

}  // namespace
}  // namespace foretune
