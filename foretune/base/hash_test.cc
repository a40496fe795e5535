// The golden values were computed by a separate program in another language; they are part of file
// formats and must never change.
#include "foretune/base/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/internal/crc32c_update.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

TEST(Mix, GoldenValues) {
  EXPECT_EQ(mix64(0), 0U);
  EXPECT_EQ(mix64(1), 0x5692161d100b05e5U);
  EXPECT_EQ(hash_combine(1, 2), 0xdf3c3169729aae01U);
  // The published first output of SplitMix64 for this seed.
  EXPECT_EQ(mix64(1234567 + 0x9e3779b97f4a7c15U), 6457827717110365317U);
}

TEST(Hash64, GoldenValues) {
  EXPECT_EQ(hash64(""), 0x48218226ff3cd4bfU);
  EXPECT_EQ(hash64("a"), 0x5ad40065e6d816b5U);
  EXPECT_EQ(hash64("foretune"), 0x653413e74d265959U);
  EXPECT_EQ(hash64("gemm op=mm m=128"), 0x36eae50efac8afbaU);
  EXPECT_EQ(hash64("gemm op=mm m=128", 1), 0x4f2ce4726073af54U);
}

TEST(Hash64, TellsZeroBytesOfDifferentCountApart) {
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size <= 64; ++size) {
    seen.insert(hash64(std::string(size, '\0')));
  }
  EXPECT_EQ(seen.size(), 65U);
}

TEST(Hash64, OneFlippedBitChangesAboutHalfOfTheResult) {
  constexpr std::uint64_t kSeed = 3;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  int flipped = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::string text(1 + rng.below(40), '\0');
    for (char& c : text) {
      c = static_cast<char>(rng.below(256));
    }
    const std::uint64_t before = hash64(text);
    char& changed = text[rng.below(text.size())];
    changed = static_cast<char>(static_cast<unsigned char>(changed) ^ (1U << rng.below(8)));
    flipped += std::popcount(before ^ hash64(text));
  }
  EXPECT_NEAR(static_cast<double>(flipped) / kTrials, 32.0, 0.5);
}

// Files are named by the digest: a faster computation must give the same value.
TEST(Digest, IsTwoHashesOfTheBytes) {
  Rng rng(3);
  for (std::size_t size = 0; size < 40; ++size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(rng.below(256));
    }
    EXPECT_EQ(Digest::of(bytes),
              (Digest{hash64(bytes, 0x666f726574756e65U), hash64(bytes, 0x6469676573743132U)}));
  }
}

TEST(Digest, TextFormGoldenAndBack) {
  const Digest digest = Digest::of(bytes_of("foretune"));
  EXPECT_EQ(digest.hex(), "55d53e9c4a198f6479aff485e9655f5e");
  EXPECT_EQ(Digest::from_hex(digest.hex()), digest);
  EXPECT_TRUE(Digest{}.is_zero());
  EXPECT_FALSE(digest.is_zero());
  EXPECT_EQ(Digest{}.hex(), std::string(32, '0'));
}

TEST(Digest, RefusesWhatIsNotThirtyTwoHexDigits) {
  for (const char* text :
       {"", "0", "55d53e9c4a198f6479aff485e9655f5", "55d53e9c4a198f6479aff485e9655f5e0",
        "55D53E9C4A198F6479AFF485E9655F5E", "5 d53e9c4a198f6479aff485e9655f5e"}) {
    EXPECT_FALSE(Digest::from_hex(text)) << text;
  }
}

// One bit at a time, from the definition of the reflected polynomial.
std::uint32_t crc32c_reference(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1U) != 0 ? (crc >> 1U) ^ 0x82f63b78U : crc >> 1U;
    }
  }
  return ~crc;
}

TEST(Crc32c, PublishedVectors) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43U);
  std::vector<std::byte> ascending;
  for (unsigned i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<std::byte>(i));
  }
  EXPECT_EQ(crc32c(ascending), 0x46dd794eU);
}

TEST(Crc32c, EqualsTheBitwiseReferenceAndContinues) {
  constexpr std::uint64_t kSeed = 5;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<std::byte> bytes(rng.below(100));
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(rng.below(256));
    }
    const std::uint32_t whole = crc32c(bytes);
    ASSERT_EQ(whole, crc32c_reference(bytes));
    ASSERT_EQ(~crc32c_by_tables(~0U, bytes.data(), bytes.size()), whole);
    if (crc32c_by_instruction() != nullptr) {
      ASSERT_EQ(~crc32c_by_instruction()(~0U, bytes.data(), bytes.size()), whole);
    }
    const std::span<const std::byte> all(bytes);
    const std::size_t cut = rng.below(bytes.size() + 1);
    ASSERT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), whole);
  }
}

}  // namespace
}  // namespace foretune
