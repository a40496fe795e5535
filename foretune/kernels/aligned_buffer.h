// An array of floats on a cache-line boundary, for operands and packed blocks.
// Thread safety: as std::vector. Cost: one allocation; the content starts undefined.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "foretune/base/result.h"

namespace foretune {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;
  // Far beyond the memory of any machine that runs this; allocators may abort on absurd sizes.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 40U;

  AlignedBuffer() = default;
  // Errors: kUnsupported when the memory is not there.
  static Result<AlignedBuffer> create(std::size_t count) {
    AlignedBuffer buffer;
    if (count > kMaxBytes / sizeof(float)) {
      return fail(ErrorCode::kUnsupported, "a buffer of ", count, " floats is too large");
    }
    buffer.values_.reset(static_cast<float*>(
        ::operator new(count * sizeof(float), std::align_val_t{kAlignment}, std::nothrow)));
    if (buffer.values_ == nullptr) {
      return fail(ErrorCode::kUnsupported, "no memory for ", count, " floats");
    }
    buffer.size_ = count;
    return buffer;
  }

  [[nodiscard]] float* data() { return values_.get(); }
  [[nodiscard]] const float* data() const { return values_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<float> view() { return {values_.get(), size_}; }
  [[nodiscard]] std::span<const float> view() const { return {values_.get(), size_}; }

 private:
  struct Free {
    void operator()(float* values) const {
      ::operator delete(values, std::align_val_t{kAlignment});
    }
  };
  std::unique_ptr<float, Free> values_;
  std::size_t size_ = 0;
};

}  // namespace foretune
