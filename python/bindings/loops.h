// What the bindings of loop nests and of their environment share.
// Thread safety: with the interpreter's lock.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "foretune/base/result.h"
#include "foretune/loop/lowering.h"
#include "python/bindings/bindings.h"

namespace foretune::python {

// The contiguous memory of an array, which keeps its size and stays as long as this does. The
// buffer protocol takes a tenth of a microsecond, where nanobind's arrays take one.
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
  // Releasing a buffer of nothing does nothing.
  ArrayMemory(ArrayMemory&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  ArrayMemory& operator=(ArrayMemory&&) = delete;

  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(view_.len); }
  // The caller knows that the array is one of these.
  [[nodiscard]] std::span<float> floats() const {
    return {static_cast<float*>(view_.buf), bytes() / sizeof(float)};
  }
  [[nodiscard]] std::span<bool> bools() const {
    return {static_cast<bool*>(view_.buf), bytes() / sizeof(bool)};
  }

 private:
  Py_buffer view_{};
};

// The instruction set by name, whether or not this CPU has it.
Result<loop::VectorUnit> known_unit(const std::string& isa);
// The one to compile for here; of an empty name the best one.
Result<loop::VectorUnit> unit_of_this_cpu(const std::string& isa);

void bind_loop_environment(nb::module_& module);

}  // namespace foretune::python
