// Bindings for foretune.torch.convolutions: the addresses of the C functions, which it calls
// through ctypes.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <map>
#include <string>

#include "foretune/dispatch/cudnn_convolution.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

std::map<std::string, std::uintptr_t> cudnn_functions() {
  const auto address = [](auto* function) { return reinterpret_cast<std::uintptr_t>(function); };
  return {{"foretune_cudnn_open_with", address(&foretune_cudnn_open_with)},
          {"foretune_cudnn_prepare", address(&foretune_cudnn_prepare)},
          {"foretune_cudnn_plan_facts", address(&foretune_cudnn_plan_facts)},
          {"foretune_cudnn_plan_text", address(&foretune_cudnn_plan_text)},
          {"foretune_cudnn_run", address(&foretune_cudnn_run)},
          {"foretune_cudnn_save", address(&foretune_cudnn_save)},
          {"foretune_cudnn_release", address(&foretune_cudnn_release)}};
}

}  // namespace

void bind_cudnn(nb::module_& module) {
  module.def("cudnn_functions", &cudnn_functions,
             "Returns the addresses of the functions of dispatch/cudnn_convolution.h by name.");
}

}  // namespace foretune::python
