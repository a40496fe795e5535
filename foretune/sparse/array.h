// An array on a cache-line boundary whose content starts undefined, for the parts of a sparse
// matrix: filling a vector with zeros first costs as much as copying the part.
// Thread safety: as std::vector. Cost: one allocation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "foretune/base/result.h"

namespace foretune::sparse {

template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t kAlignment = 64;
  // Far beyond the memory of any machine that runs this; allocators may abort on absurd sizes.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 40U;

  Array() = default;
  Array(Array&& other) noexcept
      : values_(std::move(other.values_)), size_(std::exchange(other.size_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    values_ = std::move(other.values_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  // Errors: kUnsupported when the memory is not there, with the bytes.
  static Result<Array> create(std::size_t count) {
    Array array;
    if (count <= kMaxBytes / sizeof(T)) {
      // Kernels may read a whole vector at the end of an array.
      array.values_.reset(static_cast<T*>(::operator new(
          count * sizeof(T) + kAlignment, std::align_val_t{kAlignment}, std::nothrow)));
    }
    if (array.values_ == nullptr) {
      return fail(ErrorCode::kUnsupported, "no memory for ", count, " values of ", sizeof(T),
                  " bytes");
    }
    array.size_ = count;
    return array;
  }
  static Result<Array> zeros(std::size_t count) {
    FORETUNE_TRY(Array array, create(count));
    std::fill_n(array.data(), count, T{});
    return array;
  }

  // Keeps the first `count` values, and all the memory.
  void shorten(std::size_t count) { size_ = std::min(size_, count); }

  [[nodiscard]] T* data() { return values_.get(); }
  [[nodiscard]] const T* data() const { return values_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return size_ * sizeof(T); }
  [[nodiscard]] std::span<T> view() { return {values_.get(), size_}; }
  [[nodiscard]] std::span<const T> view() const { return {values_.get(), size_}; }
  T& operator[](std::size_t index) { return values_.get()[index]; }
  const T& operator[](std::size_t index) const { return values_.get()[index]; }

 private:
  struct Free {
    void operator()(T* values) const { ::operator delete(values, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<T, Free> values_;
  std::size_t size_ = 0;
};

}  // namespace foretune::sparse
