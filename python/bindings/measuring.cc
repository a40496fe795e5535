// Bindings for the timing protocol over a clock that is written in Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/family/family.h"
#include "foretune/measure/timing.h"
#include "python/bindings/bindings.h"

namespace foretune::python {
namespace {

// Times runs by two Python functions. Keeps the exception that one of them raises.
class PythonRun final : public Run, public DeviceClock {
 public:
  PythonRun(nb::object first, nb::object windows)
      : first_(std::move(first)), windows_(std::move(windows)) {}

  void run() override {}
  DeviceClock* device_clock() override { return this; }
  std::optional<RunFailure> failure() const override {
    return error_ ? std::optional(RunFailure{}) : std::nullopt;
  }

  Result<double> first_run() override {
    try {
      return nb::cast<double>(first_());
    } catch (...) {
      error_ = std::current_exception();
      return fail(ErrorCode::kInternal, "the clock raised an exception");
    }
  }

  Status time(std::int64_t /*runs*/, std::int32_t windows, bool /*cold*/,
              std::vector<double>& windows_ns) override {
    try {
      for (const double time_ns : nb::cast<std::vector<double>>(windows_(windows))) {
        windows_ns.push_back(time_ns);
      }
    } catch (...) {
      error_ = std::current_exception();
    }
    return {};
  }

  void raise_pending() const {
    if (error_) {
      std::rethrow_exception(error_);
    }
  }

 private:
  nb::object first_;
  nb::object windows_;
  std::exception_ptr error_;
};

// Times a launch by the protocol's rules: a rough time may stop it early; then windows follow until
// they scatter little. Returns (time, median, spread, samples, whether the time is only a bound).
nb::tuple time_launch(nb::object first_run, nb::object time_windows,
                      std::optional<double> incumbent_ns, double max_total_ns) {
  PythonRun run(std::move(first_run), std::move(time_windows));
  Protocol protocol;
  protocol.max_total_ns = max_total_ns;
  const Timing timing = time_run(run, protocol, incumbent_ns.value_or(0), [] { return 0; }, {});
  run.raise_pending();
  if (timing.censored) {
    return nb::make_tuple(timing.bound_ns, 0.0, 0.0, 0, true);
  }
  const std::vector<MetricValue> metrics = timing_metrics(timing.windows_ns);
  return nb::make_tuple(metrics[0].value, metrics[1].value, metrics[0].spread, metrics[0].samples,
                        false);
}

}  // namespace

void bind_measuring(nb::module_& module) {
  module.def("time_launch", &time_launch, nb::arg("first_run"), nb::arg("time_windows"),
             nb::arg("incumbent_ns").none(), nb::arg("max_total_ns"));
  module.attr("censor_factor") = Protocol().censor_factor;
  module.attr("max_windows") = Protocol().max_windows;
}

}  // namespace foretune::python
