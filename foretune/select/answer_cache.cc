#include "foretune/select/answer_cache.h"

#include <algorithm>
#include <bit>

namespace foretune {

AnswerCache::AnswerCache(std::size_t sets, std::uint64_t tag_mask)
    : sets_(std::bit_ceil(std::max<std::size_t>(sets, 1))), tag_mask_(tag_mask) {
  set_mask_ = sets_.size() - 1;
}

void AnswerCache::insert(const Key& key, const Answer& answer) noexcept {
  if (key.size == 0) {
    return;
  }
  const std::uint64_t hash = hash_of(key);
  Set& set = sets_[hash & set_mask_];
  Slot& slot = set.slots[set.next.fetch_add(1, std::memory_order_relaxed) % set.slots.size()];
  std::uint64_t sequence = slot.sequence.load(std::memory_order_relaxed);
  // Somebody else writes here: the answer will be computed again.
  if ((sequence & 1U) != 0 ||
      !slot.sequence.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
    return;
  }
  slot.tag.store(hash & tag_mask_, std::memory_order_release);
  slot.size.store(key.size, std::memory_order_release);
  for (std::size_t i = 0; i < key.size; ++i) {
    slot.key[i].store(key.words[i], std::memory_order_release);
  }
  for (std::size_t i = 0; i < kAnswerWords; ++i) {
    slot.answer[i].store(answer[i], std::memory_order_release);
  }
  slot.sequence.store(sequence + 2, std::memory_order_release);
}

}  // namespace foretune
