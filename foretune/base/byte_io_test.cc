#include "foretune/base/byte_io.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

TEST(ByteIo, NumbersAreLittleEndian) {
  ByteWriter writer;
  writer.put(std::uint32_t{0x01020304});
  const std::array<std::byte, 4> expected{std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), writer.bytes().begin()));
}

TEST(ByteIo, RoundTripsEverything) {
  ByteWriter writer;
  writer.put(std::int16_t{-3});
  const std::string with_zero("text with \0 inside", 18);
  writer.put_string(with_zero);
  writer.put_string("");
  writer.put(2.5);
  writer.align(16);
  writer.put(std::uint8_t{9});
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.get<std::int16_t>(), -3);
  EXPECT_EQ(reader.get_string(), with_zero);
  EXPECT_EQ(reader.get_string(), "");
  EXPECT_EQ(reader.get<double>(), 2.5);
  reader.get_bytes((16 - reader.position() % 16) % 16);
  EXPECT_EQ(reader.get<std::uint8_t>(), 9);
  EXPECT_TRUE(reader.ok());
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(reader.remaining(), 0U);
}

TEST(ByteIo, VarintsRoundTripAndSmallOnesAreShort) {
  std::vector<std::uint64_t> values{
      0, 1, 127, 128, 16383, 16384, std::numeric_limits<std::uint64_t>::max()};
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    values.push_back(rng.next() >> rng.below(64));
  }
  for (const std::uint64_t value : values) {
    ByteWriter writer;
    writer.put_varint(value);
    writer.put_zigzag(static_cast<std::int64_t>(value));
    writer.put_zigzag(-static_cast<std::int64_t>(value / 4));
    ByteReader reader(writer.bytes());
    ASSERT_EQ(reader.get_varint(), value);
    ASSERT_EQ(reader.get_zigzag(), static_cast<std::int64_t>(value));
    ASSERT_EQ(reader.get_zigzag(), -static_cast<std::int64_t>(value / 4));
    ASSERT_TRUE(reader.ok() && reader.at_end());
  }
  ByteWriter writer;
  writer.put_varint(127);
  writer.put_zigzag(-64);
  EXPECT_EQ(writer.size(), 2U);
}

TEST(ByteIo, VarintsThatAreTooLongAreBad) {
  // Ten bytes hold 70 bits; those over 64 must be zero.
  std::vector<std::byte> bytes(9, std::byte{0xff});
  bytes.push_back(std::byte{0x02});
  ByteReader over(bytes);
  over.get_varint();
  EXPECT_FALSE(over.ok());
  const std::vector<std::byte> without_end(20, std::byte{0x80});
  ByteReader endless(without_end);
  endless.get_varint();
  EXPECT_FALSE(endless.ok());
}

TEST(ByteIo, AReaderAtItsEndTurnsBadAndStaysSo) {
  const std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.get<std::uint32_t>(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.get<std::uint8_t>(), 0U);
  EXPECT_TRUE(reader.get_bytes(1).empty());
  EXPECT_EQ(reader.get_string(), "");
  EXPECT_FALSE(reader.ok());
}

TEST(ByteIo, StringsAndCountsLargerThanTheRestAreBad) {
  ByteWriter writer;
  writer.put(std::uint32_t{1000});
  writer.put(std::uint32_t{0});
  ByteReader too_long(writer.bytes());
  EXPECT_EQ(too_long.get_string(), "");
  EXPECT_FALSE(too_long.ok());
  ByteReader over_limit(writer.bytes());
  EXPECT_EQ(over_limit.get_string(2), "");
  EXPECT_FALSE(over_limit.ok());

  ByteWriter counts;
  counts.put_varint(3);
  counts.put(std::uint32_t{0});
  ByteReader fits(counts.bytes());
  EXPECT_EQ(fits.get_count(1), 3U);
  EXPECT_TRUE(fits.ok());
  ByteReader does_not(counts.bytes());
  EXPECT_EQ(does_not.get_count(2), 0U);
  EXPECT_FALSE(does_not.ok());
}

TEST(ByteIo, ArraysRoundTripWithTheirCounts) {
  const std::vector<double> doubles{0.5, -1e300, std::numeric_limits<double>::infinity()};
  const std::array<std::int16_t, 2> words{-2, 300};
  const std::vector<float> none;
  ByteWriter writer;
  put_array(writer, doubles);
  put_array(writer, std::span<const std::int16_t>(words));
  put_array(writer, none);
  EXPECT_EQ(writer.size(), 1 + 3 * sizeof(double) + 1 + 2 * sizeof(std::int16_t) + 1);
  ByteReader reader(writer.bytes());
  EXPECT_EQ(get_array<double>(reader), doubles);
  EXPECT_EQ(get_array<std::int16_t>(reader), std::vector<std::int16_t>(words.begin(), words.end()));
  EXPECT_EQ(get_array<float>(reader), none);
  EXPECT_TRUE(reader.ok() && reader.at_end());

  ByteReader counted(writer.bytes().subspan(1));
  EXPECT_EQ(get_array<double>(counted, 3), doubles);
  EXPECT_EQ(get_array<float>(counted, 0), none);
  EXPECT_TRUE(counted.ok());
}

TEST(ByteIo, ArraysLargerThanTheRestAreBadAndNotAllocated) {
  // The largest counts could not be allocated; multiplied by four bytes, they overflow to small
  // ones.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t count : {std::uint64_t{2}, kMost / 4, kMost / 4 + 1, kMost}) {
    SCOPED_TRACE(concat("count ", count));
    ByteWriter writer;
    writer.put_varint(count);
    writer.put(std::uint32_t{0});
    ByteReader reader(writer.bytes());
    EXPECT_EQ(get_array<float>(reader).capacity(), 0U);
    EXPECT_FALSE(reader.ok());

    const std::vector<std::byte> four(4);
    ByteReader counted(four);
    EXPECT_EQ(get_array<float>(counted, count).capacity(), 0U);
    EXPECT_FALSE(counted.ok());
  }
  const std::vector<std::byte> four(4);
  ByteReader bad(four);
  bad.fail();
  EXPECT_EQ(get_array<float>(bad, 1).capacity(), 0U);
  EXPECT_FALSE(bad.ok());
}

TEST(ByteIo, RandomBytesNeverReadBeyondTheEnd) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(concat("seed ", seed));
    Rng rng(seed);
    std::vector<std::byte> bytes(rng.below(40));
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(rng.below(256));
    }
    ByteReader reader(bytes);
    for (int step = 0; step < 30; ++step) {
      switch (rng.below(5)) {
        case 0:
          reader.get<std::uint64_t>();
          break;
        case 1:
          reader.get_varint();
          break;
        case 2:
          reader.get_string();
          break;
        case 3:
          reader.get_bytes(rng.below(10));
          break;
        default:
          reader.get_count(1 + rng.below(4));
      }
      ASSERT_LE(reader.position(), bytes.size());
    }
  }
}

}  // namespace
}  // namespace foretune
