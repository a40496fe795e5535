// Where actions lead to, by the numbers of nests: a hash table in one piece of memory, so that
// finding an entry touches one line of the cache.
//
// Thread safety: one thread at a time. Cost: 16 bytes an entry, twice that at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace foretune::loop::gym {

class TransitionTable {
 public:
  TransitionTable() : entries_(kSmallest) {}

  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t from, std::size_t action) const {
    const Entry& entry = entries_[place_of(entries_, key_of(from, action))];
    return entry.key == kNone ? std::nullopt : std::optional(entry.to);
  }
  // The pair is not in the table yet.
  void add(std::uint32_t from, std::size_t action, std::uint32_t to) {
    if (2 * ++size_ > entries_.size()) {
      std::vector<Entry> larger(2 * entries_.size());
      for (const Entry& entry : entries_) {
        if (entry.key != kNone) {
          larger[place_of(larger, entry.key)] = entry;
        }
      }
      entries_.swap(larger);
    }
    const std::uint64_t key = key_of(from, action);
    entries_[place_of(entries_, key)] = {.key = key, .to = to};
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kSmallest = 64;  // a power of two
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  struct Entry {
    std::uint64_t key = kNone;
    std::uint32_t to = 0;
  };
  static std::uint64_t key_of(std::uint32_t from, std::size_t action) {
    return (std::uint64_t{from} << 16U) | action;
  }
  // Where the key is, or would be.
  static std::size_t place_of(const std::vector<Entry>& entries, std::uint64_t key) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
    const std::size_t mask = entries.size() - 1;
    std::size_t place = ((key * kOdd) >> 32U) & mask;
    while (entries[place].key != kNone && entries[place].key != key) {
      place = (place + 1) & mask;
    }
    return place;
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace foretune::loop::gym
