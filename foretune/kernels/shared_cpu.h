// The threads and buffers that all kernels of a family share.
// Thread safety: any number of threads. Cost: an uncontended lock.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "foretune/base/fork.h"
#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/kernels/aligned_buffer.h"

namespace foretune {

// One pool for all runs, made when the first run needs it. A pool runs one loop at a time, so runs
// with several threads take turns; a run with one thread never waits. A fork does not wait for the
// run whose turn it is: in the child the pool makes its threads anew.
class SharedPool {
 public:
  explicit SharedPool(std::size_t threads) : threads_(threads) {}
  ThreadPool& pool() {
    const std::lock_guard lock(mutex_);
    if (pool_ == nullptr) {
      pool_ = std::make_unique<ThreadPool>(threads_);
    }
    return *pool_;
  }
  ForkSafeTurn& turn() { return turn_; }

 private:
  std::size_t threads_;
  ForkSafeMutex mutex_;
  ForkSafeTurn turn_;
  std::unique_ptr<ThreadPool> pool_;
};

// Packing buffers that kernels borrow for a call. There are as many as were ever needed at once,
// each as large as the largest call needed.
class Workspaces {
 public:
  Result<AlignedBuffer> borrow(std::size_t size) {
    AlignedBuffer buffer;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        buffer = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (buffer.size() >= size) {
      return buffer;
    }
    return AlignedBuffer::create(size);
  }
  void give_back(AlignedBuffer buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  ForkSafeMutex mutex_;
  std::vector<AlignedBuffer> free_;
};

// The pool and the buffers that the kernels and runs of one family share.
struct SharedCpu {
  explicit SharedCpu(std::size_t threads) : pool(threads) {}
  SharedPool pool;
  Workspaces workspaces;
};

}  // namespace foretune
