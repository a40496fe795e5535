// Hashes that are part of file formats: their values must never change.
// hash64 is for tables and identifiers, Digest for naming payloads, crc32c for detecting damage.
// Thread safety: free functions without state.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace foretune {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection with full avalanche.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30U;
  x *= 0xbf58476d1ce4e5b9U;
  x ^= x >> 27U;
  x *= 0x94d049bb133111ebU;
  x ^= x >> 31U;
  return x;
}

[[nodiscard]] constexpr std::uint64_t hash_combine(std::uint64_t seed, std::uint64_t value) {
  return mix64(seed ^ (mix64(value + 0x9e3779b97f4a7c15U) + (seed << 6U)));
}

[[nodiscard]] std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
[[nodiscard]] std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0);

// 128 bits that name a payload by its content. Not cryptographic.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  [[nodiscard]] bool is_zero() const { return high == 0 && low == 0; }
  [[nodiscard]] std::string hex() const;
  static std::optional<Digest> from_hex(std::string_view text);
  static Digest of(std::span<const std::byte> bytes);
  auto operator<=>(const Digest&) const = default;
};

// Returns the CRC-32C (Castagnoli), continued from `crc` (0 to begin).
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace foretune
