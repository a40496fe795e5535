// foretune.loops.Policy: schedules by a model that learned to build them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/canonical_schedule.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/model/model_file.h"
#include "foretune/model/policy/policy_body.h"
#include "python/bindings/bindings.h"
#include "python/bindings/loops.h"

namespace foretune::python {
namespace {

class LoopPolicy {
 public:
  explicit LoopPolicy(const std::string& path) : model_(checked(read_model(path))) {
    if (policy_of(model_) == nullptr) {
      checked(Status(fail(ErrorCode::kMismatch, path, " is a model of kind '", model_.kind,
                          "', not a policy")));
    }
  }

  [[nodiscard]] std::vector<std::string> schedules(const loop::Computation& computation,
                                                   std::size_t count, std::uint64_t seed,
                                                   const std::string& isa) const {
    const Problem problem = checked(loop::problem_of(computation.name));
    Hardware hardware = model_.fingerprint.hardware;
    if (!isa.empty()) {
      const loop::VectorUnit unit =
          loop::VectorUnit::of(isa == "avx512" ? CpuIsa::kAvx512 : CpuIsa::kAvx2);
      hardware.set(HardwareValue::kVectorBytes, static_cast<double>(4 * unit.lanes));
      hardware.set(HardwareValue::kVectorRegisters, static_cast<double>(unit.registers));
    }
    const auto proposer = checked(make_policy_proposer(model_, problem, hardware));
    const auto space = loop::ScheduleSpace::of_loops(computation, policy_unit(hardware));
    Rng rng(seed);
    std::vector<std::string> out;
    for (const Config& config : proposer->propose(count, rng)) {
      out.push_back(space->text(config));
    }
    return out;
  }
  [[nodiscard]] std::string isa() const {
    return std::string(to_string(policy_unit(model_.fingerprint.hardware).isa));
  }

 private:
  Model model_;
};

}  // namespace

void bind_loop_policies(nb::module_& module) {
  nb::class_<LoopPolicy>(module, "LoopPolicy")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def_prop_ro("isa", &LoopPolicy::isa)
      .def("schedules", &LoopPolicy::schedules, nb::arg("computation"), nb::arg("count"),
           nb::arg("seed"), nb::arg("isa"));
}

}  // namespace foretune::python
