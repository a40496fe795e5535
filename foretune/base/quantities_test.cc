#include "foretune/base/quantities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace foretune {
namespace {

void expect_texts(std::string (*text)(double value),
                  const std::vector<std::pair<double, std::string>>& expected) {
  for (const auto& [value, wanted] : expected) {
    EXPECT_EQ(text(value), wanted) << value;
  }
}

TEST(Quantities, DurationsHaveTheirTwoLargestUnits) {
  expect_texts(&seconds_text, {{0, "0 s"},
                               {119.4, "119 s"},
                               {200, "3 min 20 s"},
                               {7500, "2 h 5 min"},
                               {-1, "?"},
                               {std::nan(""), "?"}});
}

TEST(Quantities, TimesHaveThreeOrFourDigits) {
  expect_texts(&nanoseconds_text, {{0, "0 ns"},
                                   {812.4, "812 ns"},
                                   {3524, "3.52 us"},
                                   {352400, "352.4 us"},
                                   {12.44e6, "12.4 ms"},
                                   {2.5e9, "2.50 s"},
                                   {-1, "-"}});
}

TEST(Quantities, CountsAgreeWithTheirNouns) {
  EXPECT_EQ(count_of(0, "problem"), "0 problems");
  EXPECT_EQ(count_of(1, "problem"), "1 problem");
  EXPECT_EQ(count_of(12345, "config"), "12,345 configs");
  EXPECT_EQ(word_for(0, "is", "are"), "are");
  EXPECT_EQ(word_for(1, "is", "are"), "is");
  EXPECT_EQ(word_for(2, "is", "are"), "are");
}

TEST(Quantities, BytesComeInPowersOf1024) {
  expect_texts(&bytes_text, {{0, "0 B"},
                             {640, "640 B"},
                             {1023, "1023 B"},
                             {1024, "1 KiB"},
                             {1536, "1.5 KiB"},
                             {100 * 1024, "100 KiB"},
                             {1024 * 1024 - 1, "1 MiB"},
                             {12.5 * 1024 * 1024, "12.5 MiB"},
                             {1e18, "888 PiB"},
                             {-2048, "-2 KiB"}});
}

}  // namespace
}  // namespace foretune
