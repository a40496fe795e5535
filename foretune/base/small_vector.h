// A vector of trivially copyable values whose first N live inside the object: configs and problems
// are copied by the million, and nearly all of them are short.
// Thread safety: as std::vector. Cost: no allocation up to N values.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "foretune/base/check.h"

namespace foretune {

template <class T, std::size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> values) { assign(std::span(values.begin(), values.size())); }
  explicit SmallVector(std::span<const T> values) { assign(values); }
  explicit SmallVector(std::size_t count, T value = T{}) { resize(count, value); }
  SmallVector(const SmallVector& other) { assign(other.view()); }
  SmallVector(SmallVector&& other) noexcept { steal(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      assign(other.view());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      steal(other);
    }
    return *this;
  }
  ~SmallVector() = default;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  T* data() { return heap_ ? heap_.get() : inline_; }
  [[nodiscard]] const T* data() const { return heap_ ? heap_.get() : inline_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size_; }
  T& operator[](std::size_t i) {
    FORETUNE_DCHECK(i < size_);
    return data()[i];
  }
  const T& operator[](std::size_t i) const {
    FORETUNE_DCHECK(i < size_);
    return data()[i];
  }
  [[nodiscard]] std::span<const T> view() const { return {data(), size_}; }
  [[nodiscard]] std::span<T> view() { return {data(), size_}; }

  void push_back(T value) {
    reserve(size_ + 1);
    data()[size_++] = value;
  }
  void resize(std::size_t count, T value = T{}) {
    reserve(count);
    for (std::size_t i = size_; i < count; ++i) {
      data()[i] = value;
    }
    size_ = static_cast<std::uint32_t>(count);
  }
  void clear() { size_ = 0; }

  bool operator==(const SmallVector& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }
  auto operator<=>(const SmallVector& other) const {
    return std::lexicographical_compare_three_way(begin(), end(), other.begin(), other.end());
  }

 private:
  void reserve(std::size_t count) {
    if (count <= capacity_) {
      return;
    }
    const std::size_t capacity = std::max(count, 2 * static_cast<std::size_t>(capacity_));
    auto bigger = std::make_unique<T[]>(capacity);
    std::copy_n(data(), size_, bigger.get());
    heap_ = std::move(bigger);
    capacity_ = static_cast<std::uint32_t>(capacity);
  }
  void assign(std::span<const T> values) {
    size_ = 0;
    reserve(values.size());
    std::copy(values.begin(), values.end(), data());
    size_ = static_cast<std::uint32_t>(values.size());
  }
  void steal(SmallVector& other) {
    heap_ = std::move(other.heap_);
    std::copy_n(other.inline_, N, inline_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, static_cast<std::uint32_t>(N));
  }

  T inline_[N] =
      {};  // NOLINT(modernize-avoid-c-arrays): std::array would be value-initialised twice
  std::unique_ptr<T[]> heap_;  // NOLINT(modernize-avoid-c-arrays)
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = static_cast<std::uint32_t>(N);
};

}  // namespace foretune
