// What the files of the extension module share: how errors and the interpreter lock cross the edge.
//
//   module.def("read", [](const std::string& path) {
//     return checked(without_lock([&] { return read_dataset(path); }));
//   });
//
// Thread safety: as the functions that are bound; where they take long, the lock is given away.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "foretune/base/result.h"

namespace foretune::python {

namespace nb = nanobind;

// Raises the class of foretune._errors that stands for the code, with the sentence as its text.
[[noreturn]] void raise(const Error& error);

// The value, or the exception.
template <class T>
T checked(Result<T> result) {
  if (!result) {
    raise(result.error());
  }
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

template <class Work>
auto without_lock(const Work& work) {
  const nb::gil_scoped_release released;
  return work();
}

// Runs what Python has to say while the library works without the lock: a callback of the caller's
// and pending signals (Ctrl-C). An exception there is kept, the work told to stop, and raised once
// the library is back.
class Interruptions {
 public:
  // `callback`: called with what `describe` makes; None does nothing. False: stop.
  template <class Describe>
  bool poll(const nb::object& callback, const Describe& describe) {
    if (pending_) {
      return false;
    }
    const nb::gil_scoped_acquire acquired;
    try {
      if (PyErr_CheckSignals() != 0) {
        throw nb::python_error();
      }
      if (!callback.is_none()) {
        callback(describe());
      }
    } catch (...) {
      pending_ = std::current_exception();
    }
    return !pending_;
  }
  void raise_pending() const {
    if (pending_) {
      std::rethrow_exception(pending_);
    }
  }

 private:
  std::exception_ptr pending_;
};

void bind_dataset(nb::module_& module);
void bind_collect(nb::module_& module);
void bind_models(nb::module_& module);
void bind_evaluation(nb::module_& module);
void bind_triton(nb::module_& module);
void bind_loops(nb::module_& module);

}  // namespace foretune::python
