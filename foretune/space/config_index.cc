#include "foretune/space/config_index.h"

#include <algorithm>
#include <bit>

#include "foretune/base/check.h"

namespace foretune {
namespace {

constexpr std::uint32_t kEmpty = UINT32_MAX;

}  // namespace

ConfigIndex::ConfigIndex(std::span<const Config> configs)
    : configs_(configs), places_(std::bit_ceil(2 * configs.size() + 1), kEmpty) {
  FORETUNE_CHECK(configs.size() < kEmpty);
}

std::size_t ConfigIndex::place_of(std::span<const std::int32_t> words) const {
  // Takes one multiplication per value: values differ in few bits, and mix64() moves those down to
  // where the place is taken from.
  std::uint64_t hash = words.size();
  for (const std::int32_t word : words) {
    hash = (std::rotl(hash, 5) ^ static_cast<std::uint32_t>(word)) * 0x9e3779b97f4a7c15U;
  }
  const std::size_t mask = places_.size() - 1;
  std::size_t place = static_cast<std::size_t>(mix64(hash)) & mask;
  while (places_[place] != kEmpty) {
    const std::span<const std::int32_t> other = configs_[places_[place]].words.view();
    if (std::equal(other.begin(), other.end(), words.begin(), words.end())) {
      break;
    }
    place = (place + 1) & mask;
  }
  return place;
}

bool ConfigIndex::insert(std::uint32_t position) {
  std::uint32_t& place = places_[place_of(configs_[position].words.view())];
  if (place != kEmpty) {
    return false;
  }
  place = position;
  return true;
}

std::optional<std::uint32_t> ConfigIndex::find(std::span<const std::int32_t> words) const {
  if (places_.empty()) {
    return std::nullopt;
  }
  const std::uint32_t found = places_[place_of(words)];
  return found == kEmpty ? std::nullopt : std::optional(found);
}

}  // namespace foretune
