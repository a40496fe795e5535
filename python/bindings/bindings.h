// Shared by the files of the extension module: error conversion, the interpreter lock, callbacks.
//
//   module.def("read", [](const std::string& path) {
//     return checked(without_lock([&] { return read_dataset(path); }));
//   });
//
// Thread safety: that of the bound functions; long ones release the interpreter lock.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "foretune/base/result.h"

namespace foretune {
struct Model;
}

namespace foretune::python {

namespace nb = nanobind;

// Raises the exception class of foretune._errors for the code, with the error's message.
[[noreturn]] void raise(const Error& error);

// Returns the value, or raises the error as an exception.
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

// Runs the caller's callback and pending signal handlers (Ctrl-C) while the library works without
// the lock. Keeps an exception that they raise and stops the work; raise_pending() raises it once
// the library has returned.
class Interruptions {
 public:
  // Calls `callback` with the result of `describe`; None is not called. Returns false when the work
  // must stop.
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

// Keeps exceptions of Python functions that the library calls while it scores or trains
// (registered_models.cc): the first one on this thread is raised once the library has returned.
class CallbackErrors {
 public:
  CallbackErrors();
  CallbackErrors(const CallbackErrors&) = delete;
  CallbackErrors& operator=(const CallbackErrors&) = delete;
  ~CallbackErrors();

  // Keeps the exception in the innermost object of this thread; without one, reports it as
  // unraisable. The caller holds the interpreter lock.
  static void keep(std::exception_ptr error);
  // Returns true when that object keeps an exception already.
  static bool is_pending();
  void raise_pending() const {
    if (pending_) {
      std::rethrow_exception(pending_);
    }
  }

 private:
  CallbackErrors* outer_;
  std::exception_ptr pending_;
};

// Does the same as without_lock() for work that may call Python functions; raises their exceptions.
template <class Work>
auto with_callbacks(const Work& work) {
  const CallbackErrors errors;
  auto out = without_lock(work);
  errors.raise_pending();
  return out;
}

// Returns true for a model whose features Python functions compute: the interpreter lock must be
// released before its selector takes locks of its own (features.cc).
bool may_call_python(const Model& model);

void bind_dataset(nb::module_& module);
void bind_journal(nb::module_& module);
void bind_choices(nb::module_& module);
void bind_collect(nb::module_& module);
void bind_cudnn(nb::module_& module);
void bind_convolutions(nb::module_& module);
void bind_sparse(nb::module_& module);
void bind_networks(nb::module_& module);
void bind_measuring(nb::module_& module);
void bind_models(nb::module_& module);
void bind_training(nb::module_& module);
void bind_tuning(nb::module_& module);
void bind_registered_models(nb::module_& module);
void bind_evaluation(nb::module_& module);
void bind_features(nb::module_& module);
void bind_foreign_models(nb::module_& module);
void bind_triton(nb::module_& module);
void bind_loops(nb::module_& module);
void bind_loop_policies(nb::module_& module);
void bind_loop_vector_environment(nb::module_& module);

}  // namespace foretune::python
