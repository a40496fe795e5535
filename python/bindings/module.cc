// The extension module foretune._foretune: what the Python files of the package are made of. Not an
// interface of its own; those files check, name and document what is called here.
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
  // What a program keeps until its end is nothing that its user could do anything about.
  nanobind::set_leak_warnings(false);
  module.attr("version") = std::string(foretune::kVersion);
  foretune::python::bind_dataset(module);
  foretune::python::bind_collect(module);
  foretune::python::bind_models(module);
  foretune::python::bind_evaluation(module);
  foretune::python::bind_triton(module);
  foretune::python::bind_loops(module);
}
