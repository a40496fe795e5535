// A table of rows that a program may extend while it runs: the built-in rows first, then those of
// plug-ins, in the order in which they were added.
//
//   static Registry<FamilyEntry> table({&cpu_gemm_family(), &null_family()});
//   table.add(std::make_unique<FamilyEntry>(entry), is_same_name);
//   for (const FamilyEntry* entry : table.rows()) ...
//
// Rows never move and are never removed, and a span stays valid for ever; it does not show rows
// that are added after it was taken.
// Thread safety: any number of readers, without a lock, while other threads add rows. Cost: reading
// is one atomic load; adding copies the list of pointers, and every list is kept.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace foretune {

template <typename Row>
class Registry {
 public:
  // The built-in rows are not owned, and outlive the table.
  explicit Registry(std::vector<const Row*> built_in) { publish(std::move(built_in)); }
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  [[nodiscard]] std::span<const Row* const> rows() const {
    return *current_.load(std::memory_order_acquire);
  }

  // Adds the row unless `is_same(other)` is true for an existing row. Returns true when it was
  // added.
  template <typename IsSame>
  bool add(std::unique_ptr<const Row> row, const IsSame& is_same) {
    const std::lock_guard lock(mutex_);
    std::vector<const Row*> next = lists_.back();
    if (std::any_of(next.begin(), next.end(), [&](const Row* known) { return is_same(*known); })) {
      return false;
    }
    next.push_back(owned_.emplace_back(std::move(row)).get());
    publish(std::move(next));
    return true;
  }

 private:
  void publish(std::vector<const Row*> rows) {
    current_.store(&lists_.emplace_back(std::move(rows)), std::memory_order_release);
  }

  std::mutex mutex_;
  std::deque<std::unique_ptr<const Row>> owned_;
  std::deque<std::vector<const Row*>> lists_;  // every list so far: threads may still read them
  std::atomic<const std::vector<const Row*>*> current_{nullptr};
};

}  // namespace foretune
