#include "foretune/base/hash.h"

#include <bit>
#include <cstring>

#include "foretune/base/internal/crc32c_update.h"

namespace foretune {
namespace {

// Returns up to eight bytes as a number, the first one lowest.
std::uint64_t load_le(const std::byte* data, std::size_t count) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t value = 0;
  std::memcpy(&value, data, count);
  return value;
}

constexpr std::array<std::array<std::uint32_t, 256>, 8> make_crc_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    }
    tables[0][i] = crc;
  }
  for (std::size_t t = 1; t < 8; ++t) {
    for (std::size_t i = 0; i < 256; ++i) {
      const std::uint32_t previous = tables[t - 1][i];
      tables[t][i] = (previous >> 8U) ^ tables[0][previous & 0xffU];
    }
  }
  return tables;
}

constexpr auto kCrcTables = make_crc_tables();

}  // namespace

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed) {
  std::uint64_t hash = hash_combine(seed, bytes.size());
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    hash = hash_combine(hash, load_le(bytes.data() + i, 8));
  }
  if (i < bytes.size()) {
    hash = hash_combine(hash, load_le(bytes.data() + i, bytes.size() - i));
  }
  return hash;
}

std::uint64_t hash64(std::string_view text, std::uint64_t seed) {
  return hash64(bytes_of(text), seed);
}

std::string Digest::hex() const {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::uint64_t word : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) {
      out.push_back(kDigits[(word >> static_cast<unsigned>(shift)) & 15U]);
    }
  }
  return out;
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
  if (text.size() != 32) {
    return std::nullopt;
  }
  std::array<std::uint64_t, 2> words{};
  for (std::size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10U;
    } else {
      return std::nullopt;
    }
    words[i / 16] = (words[i / 16] << 4U) | digit;
  }
  return Digest{words[0], words[1]};
}

Digest Digest::of(std::span<const std::byte> bytes) {
  // hash64() with two seeds, side by side: each waits for its own last result, so both take hardly
  // longer than one, and the bytes are read once.
  Digest out{hash_combine(0x666f726574756e65U, bytes.size()),
             hash_combine(0x6469676573743132U, bytes.size())};
  const auto add = [&out](std::uint64_t word) {
    out.high = hash_combine(out.high, word);
    out.low = hash_combine(out.low, word);
  };
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    add(load_le(bytes.data() + i, 8));
  }
  if (i < bytes.size()) {
    add(load_le(bytes.data() + i, bytes.size() - i));
  }
  return out;
}

// Slicing by eight (Kounavis and Berry, 2005): eight table look-ups advance eight bytes.
std::uint32_t crc32c_by_tables(std::uint32_t crc, const std::byte* data, std::size_t size) {
  for (; size >= 8; size -= 8, data += 8) {
    const std::uint64_t word = load_le(data, 8) ^ crc;
    crc = 0;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) {
      crc ^= kCrcTables[7 - i][(word >> (8 * i)) & 0xffU];
    }
  }
  for (; size > 0; --size, ++data) {
    crc = (crc >> 8U) ^ kCrcTables[0][(crc ^ static_cast<std::uint32_t>(*data)) & 0xffU];
  }
  return crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  static const Crc32cUpdate update =
      crc32c_by_instruction() != nullptr ? crc32c_by_instruction() : &crc32c_by_tables;
  return ~update(~crc, bytes.data(), bytes.size());
}

}  // namespace foretune
