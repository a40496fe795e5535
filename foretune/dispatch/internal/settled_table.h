// The kernels of settled calls by a front end's own key, for front ends whose calls cannot wait for
// a lock. Values never change or go away, so readers follow plain pointers.
//
// Thread safety: find() and the readers of `value` take no lock; the others one of their own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "foretune/base/fork.h"

namespace foretune::dispatch_internal {

// `Key` is a plain value with == and hash().
template <class Key, class Value>
class SettledTable {
 public:
  struct Entry {
    Key key;
    std::atomic<const Value*> value{nullptr};
    Entry* next = nullptr;
  };

  explicit SettledTable(std::size_t most) : most_(most), buckets_(kBuckets) {}

  [[nodiscard]] Entry* find(const Key& key, std::uint64_t hash) const noexcept {
    Entry* entry = buckets_[hash % kBuckets].load(std::memory_order_acquire);
    while (entry != nullptr && !(entry->key == key)) {
      entry = entry->next;
    }
    return entry;
  }

  // The first value of a key stays. Does nothing when the table is full.
  void insert(const Key& key, std::uint64_t hash, std::shared_ptr<const Value> value) {
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= most_ || find(key, hash) != nullptr) {
      return;
    }
    std::atomic<Entry*>& bucket = buckets_[hash % kBuckets];
    Entry& entry = entries_.emplace_back();
    entry.key = key;
    entry.value.store(keep(std::move(value)), std::memory_order_relaxed);
    entry.next = bucket.load(std::memory_order_relaxed);
    bucket.store(&entry, std::memory_order_release);
  }

  [[nodiscard]] bool is_full() {
    const std::lock_guard lock(mutex_);
    return entries_.size() >= most_;
  }

  // Does nothing when somebody else has replaced `old` already.
  void replace(Entry& entry, const Value* old, std::shared_ptr<const Value> value) {
    const std::lock_guard lock(mutex_);
    if (entry.value.load(std::memory_order_relaxed) == old) {
      entry.value.store(keep(std::move(value)), std::memory_order_release);
    }
  }

 private:
  static constexpr std::size_t kBuckets = std::size_t{1} << 14U;

  const Value* keep(std::shared_ptr<const Value> value) {
    return values_.emplace_back(std::move(value)).get();
  }

  ForkSafeMutex mutex_;
  std::size_t most_;
  // A deque never moves its elements.
  std::deque<Entry> entries_;
  std::vector<std::shared_ptr<const Value>> values_;
  std::vector<std::atomic<Entry*>> buckets_;
};

}  // namespace foretune::dispatch_internal
