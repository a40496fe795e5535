// Answers by problem: a bounded table that any number of threads read and fill without locks. A
// slot is a sequence lock whose words are all atomic: readers never wait, a writer that meets
// another writer gives up. Keys are compared in full; a hash alone never answers.
//
//   AnswerCache cache(1024);
//   if (!cache.find(key, answer)) { answer = compute(); cache.insert(key, answer); }
//
// Thread safety: find and insert from any thread; in a forked child a slot that another thread was
// writing at the fork stays empty. Cost: about 10 ns, no allocation; four slots to a
// set, the oldest insertion goes first.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace foretune {

class AnswerCache {
 public:
  static constexpr std::size_t kMaxKeyWords = 12;
  static constexpr std::size_t kAnswerWords = 3;
  using Answer = std::array<std::uint64_t, kAnswerWords>;

  struct Key {
    std::array<std::uint64_t, kMaxKeyWords> words{};
    std::size_t size = 0;  // 0: not to be cached
    void add(std::uint64_t word) { words[size++] = word; }
  };

  // `sets` is rounded up to a power of two. Only the bits of `tag_mask` of a hash are kept beside
  // an answer: 0 makes all keys of a set look alike until their words are compared.
  explicit AnswerCache(std::size_t sets, std::uint64_t tag_mask = ~std::uint64_t{0});

  [[nodiscard]] bool find(const Key& key, Answer& answer) const noexcept {
    const std::uint64_t hash = hash_of(key);
    const Set& set = sets_[hash & set_mask_];
    for (const Slot& slot : set.slots) {
      if (read(slot, key, hash & tag_mask_, answer)) {
        return true;
      }
    }
    return false;
  }

  void insert(const Key& key, const Answer& answer) noexcept;

 private:
  using Word = std::atomic<std::uint64_t>;
  struct alignas(64) Slot {
    Word sequence{0};  // odd while a writer is at work, 0 when never written
    Word tag{0};
    Word size{0};
    std::array<Word, kAnswerWords> answer{};
    std::array<Word, kMaxKeyWords> key{};
  };
  struct Set {
    std::array<Slot, 4> slots;
    Word next{0};
  };

  static std::uint64_t hash_of(const Key& key) {
    std::uint64_t hash = key.size;
    for (std::size_t i = 0; i < key.size; ++i) {
      hash = (hash ^ key.words[i]) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 29U;
    }
    return hash ^ (hash >> 32U);
  }

  // Every word is read with acquire order. One that a newer writer stored therefore makes that
  // writer's odd sequence visible to the last load, and the answer is thrown away.
  static bool read(const Slot& slot, const Key& key, std::uint64_t tag, Answer& answer) {
    const std::uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
    if (sequence == 0 || (sequence & 1U) != 0 || slot.tag.load(std::memory_order_acquire) != tag ||
        slot.size.load(std::memory_order_acquire) != key.size) {
      return false;
    }
    for (std::size_t i = 0; i < key.size; ++i) {
      if (slot.key[i].load(std::memory_order_acquire) != key.words[i]) {
        return false;
      }
    }
    for (std::size_t i = 0; i < kAnswerWords; ++i) {
      answer[i] = slot.answer[i].load(std::memory_order_acquire);
    }
    return slot.sequence.load(std::memory_order_relaxed) == sequence;
  }

  std::vector<Set> sets_;
  std::uint64_t set_mask_ = 0;
  std::uint64_t tag_mask_;
};

}  // namespace foretune
