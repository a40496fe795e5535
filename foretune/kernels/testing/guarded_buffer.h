// An array between two guard pages: a test's proof that nothing outside is read or written. It
// touches the page after it, or with kStart the page before it.
// Thread safety: plain values. For tests only.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/base/check.h"

namespace foretune {

enum class GuardSide : std::uint8_t { kEnd, kStart };

template <class Value>
class GuardedArray {
 public:
  GuardedArray(std::size_t count, GuardSide side) : count_(count) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inside = (count * sizeof(Value) + page - 1) / page * page + page;
    bytes_ = inside + 2 * page;
    void* const start = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FORETUNE_CHECK(start != MAP_FAILED);
    start_ = static_cast<std::byte*>(start);
    FORETUNE_CHECK(mprotect(start_ + page, inside, PROT_READ | PROT_WRITE) == 0);
    std::byte* const first =
        side == GuardSide::kStart ? start_ + page : start_ + page + inside - count * sizeof(Value);
    // Pages are aligned, and so is their end.
    values_ = reinterpret_cast<Value*>(first);
  }
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;
  ~GuardedArray() { munmap(start_, bytes_); }

  [[nodiscard]] Value* data() { return values_; }
  [[nodiscard]] const Value* data() const { return values_; }
  [[nodiscard]] std::span<Value> view() { return {values_, count_}; }
  [[nodiscard]] std::span<const Value> view() const { return {values_, count_}; }

 private:
  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0;
  Value* values_ = nullptr;
  std::size_t count_ = 0;
};
using GuardedBuffer = GuardedArray<float>;

}  // namespace foretune
