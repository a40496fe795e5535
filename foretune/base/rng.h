// The only source of randomness: passed in, seeded by the caller, the same on every platform.
// xoshiro256** (Blackman and Vigna 2018), seeded through SplitMix64. The distributions are ours,
// because the standard library's differ between implementations.
// Thread safety: one Rng per thread; split() makes independent ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace foretune {

class Rng {
 public:
  explicit Rng(std::uint64_t seed);

  std::uint64_t next();
  // Returns a uniform number in [0, bound), bound > 0, without modulo bias (Lemire 2019).
  std::uint64_t below(std::uint64_t bound);
  // Returns a uniform number in [low, high], both ends included.
  std::int64_t between(std::int64_t low, std::int64_t high);
  double uniform();  // [0, 1)
  double normal();   // mean 0, standard deviation 1 (Marsaglia's polar method)
  // Returns an independent generator for a sub-task, named so that adding one never shifts another.
  [[nodiscard]] Rng split(std::uint64_t name) const;

  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[below(i)]);
    }
  }

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace foretune
