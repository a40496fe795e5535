// Shared by the bindings of dispatchers for arrays on this CPU.
//
// Thread safety: as bindings.h.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "foretune/dispatch/gemm_dispatch.h"
#include "python/bindings/bindings.h"

namespace foretune::python {

template <class FrontEnd>
std::unique_ptr<FrontEnd> make_dispatcher(int threads, int measure_top,
                                          const std::optional<Model>& model) {
  CpuDispatchOptions options;
  options.threads = threads;
  options.model = model;
  options.dispatch.measure_top = measure_top;
  options.dispatch.keep_trials = measure_top > 1;
  return checked(without_lock([&] { return FrontEnd::for_this_cpu(std::move(options)); }));
}

// Binds the constructor and the files of choices. `family` is that of the trials.
template <class FrontEnd>
void bind_dispatcher(nb::class_<FrontEnd>& dispatcher, const char* family) {
  dispatcher
      .def(nb::new_(&make_dispatcher<FrontEnd>), nb::arg("threads"), nb::arg("measure_top"),
           nb::arg("model").none())
      .def(
          "load_choices",
          [](FrontEnd& of, const std::string& path) {
            return checked(without_lock([&] { return of.dispatcher().load_choices(path); }));
          },
          nb::arg("path"))
      .def(
          "append_trials",
          [family](FrontEnd& of, const std::string& path) {
            return checked(
                without_lock([&] { return of.dispatcher().append_trials(path, family); }));
          },
          nb::arg("path"));
}

}  // namespace foretune::python
