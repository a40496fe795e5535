// Workspaces that threads borrow for the length of a call. The first is made with the pool, each
// other at the first moment that many threads are inside at once; after that nothing is allocated.
//
//   const WorkspacePool::Lease lease = pool.borrow();
//   use(lease.bytes());
//
// Thread safety: borrow from any thread. Cost: two atomic operations. More than 64 borrowers at
// once (or fewer, when memory is exhausted) wait for one another. In a forked child all that other
// threads had borrowed is free.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foretune/base/fork.h"

namespace foretune {

class WorkspacePool final : private ForkParticipant {
 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kMaxWorkspaces = 64;

  class Lease {
   public:
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_.busy_.fetch_and(~(std::uint64_t{1} << index_), std::memory_order_release); }
    [[nodiscard]] std::span<std::byte> bytes() const { return {data_, pool_.size_}; }

   private:
    friend class WorkspacePool;
    Lease(WorkspacePool& pool, std::size_t index, std::byte* data)
        : pool_(pool), index_(index), data_(data) {}
    WorkspacePool& pool_;
    std::size_t index_;
    std::byte* data_;
  };

  // Throws std::bad_alloc when there is no memory for the first workspace.
  explicit WorkspacePool(std::size_t bytes);
  ~WorkspacePool() override;

  [[nodiscard]] Lease borrow() noexcept;

 private:
  void renew_in_child() noexcept override { busy_.store(0); }
  [[nodiscard]] std::size_t claim(std::uint64_t allowed) noexcept;

  std::size_t size_;
  std::atomic<std::uint64_t> busy_{0};
  // Written by whoever holds the bit of the same index.
  std::array<std::byte*, kMaxWorkspaces> data_{};
  std::atomic<std::uint64_t> made_{1};
};

}  // namespace foretune
