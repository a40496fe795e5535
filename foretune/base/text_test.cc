#include "foretune/base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "foretune/base/rng.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Concat, JoinsAllKindsOfArguments) {
  EXPECT_EQ(concat(), "");
  EXPECT_EQ(concat("a", std::string("b"), std::string_view("c"), 'd'), "abcd");
  EXPECT_EQ(concat(1, " ", -2, " ", std::uint8_t{200}, " ", std::int8_t{-5}), "1 -2 200 -5");
  EXPECT_EQ(concat(true, false), "truefalse");
  EXPECT_EQ(concat(0.1, " ", 2.0F, " ", 1e300), "0.1 2 1e+300");
  EXPECT_EQ(concat(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(concat(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
}

TEST(Concat, NumbersReadBackToTheSameBits) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = rng.next();
    const auto value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) {
      continue;
    }
    const auto back = parse_double(concat(value));
    ASSERT_TRUE(back) << concat(value);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(*back), std::bit_cast<std::uint64_t>(value))
        << concat(value);
    ASSERT_EQ(parse_uint(concat(bits)), bits);
    ASSERT_EQ(parse_int(concat(static_cast<std::int64_t>(bits))), static_cast<std::int64_t>(bits));
  }
}

TEST(Fixed, RoundsToDecimals) {
  EXPECT_EQ(fixed(3.14159, 2), "3.14");
  EXPECT_EQ(fixed(-0.5, 0), "-0");
  EXPECT_EQ(fixed(2.675, 1), "2.7");
  EXPECT_EQ(fixed(1e22, 1), "10000000000000000000000.0");
  EXPECT_EQ(fixed(std::numeric_limits<double>::max(), 3).size(), 309U + 4U);
}

TEST(Split, KeepsEmptyPieces) {
  EXPECT_THAT(split("a,b,,c", ','), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(",", ','), ElementsAre("", ""));
  EXPECT_THAT(split("abc", ','), ElementsAre("abc"));
}

TEST(SplitWords, DropsBlanks) {
  EXPECT_THAT(split_words("  a\tbb \r\n c "), ElementsAre("a", "bb", "c"));
  EXPECT_THAT(split_words(""), IsEmpty());
  EXPECT_THAT(split_words(" \t\n"), IsEmpty());
  EXPECT_THAT(split_words("a"), ElementsAre("a"));
}

TEST(Trim, CutsBothEndsOnly) {
  EXPECT_EQ(trim("  a b\t\n"), "a b");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim(" \t "), "");
  EXPECT_EQ(trim("a"), "a");
}

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "", "c"}, ", "), "a, , c");
}

TEST(Quoted, ShortensAndHidesControlCharacters) {
  EXPECT_EQ(quoted("abc"), "'abc'");
  EXPECT_EQ(quoted(""), "''");
  EXPECT_EQ(quoted("a\x1b[31mb\nc\x7f"), "'a?[31mb?c?'");
  EXPECT_EQ(quoted("abcdef", 3), "'abc...'");
  EXPECT_EQ(quoted("\xc3\xa4"), "'\xc3\xa4'");
}

TEST(ParseNumbers, TakeTheWholeTextOrNothing) {
  EXPECT_EQ(parse_int("-12"), -12);
  EXPECT_EQ(parse_int("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_uint("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_double("1e3"), 1000);
  EXPECT_EQ(parse_double("-0.5"), -0.5);
  for (const char* text : {"", " ", "1 ", " 1", "+1", "1x", "0x10", "9223372036854775808", "--1"}) {
    EXPECT_FALSE(parse_int(text)) << text;
  }
  for (const char* text : {"", "-1", "1.5", "18446744073709551616"}) {
    EXPECT_FALSE(parse_uint(text)) << text;
  }
  for (const char* text : {"", " 1", "1 ", "1e", "1e999", "e", "1,5", "0x1p3"}) {
    EXPECT_FALSE(parse_double(text)) << text;
  }
}

TEST(NearestWord, FindsTyposAndRefusesWildGuesses) {
  const std::vector<std::string> words{"collect", "create-validation", "train", "predict"};
  EXPECT_EQ(nearest_word("colect", words), "collect");
  EXPECT_EQ(nearest_word("trian", words), "train");
  EXPECT_EQ(nearest_word("create_validation", words), "create-validation");
  EXPECT_EQ(nearest_word("xyzzyx", words), "");
  EXPECT_EQ(nearest_word("foo", {"op", "for"}), "for");
  EXPECT_EQ(nearest_word("foo", {"op"}), "");
  EXPECT_EQ(nearest_word("train", {}), "");
}

}  // namespace
}  // namespace foretune
