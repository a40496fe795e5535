// Handles of cuDNN for callers that bring none.
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "foretune/base/fork.h"
#include "foretune/cuda/cudnn_api.h"
#include "foretune/cuda/driver_api.h"

namespace foretune::dispatch_internal {

// Handles of the library that nobody uses at the moment.
class CudnnHandles {
 public:
  explicit CudnnHandles(std::shared_ptr<const cudnn::Api> api) : api_(std::move(api)) {}
  ~CudnnHandles() {
    for (const Free& free : free_) {
      api_->destroy(free.handle);
    }
  }
  CudnnHandles(const CudnnHandles&) = delete;
  CudnnHandles& operator=(const CudnnHandles&) = delete;

  // Calls use(handle) with a handle of the device that enqueues on the stream. Returns what `use`
  // returns, or the library's refusal to make a handle.
  template <class Use>
  int with(std::int32_t device, cuda::Stream stream, const Use& use) {
    Free mine = take(device, stream);
    int status = cudnn::kSuccess;
    if (mine.handle == nullptr) {
      status = api_->create(&mine.handle);
      mine.device = device;
    }
    if (status == cudnn::kSuccess && (!mine.has_stream || mine.stream != stream)) {
      status = api_->set_stream(mine.handle, stream);
      mine.stream = stream;
      mine.has_stream = status == cudnn::kSuccess;
    }
    if (status == cudnn::kSuccess) {
      status = use(mine.handle);
    }
    if (mine.handle != nullptr) {
      const std::lock_guard lock(mutex_);
      free_.push_back(mine);
    }
    return status;
  }

 private:
  struct Free {
    cudnn::Handle handle = nullptr;
    std::int32_t device = -1;
    cuda::Stream stream = nullptr;
    bool has_stream = false;
  };

  // Prefers a handle that enqueues there already.
  Free take(std::int32_t device, cuda::Stream stream) {
    const std::lock_guard lock(mutex_);
    std::size_t best = free_.size();
    for (std::size_t i = free_.size(); i-- > 0;) {
      if (free_[i].device == device) {
        best = i;
        if (free_[i].stream == stream) {
          break;
        }
      }
    }
    Free mine;
    if (best < free_.size()) {
      mine = free_[best];
      free_[best] = free_.back();
      free_.pop_back();
    }
    return mine;
  }

  std::shared_ptr<const cudnn::Api> api_;
  ForkSafeMutex mutex_;
  std::vector<Free> free_;
};

}  // namespace foretune::dispatch_internal
