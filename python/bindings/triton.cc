// Bindings for foretune.triton: the keys of the kernels that a problem needs, and the kernel file.
#include "foretune/space/schemas/triton.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "foretune/cuda/kernel_file.h"
#include "foretune/families/triton/triton_config.h"
#include "foretune/hardware/hardware.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

Result<std::vector<std::string>> kernel_keys(const std::string& text, const std::string& device) {
  FORETUNE_TRY(const Problem problem, Problem::parse(text));
  FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
  Hardware hardware;
  if (!device.empty()) {
    FORETUNE_TRY(const Fingerprint known, known_device(device));
    hardware = known.hardware;
  }
  return triton_kernel_keys(gemm, hardware);
}

void append(cuda::KernelFileWriter& writer, const nb::object& kernel) {
  const auto image = nb::cast<nb::bytes>(kernel.attr("image"));
  const auto* const begin = static_cast<const std::byte*>(image.data());
  cuda::CompiledKernel record{
      .key = nb::cast<std::string>(kernel.attr("key")),
      .error = nb::cast<std::string>(kernel.attr("error")),
      .function = nb::cast<std::string>(kernel.attr("function")),
      .threads = nb::cast<std::uint32_t>(kernel.attr("threads")),
      .shared_bytes = nb::cast<std::uint32_t>(kernel.attr("shared_bytes")),
      .scratch_bytes = nb::cast<std::uint32_t>(kernel.attr("scratch_bytes")),
      .image = {begin, begin + image.size()}};
  checked(writer.append(record));
}

// Returns the parameters of each of Triton's schemas by the schema's name.
std::map<std::string, std::vector<std::string>> triton_parameters() {
  std::map<std::string, std::vector<std::string>> out;
  for (const ConfigSchema* schema :
       {&triton_gemm_schema(), &triton_matmul_schema(), &diode_triton_schema()}) {
    for (const Parameter& parameter : schema->parameters) {
      out[schema->name].push_back(parameter.name);
    }
  }
  return out;
}

}  // namespace

void bind_triton(nb::module_& module) {
  module.def("triton_parameters", triton_parameters);
  module.def(
      "triton_kernel_keys",
      [](const std::string& problem, const std::string& device) {
        return checked(kernel_keys(problem, device));
      },
      nb::arg("problem"), nb::arg("device"));
  nb::class_<cuda::KernelFileWriter>(module, "KernelFileWriter")
      .def("__contains__", &cuda::KernelFileWriter::contains)
      .def("__len__", &cuda::KernelFileWriter::size)
      .def("append", append, nb::arg("kernel"));
  module.def(
      "open_kernel_file",
      [](const std::string& path, const std::string& target, const std::string& compiler) {
        return checked(cuda::KernelFileWriter::open(path, {target, compiler}));
      },
      nb::arg("path"), nb::arg("target"), nb::arg("compiler"));
  module.def(
      "read_kernel_file",
      [](const std::string& path) {
        const auto file = checked(cuda::KernelFile::open(path));
        nb::list kernels;
        for (const cuda::CompiledKernel& kernel : file->kernels()) {
          nb::dict entry;
          entry["key"] = kernel.key;
          entry["error"] = kernel.error;
          entry["function"] = kernel.function;
          entry["threads"] = kernel.threads;
          entry["shared_bytes"] = kernel.shared_bytes;
          entry["scratch_bytes"] = kernel.scratch_bytes;
          entry["image_bytes"] = file->image(kernel).size();
          kernels.append(entry);
        }
        nb::dict all;
        all["target"] = file->header().target;
        all["compiler"] = file->header().compiler;
        all["kernels"] = kernels;
        return all;
      },
      nb::arg("path"));
}

}  // namespace foretune::python
