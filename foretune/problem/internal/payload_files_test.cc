#include "foretune/problem/internal/payload_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune::problem_internal {
namespace {

constexpr std::array<std::string_view, 2> kNames{"share", "log2_largest"};
constexpr PayloadInfo kInfo{.name = "samples", .version = 3, .values = kNames};
const Digest kDigest{0x0123456789abcdefU, 42};

std::vector<IndexedPayload> some_payloads() {
  return {{"a.npy", {17, 1'700'000'000'000'000'001, 1'700'000'000'000'000'002}, kDigest},
          {"name with  blanks", {0, -5, 0}, {1, 2}},
          {"h\u00e9llo", {std::numeric_limits<std::uint64_t>::max(), 1, 2}, {3, 4}}};
}

PayloadDescriptor some_descriptor() { return {&kInfo, kDigest, {0.1, -149.5}}; }

TEST(PayloadIndex, RoundTrips) {
  for (const auto& payloads : {some_payloads(), std::vector<IndexedPayload>()}) {
    EXPECT_EQ(parse_payload_index(payload_index_text(payloads)).value(), payloads);
  }
}

// Folders hold it: a change needs a new version in the first line.
TEST(PayloadIndex, TextIsGolden) {
  EXPECT_EQ(payload_index_text({some_payloads()[0]}),
            "foretune payload index 1\n"
            "0123456789abcdef000000000000002a 17 1700000000000000001 1700000000000000002 a.npy\n"
            "crc32c 104a8947\n");
}

TEST(PayloadDescriptorFile, RoundTrips) {
  const PayloadDescriptor descriptor = some_descriptor();
  const PayloadDescriptor again =
      parse_payload_descriptor(payload_descriptor_text(descriptor), kInfo, kDigest).value();
  EXPECT_EQ(again.info, &kInfo);
  EXPECT_EQ(again.payload, kDigest);
  EXPECT_EQ(again.values, descriptor.values);
}

TEST(PayloadDescriptorFile, TextIsGolden) {
  EXPECT_EQ(payload_descriptor_text(some_descriptor()),
            "foretune payload descriptor 1\n"
            "samples 3 0123456789abcdef000000000000002a\n"
            "share 0.1\n"
            "log2_largest -149.5\n"
            "crc32c 5931817f\n");
}

TEST(PayloadDescriptorFile, AnotherVersionPayloadOrListOfNumbersIsRefused) {
  const std::string text = payload_descriptor_text(some_descriptor());
  PayloadInfo other = kInfo;
  other.version = 4;
  EXPECT_EQ(parse_payload_descriptor(text, other, kDigest).error().code, ErrorCode::kUnsupported);
  other = kInfo;
  other.name = "weights";
  EXPECT_EQ(parse_payload_descriptor(text, other, kDigest).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(parse_payload_descriptor(text, kInfo, {1, 1}).error().code, ErrorCode::kMismatch);
  constexpr std::array<std::string_view, 2> kOthers{"share", "log2_smallest"};
  for (const std::span<const std::string_view> values :
       {std::span<const std::string_view>(kNames).first(1),
        std::span<const std::string_view>(kOthers)}) {
    other = kInfo;
    other.values = values;
    EXPECT_EQ(parse_payload_descriptor(text, other, kDigest).error().code, ErrorCode::kCorrupt);
  }
  PayloadDescriptor infinite = some_descriptor();
  infinite.values[1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      parse_payload_descriptor(payload_descriptor_text(infinite), kInfo, kDigest).error().code,
      ErrorCode::kCorrupt);
}

// One changed, missing or added byte anywhere is damage.
TEST(PayloadFiles, EveryDamageIsNoticed) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  const std::array texts{payload_index_text(some_payloads()),
                         payload_descriptor_text(some_descriptor())};
  const auto is_refused = [&](std::size_t which, const std::string& text) {
    return which == 0 ? !parse_payload_index(text)
                      : !parse_payload_descriptor(text, kInfo, kDigest);
  };
  for (std::size_t which = 0; which < texts.size(); ++which) {
    const std::string& whole = texts[which];
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ static_cast<char>(1 + rng.below(255)));
      EXPECT_TRUE(is_refused(which, damaged)) << i;
      EXPECT_TRUE(is_refused(which, whole.substr(0, i))) << i;
      damaged = whole;
      damaged.insert(damaged.begin() + static_cast<std::ptrdiff_t>(i), 'x');
      EXPECT_TRUE(is_refused(which, damaged)) << i;
    }
    EXPECT_TRUE(is_refused(which, whole + "\n"));
  }
}

}  // namespace
}  // namespace foretune::problem_internal
