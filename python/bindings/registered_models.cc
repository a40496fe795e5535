// Types of models that Python fits (foretune.register_model): passes rows to Python, layers or
// predictions back, and exceptions past the library.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/model/function/function_body.h"
#include "foretune/model/network/torch_layers.h"
#include "foretune/model/train/train_by_function.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

thread_local CallbackErrors* innermost = nullptr;

using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<float> floats_of(const nb::handle& values) {
  const auto array = nb::cast<Floats>(values);
  return {array.data(), array.data() + array.size()};
}

// Keeps the current exception, which is raised later, and returns a placeholder error.
tl::unexpected<Error> kept_error() {
  CallbackErrors::keep(std::current_exception());
  return fail(ErrorCode::kInternal, "the Python function raised an exception");
}

// Predicts by a Python callable. `predict` returns a float64 array with one number per row.
class PythonFunction final : public RowFunction {
 public:
  explicit PythonFunction(nb::object predict) : predict_(std::move(predict)) {}
  PythonFunction(const PythonFunction&) = delete;
  PythonFunction& operator=(const PythonFunction&) = delete;
  ~PythonFunction() override {
    if (Py_IsInitialized() == 0) {
      // The interpreter and its objects are already gone.
      predict_.release();
      return;
    }
    const nb::gil_scoped_acquire acquired;
    predict_.reset();
  }

  Status predict(std::span<const float> inputs, std::span<double> out) const noexcept override {
    const nb::gil_scoped_acquire acquired;
    try {
      const std::size_t rows = out.size();
      const nb::object said = predict_(
          matrix(std::vector<float>(inputs.begin(), inputs.end()), rows, inputs.size() / rows));
      const auto values = nb::cast<Doubles>(said);
      std::copy_n(values.data(), std::min(values.size(), rows), out.data());
      return {};
    } catch (...) {
      return kept_error();
    }
  }

 private:
  nb::object predict_;
};

// ("linear", [weight, bias], 0), ("batch_norm", [gamma, beta, mean, variance], epsilon), ...
TorchLayer layer_of(const nb::tuple& given) {
  using Kind = TorchLayer::Kind;
  const auto name = nb::cast<std::string>(given[0]);
  const auto tensors = nb::cast<nb::list>(given[1]);
  TorchLayer out;
  if (name == "linear") {
    const auto weight = nb::cast<Floats>(tensors[0]);
    out.kind = Kind::kLinear;
    out.outputs = static_cast<std::uint32_t>(weight.shape(0));
    out.inputs = static_cast<std::uint32_t>(weight.shape(1));
    out.weight = floats_of(tensors[0]);
    out.bias = floats_of(tensors[1]);
  } else if (name == "batch_norm") {
    out.kind = Kind::kBatchNorm;
    out.weight = floats_of(tensors[0]);
    out.bias = floats_of(tensors[1]);
    out.mean = floats_of(tensors[2]);
    out.variance = floats_of(tensors[3]);
    out.epsilon = nb::cast<double>(given[2]);
    out.inputs = static_cast<std::uint32_t>(out.weight.size());
    out.outputs = out.inputs;
  } else if (name != "relu") {
    out.kind = name == "begin_block" ? Kind::kBeginBlock : Kind::kEndBlock;
  }
  return out;
}

Fitted fitted_of(const nb::tuple& given) {
  Fitted out;
  if (!given[2].is_none()) {
    out.function = std::make_shared<const PythonFunction>(nb::borrow(given[2]));
    return out;
  }
  for (const nb::handle layer : nb::cast<nb::list>(given[0])) {
    out.layers.push_back(layer_of(nb::cast<nb::tuple>(layer)));
  }
  if (!given[1].is_none()) {
    out.predictions = floats_of(given[1]);
  }
  return out;
}

// Calls the Python side, which keeps the functions, because they die with the interpreter and the
// table of types outlives it.
Result<Fitted> fit_in_python(const std::string& name, const FitRows& rows) {
  const nb::gil_scoped_acquire acquired;
  try {
    const std::size_t columns = rows.columns.size();
    std::vector<std::uint8_t> censored(rows.censored.begin(), rows.censored.end());
    return fitted_of(nb::cast<nb::tuple>(
        nb::module_::import_("foretune._registered_model")
            .attr("fit_rows")(name, rows.columns, matrix(rows.inputs, rows.size(), columns),
                              array(rows.target), array(rows.weight), array(rows.problem),
                              array(std::move(censored)), rows.seed, rows.stage)));
  } catch (...) {
    return kept_error();
  }
}

}  // namespace

CallbackErrors::CallbackErrors() : outer_(innermost) { innermost = this; }
CallbackErrors::~CallbackErrors() { innermost = outer_; }

bool CallbackErrors::is_pending() { return innermost != nullptr && innermost->pending_ != nullptr; }

void CallbackErrors::keep(std::exception_ptr error) {
  if (innermost != nullptr) {
    if (!innermost->pending_) {
      innermost->pending_ = std::move(error);
    }
    return;
  }
  // No caller on this thread can raise it.
  try {
    std::rethrow_exception(std::move(error));
  } catch (nb::python_error& raised) {
    raised.discard_as_unraisable("a function given to foretune");
  } catch (...) {  // NOLINT(bugprone-empty-catch): the scores show the failure
  }
}

void bind_registered_models(nb::module_& module) {
  module.def(
      "register_model",
      [](const std::string& name, const std::string& description) {
        checked(register_fitted_type(
            name, description, [name](const FitRows& rows) { return fit_in_python(name, rows); }));
      },
      nb::arg("name"), nb::arg("description"));
}

}  // namespace foretune::python
