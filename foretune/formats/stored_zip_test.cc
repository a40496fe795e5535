// Reads archives that this test writes itself, whole and damaged in every byte.
#include "foretune/formats/stored_zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "foretune/formats/testing/zip_samples.h"

namespace foretune::formats {
namespace {

using testing::HasSubstr;

const std::vector<SampleEntry> kEntries{
    {"model/data.pkl", "pickled"},
    {"model/byteorder", "little"},
    {"model/data/0", std::string("\0\1\2\3PK\5\6 no end record", 22)},
    {"model/empty", ""}};

// Returns the contents of an archive as text.
std::vector<std::pair<std::string, std::string>> contents(const std::vector<StoredEntry>& entries) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const StoredEntry& entry : entries) {
    out.emplace_back(entry.name, std::string(reinterpret_cast<const char*>(entry.bytes.data()),
                                             entry.bytes.size()));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> expected() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const SampleEntry& entry : kEntries) {
    out.emplace_back(entry.name, entry.bytes);
  }
  return out;
}

// Writes `value` at `offset` from occurrence number `which` (from 0) of `signature`.
template <class T>
std::vector<std::byte> with(std::vector<std::byte> bytes, std::uint32_t signature, int which,
                            std::size_t offset, T value) {
  std::size_t at = 0;
  for (int found = -1; at + 4 <= bytes.size(); ++at) {
    std::uint32_t here = 0;
    std::memcpy(&here, bytes.data() + at, sizeof(here));
    found += here == signature ? 1 : 0;
    if (found == which) {
      break;
    }
  }
  std::memcpy(bytes.data() + at + offset, &value, sizeof(value));
  return bytes;
}

constexpr std::uint32_t kLocal = 0x04034b50;
constexpr std::uint32_t kDirectory = 0x02014b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kEnd = 0x06054b50;

void expect_refused(const std::vector<std::byte>& bytes, ErrorCode code, const char* reason) {
  const auto entries = read_stored_zip(bytes);
  ASSERT_FALSE(entries) << reason;
  EXPECT_EQ(entries.error().code, code) << entries.error().message;
  EXPECT_THAT(entries.error().message, HasSubstr(reason));
}

TEST(StoredZip, ReadsWhatTorchAndOthersWrite) {
  for (const bool as_torch : {true, false}) {
    for (const char* comment : {"", "some comment"}) {
      const auto bytes = sample_zip(kEntries, {.as_torch = as_torch, .comment = comment});
      EXPECT_TRUE(is_zip(bytes));
      const auto entries = read_stored_zip(bytes);
      ASSERT_TRUE(entries) << entries.error().message;
      EXPECT_EQ(contents(*entries), expected());
    }
  }
  const auto nothing = read_stored_zip(sample_zip({}, {.as_torch = false}));
  ASSERT_TRUE(nothing) << nothing.error().message;
  EXPECT_TRUE(nothing->empty());
}

TEST(StoredZip, RefusesWhatIsNotOne) {
  expect_refused({}, ErrorCode::kCorrupt, "no zip archive");
  expect_refused(std::vector<std::byte>(100), ErrorCode::kCorrupt, "no zip archive");
  EXPECT_FALSE(is_zip({}));
}

TEST(StoredZip, SaysWhatItDoesNotRead) {
  const auto zip = sample_zip(kEntries);
  expect_refused(sample_zip(kEntries, {.method = 8}), ErrorCode::kUnsupported,
                 "'model/data.pkl' is compressed; only stored entries are read");
  expect_refused(sample_zip(kEntries, {.flags = 1}), ErrorCode::kUnsupported, "is encrypted");
  // The change is in only one of the two headers.
  expect_refused(with(zip, kLocal, 1, 8, std::uint16_t{8}), ErrorCode::kUnsupported,
                 "'model/byteorder' is compressed");
  expect_refused(with(zip, kDirectory, 2, 8, std::uint16_t{0x40}), ErrorCode::kUnsupported,
                 "'model/data/0' is encrypted");
  expect_refused(with(zip, kEnd, 1, 10, std::uint16_t{0xffff}), ErrorCode::kUnsupported,
                 "without zip64");
  expect_refused(with(zip, kEnd, 1, 16, std::uint32_t{0xffffffff}), ErrorCode::kUnsupported,
                 "without zip64");
  expect_refused(with(zip, kDirectory, 0, 20, std::uint32_t{0xffffffff}), ErrorCode::kUnsupported,
                 "too large to be read without zip64");
  expect_refused(with(zip, kEnd, 1, 4, std::uint16_t{1}), ErrorCode::kUnsupported,
                 "one of several parts");
}

TEST(StoredZip, SaysWhatIsWrong) {
  const auto zip = sample_zip(kEntries);
  expect_refused(with(zip, kEnd64, 0, 32, std::uint64_t{5}), ErrorCode::kCorrupt,
                 "contradict its end record");
  expect_refused(with(zip, kDirectory, 1, 24, std::uint32_t{1}), ErrorCode::kCorrupt,
                 "'model/byteorder' contradicts itself");
  expect_refused(with(zip, kDirectory, 1, 42, std::uint32_t{0}), ErrorCode::kCorrupt,
                 "another one than the directory says");
  expect_refused(with(zip, kDirectory, 1, 42, std::uint32_t{0x7fffffff}), ErrorCode::kCorrupt,
                 "begins behind the end");
  expect_refused(with(zip, kDirectory, 3, 0, std::uint32_t{0}), ErrorCode::kCorrupt,
                 "directory is damaged");
  const auto plain = sample_zip(kEntries, {.as_torch = false});
  expect_refused(with(plain, kEnd, 1, 8, std::uint32_t{0x00030003}), ErrorCode::kCorrupt,
                 "more than its 3 entries");
  expect_refused(with(plain, kEnd, 1, 12, std::uint32_t{7}), ErrorCode::kCorrupt,
                 "does not end where its end record begins");
  expect_refused(sample_zip({{"a", "x"}, {"b", "y"}, {"a", "z"}}), ErrorCode::kCorrupt,
                 "has 'a' twice");
}

// A small file could otherwise claim to have any number of large entries.
TEST(StoredZip, RefusesEntriesThatShareBytes) {
  // The second entry's header is inside the data of the first.
  const std::vector<std::byte> inner = sample_zip({{"inner", "abc"}}, {.as_torch = false});
  const std::string text(reinterpret_cast<const char*>(inner.data()), 38);
  const auto zip = sample_zip({{"outer", text}, {"inner", "abc"}}, {.as_torch = false});
  const auto moved = with(zip, kDirectory, 1, 42, static_cast<std::uint32_t>(30 + 5));
  expect_refused(moved, ErrorCode::kCorrupt, "'outer' and 'inner' overlap");
}

TEST(StoredZip, NoDamageGoesUnnoticed) {
  for (const bool as_torch : {true, false}) {
    const auto zip = sample_zip(kEntries, {.as_torch = as_torch});
    for (std::size_t i = 0; i < zip.size(); ++i) {
      for (const unsigned flip : {1U, 0x80U, 0xffU}) {
        auto damaged = zip;
        damaged[i] ^= static_cast<std::byte>(flip);
        const auto entries = read_stored_zip(damaged);
        if (entries) {  // the byte is without meaning: dates, padding, descriptors behind the data
          ASSERT_EQ(contents(*entries), expected()) << "byte " << i;
        } else {
          ASSERT_FALSE(entries.error().message.empty());
        }
      }
    }
    for (std::size_t size = 0; size < zip.size(); ++size) {
      ASSERT_FALSE(read_stored_zip(std::span(zip).first(size))) << "cut at " << size;
    }
  }
}

}  // namespace
}  // namespace foretune::formats
