#include "foretune/base/rng.h"

#include <bit>
#include <cmath>

#include "foretune/base/check.h"
#include "foretune/base/hash.h"

namespace foretune {

Rng::Rng(std::uint64_t seed) : state_{} {
  for (std::uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15U;
    word = mix64(seed);
  }
}

std::uint64_t Rng::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Rng::below(std::uint64_t bound) {
  FORETUNE_CHECK(bound > 0);
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) {
      product = static_cast<Wide>(next()) * bound;
    }
  }
  return static_cast<std::uint64_t>(product >> 64U);
}

std::int64_t Rng::between(std::int64_t low, std::int64_t high) {
  FORETUNE_CHECK(low <= high);
  const std::uint64_t width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t offset = width == UINT64_MAX ? next() : below(width + 1);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

double Rng::uniform() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

double Rng::normal() {
  while (true) {
    const double u = 2 * uniform() - 1;
    const double v = 2 * uniform() - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) {
      return u * std::sqrt(-2 * std::log(s) / s);
    }
  }
}

Rng Rng::split(std::uint64_t name) const {
  return Rng(hash_combine(state_[0] ^ std::rotl(state_[3], 23), name));
}

}  // namespace foretune
