// Bindings for convolutions on NumPy's memory, with kernels that the dispatcher chooses.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "foretune/dispatch/conv_dispatch.h"
#include "foretune/dispatch/conv_layer.h"
#include "foretune/problem/conv/conv.h"
#include "python/bindings/bindings.h"
#include "python/bindings/cpu_dispatcher.h"

namespace foretune::python {
namespace {

using Tensor = std::optional<nb::ndarray<const float, nb::c_contig, nb::device::cpu>>;
using Computed = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

Result<ConvProblem> parse_conv(const std::string& text) {
  FORETUNE_TRY(const Problem problem, Problem::parse(text));
  return ConvProblem::from(problem);
}

// The arrays of a call, checked against the sizes of a problem, without which a kernel would leave
// their memory.
class Arrays {
 public:
  explicit Arrays(const ConvProblem& problem) : problem_(problem) {}

  Status take(const Tensor& input, const Tensor& weights, const Tensor& output, const Tensor& bias,
              const Tensor& addend, const Computed& result) {
    const std::int64_t inputs = problem_.input_elements();
    const std::int64_t outputs = problem_.output_elements();
    const ConvOperation operation = problem_.operation();
    const std::int64_t results = operation == ConvOperation::kForward ? outputs
                                 : operation == ConvOperation::kBackwardData
                                     ? inputs
                                     : problem_.weight_elements();
    FORETUNE_TRY(operands_.input, pointer("input", input, inputs));
    FORETUNE_TRY(operands_.weights, pointer("weight", weights, problem_.weight_elements()));
    FORETUNE_TRY(operands_.output, pointer("output gradient", output, outputs));
    FORETUNE_TRY(operands_.bias, pointer("bias", bias, problem_.sizes().k));
    FORETUNE_TRY(operands_.addend, pointer("addend", addend, outputs));
    FORETUNE_TRY_STATUS(check("result", result.size(), results));
    operands_.result = result.data();
    return {};
  }
  [[nodiscard]] const CpuConvOperands& operands() const { return operands_; }

 private:
  static Status check(std::string_view name, std::size_t size, std::int64_t wanted) {
    if (size != static_cast<std::size_t>(wanted)) {
      return fail(ErrorCode::kInvalidArgument, "the ", name, " has ", size,
                  " elements; the convolution wants ", wanted);
    }
    return {};
  }
  static Result<const float*> pointer(std::string_view name, const Tensor& tensor,
                                      std::int64_t wanted) {
    if (!tensor) {
      return nullptr;
    }
    FORETUNE_TRY_STATUS(check(name, tensor->size(), wanted));
    return tensor->data();
  }

  ConvProblem problem_;
  CpuConvOperands operands_;
};

// Runs a convolution on arrays, while other Python threads go on.
template <class Target, class Work>
void run_on(const Target& problem, const Tensor& input, const Tensor& weights, const Tensor& output,
            const Tensor& bias, const Tensor& addend, const Computed& result, const Work& work) {
  Arrays arrays(problem);
  checked(arrays.take(input, weights, output, bias, addend, result));
  checked(with_callbacks([&] { return work(arrays.operands()); }));
}

void run_dispatcher(ConvDispatcher& dispatcher, const std::string& problem, const Tensor& input,
                    const Tensor& weights, const Tensor& output, const Tensor& bias,
                    const Tensor& addend, const Computed& result) {
  const ConvProblem conv = checked(parse_conv(problem));
  run_on(conv, input, weights, output, bias, addend, result,
         [&](const CpuConvOperands& operands) { return dispatcher.run(conv, operands); });
}

void run_layer(ConvLayer& layer, const Tensor& input, const Tensor& output, const Tensor& bias,
               const Tensor& addend, const Computed& result) {
  run_on(layer.problem(), input, std::nullopt, output, bias, addend, result,
         [&](const CpuConvOperands& operands) { return layer.run(operands); });
}

void pack_layer(ConvLayer& layer,
                const nb::ndarray<const float, nb::c_contig, nb::device::cpu>& weights) {
  if (weights.size() != static_cast<std::size_t>(layer.problem().weight_elements())) {
    raise({ErrorCode::kInvalidArgument, "the weight is not of the layer's shape"});
  }
  checked(without_lock([&] { return layer.pack(weights.data()); }));
}

std::string explain(ConvDispatcher& dispatcher, const std::string& problem) {
  return checked(with_callbacks([&]() -> Result<std::string> {
    FORETUNE_TRY(const ConvProblem conv, parse_conv(problem));
    FORETUNE_TRY(const Decision decision, dispatcher.dispatcher().decision(conv.to_problem()));
    return decision.text();
  }));
}

}  // namespace

void bind_convolutions(nb::module_& module) {
  nb::class_<ConvLayer>(module, "ConvLayer")
      .def("pack", &pack_layer, nb::arg("weights").noconvert())
      .def("run", &run_layer, nb::arg("input").noconvert().none(),
           nb::arg("output").noconvert().none(), nb::arg("bias").noconvert().none(),
           nb::arg("addend").noconvert().none(), nb::arg("result").noconvert());
  nb::class_<ConvDispatcher> dispatcher(module, "ConvDispatcher");
  bind_dispatcher(dispatcher, "cpu-conv");
  dispatcher
      .def("run", &run_dispatcher, nb::arg("problem"), nb::arg("input").noconvert().none(),
           nb::arg("weights").noconvert().none(), nb::arg("output").noconvert().none(),
           nb::arg("bias").noconvert().none(), nb::arg("addend").noconvert().none(),
           nb::arg("result").noconvert())
      .def(
          "layer",
          [](ConvDispatcher& of, const std::string& problem) {
            return checked(with_callbacks([&]() -> Result<std::unique_ptr<ConvLayer>> {
              FORETUNE_TRY(const ConvProblem conv, parse_conv(problem));
              return of.layer(conv);
            }));
          },
          nb::arg("problem"), nb::keep_alive<0, 1>())
      .def("explain", &explain, nb::arg("problem"));
}

}  // namespace foretune::python
