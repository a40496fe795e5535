// Finds configs of a list by their values: a hash table of positions, open addressing. Building it
// takes a few nanoseconds a value, a look-up allocates nothing.
//
//   ConfigIndex index(pool);
//   for (std::uint32_t i = 0; i < pool.size(); ++i) index.insert(i);
//   index.find(words)
//
// Thread safety: as a standard container.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foretune/space/config.h"

namespace foretune {

class ConfigIndex {
 public:
  ConfigIndex() = default;
  // Makes an empty index with room for all of `configs`, which must outlive it and stay unchanged.
  explicit ConfigIndex(std::span<const Config> configs);

  // Returns false when the index has a config with the same values already.
  bool insert(std::uint32_t position);
  [[nodiscard]] std::optional<std::uint32_t> find(std::span<const std::int32_t> words) const;

 private:
  // Returns the place of these values, or the empty place where they belong.
  [[nodiscard]] std::size_t place_of(std::span<const std::int32_t> words) const;

  std::span<const Config> configs_;
  std::vector<std::uint32_t> places_;  // positions; a power of two of them, at most half in use
};

}  // namespace foretune
