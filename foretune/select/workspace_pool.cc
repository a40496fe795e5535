#include "foretune/select/workspace_pool.h"

#include <bit>
#include <new>
#include <thread>

namespace foretune {
namespace {

std::byte* allocate(std::size_t bytes) noexcept {
  return static_cast<std::byte*>(
      ::operator new(bytes, std::align_val_t{WorkspacePool::kAlignment}, std::nothrow));
}

}  // namespace

WorkspacePool::WorkspacePool(std::size_t bytes) : size_(bytes) {
  data_[0] = allocate(size_);
  if (data_[0] == nullptr) {
    throw std::bad_alloc();
  }
  join_forks();
}

WorkspacePool::~WorkspacePool() {
  leave_forks();
  for (std::byte* data : data_) {
    ::operator delete(data, std::align_val_t{kAlignment});
  }
}

// Takes the lowest free workspace among those allowed.
std::size_t WorkspacePool::claim(std::uint64_t allowed) noexcept {
  std::uint64_t busy = busy_.load(std::memory_order_relaxed);
  while (true) {
    const std::uint64_t free = ~busy & allowed;
    if (free == 0) {
      std::this_thread::yield();
      busy = busy_.load(std::memory_order_relaxed);
      continue;
    }
    const std::uint64_t bit = free & (0 - free);
    if (busy_.compare_exchange_weak(busy, busy | bit, std::memory_order_acquire,
                                    std::memory_order_relaxed)) {
      return static_cast<std::size_t>(std::countr_zero(bit));
    }
  }
}

WorkspacePool::Lease WorkspacePool::borrow() noexcept {
  std::size_t index = claim(~std::uint64_t{0});
  if (data_[index] == nullptr) {
    data_[index] = allocate(size_);
    if (data_[index] == nullptr) {
      busy_.fetch_and(~(std::uint64_t{1} << index), std::memory_order_release);
      index = claim(made_.load(std::memory_order_relaxed));
    } else {
      made_.fetch_or(std::uint64_t{1} << index, std::memory_order_relaxed);
    }
  }
  return {*this, index, data_[index]};
}

}  // namespace foretune
