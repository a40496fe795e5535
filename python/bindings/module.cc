// The extension module foretune._foretune, internal to the package: its Python files check the
// arguments and document the interface.
#include <nanobind/stl/string.h>

#include <string>

#include "foretune/version.h"
#include "python/bindings/bindings.h"

namespace foretune::python {

void raise(const Error& error) {
  const nb::object type = nb::module_::import_("foretune._errors")
                              .attr("error_class")(std::string(to_string(error.code)));
  PyErr_SetString(type.ptr(), error.message.c_str());
  throw nb::python_error();
}

}  // namespace foretune::python

NB_MODULE(_foretune, module) {
  module.doc() = "The compiled part of foretune.";
  // Objects that live until the program ends are no leaks that a user could fix.
  nanobind::set_leak_warnings(false);
  module.attr("version") = std::string(foretune::kVersion);
  foretune::python::bind_dataset(module);
  foretune::python::bind_journal(module);
  foretune::python::bind_collect(module);
  foretune::python::bind_measuring(module);
  foretune::python::bind_models(module);
  foretune::python::bind_training(module);
  foretune::python::bind_tuning(module);
  foretune::python::bind_registered_models(module);
  foretune::python::bind_evaluation(module);
  foretune::python::bind_features(module);
  foretune::python::bind_foreign_models(module);
  foretune::python::bind_triton(module);
  foretune::python::bind_loops(module);
  foretune::python::bind_loop_policies(module);
  foretune::python::bind_loop_vector_environment(module);
  foretune::python::bind_convolutions(module);
  foretune::python::bind_cudnn(module);
  foretune::python::bind_sparse(module);
  foretune::python::bind_networks(module);
  foretune::python::bind_choices(module);
}
