// Makes NumPy arrays that own the library's results.
// Thread safety: the caller holds the interpreter lock.
#pragma once

#include <nanobind/ndarray.h>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "python/bindings/bindings.h"

namespace foretune::python {

template <std::size_t Dimensions, class Value>
nb::ndarray<nb::numpy, Value, nb::ndim<Dimensions>> owned_array(
    std::vector<Value> values, const std::array<std::size_t, Dimensions>& shape) {
  auto owned = std::make_unique<std::vector<Value>>(std::move(values));
  owned->reserve(1);  // an array needs an address
  Value* data = owned->data();
  const nb::capsule owner(owned.release(), [](void* pointer) noexcept {
    delete static_cast<std::vector<Value>*>(pointer);  // NOLINT(cppcoreguidelines-owning-memory)
  });
  return {data, Dimensions, shape.data(), owner};
}

template <class Value>
auto array(std::vector<Value> values) {
  const std::size_t size = values.size();
  return owned_array<1>(std::move(values), {size});
}

template <class Value>
auto matrix(std::vector<Value> values, std::size_t rows, std::size_t columns) {
  return owned_array<2>(std::move(values), {rows, columns});
}

}  // namespace foretune::python
