// Shared by the bindings of loop nests and of their environment.
// Thread safety: the caller holds the interpreter lock.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "foretune/base/result.h"
#include "foretune/loop/lowering.h"
#include "python/bindings/bindings.h"

namespace foretune::python {

// Holds the contiguous memory of an array; the array keeps its size and lives as long as this
// object. Uses the buffer protocol, which takes 0.1 us; nanobind's arrays take 1 us.
class ArrayMemory {
 public:
  enum Access : int { kRead = PyBUF_C_CONTIGUOUS, kWrite = PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE };

  ArrayMemory(nb::handle array, Access access) {
    if (PyObject_GetBuffer(array.ptr(), &view_, access) != 0) {
      throw nb::python_error();
    }
  }
  ~ArrayMemory() { PyBuffer_Release(&view_); }
  ArrayMemory(const ArrayMemory&) = delete;
  ArrayMemory& operator=(const ArrayMemory&) = delete;
  // The moved-from object stays valid: releasing an empty buffer does nothing.
  ArrayMemory(ArrayMemory&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  ArrayMemory& operator=(ArrayMemory&&) = delete;

  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(view_.len); }
  // The caller must know that the array has this element type.
  [[nodiscard]] std::span<float> floats() const {
    return {static_cast<float*>(view_.buf), bytes() / sizeof(float)};
  }
  [[nodiscard]] std::span<bool> bools() const {
    return {static_cast<bool*>(view_.buf), bytes() / sizeof(bool)};
  }

 private:
  Py_buffer view_{};
};

// Returns the instruction set of a name, even when this CPU lacks it.
Result<loop::VectorUnit> known_unit(const std::string& isa);
// Returns the instruction set to compile for on this CPU; an empty name takes the best one.
Result<loop::VectorUnit> unit_of_this_cpu(const std::string& isa);

void bind_loop_environment(nb::module_& module);

}  // namespace foretune::python
