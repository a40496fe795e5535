// Bindings for many episodes at once over many computations. Its arrays are views of the library's
// memory, which every step overwrites.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/canonical_schedule.h"
#include "foretune/loop/gym/vector_environment.h"
#include "foretune/model/policy/policy_body.h"
#include "python/bindings/bindings.h"
#include "python/bindings/loops.h"

namespace foretune::python {
namespace {

using loop::Computation;
using loop::LoopActions;
using loop::PolicyObserver;
using loop::gym::NestTask;
using loop::gym::VectorEnvironment;
using loop::gym::VectorOptions;

class LoopVectorEnvironment {
 public:
  LoopVectorEnvironment(std::vector<std::unique_ptr<NestTask>> tasks, const VectorOptions& options)
      : tasks_(std::move(tasks)), options_(options) {}

  void reset(std::uint64_t seed) {
    const std::unique_lock lock = exclusive();
    without_lock([&] {
      std::vector<NestTask*> pointers;
      for (const auto& task : tasks_) {
        pointers.push_back(task.get());
      }
      environment_.emplace(std::move(pointers), options_, seed);
    });
  }

  void step(
      const nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& actions) {
    const std::unique_lock lock = exclusive();
    VectorEnvironment& environment = running();
    if (actions.size() != environment.episodes()) {
      raise({ErrorCode::kInvalidArgument,
             concat(actions.size(), " actions for ", environment.episodes(), " episodes")});
    }
    checked(
        without_lock([&] { return environment.step(std::span(actions.data(), actions.size())); }));
  }

  VectorEnvironment& running() {
    if (!environment_) {
      raise({ErrorCode::kInvalidArgument, "reset() comes before the first step"});
    }
    return *environment_;
  }

  [[nodiscard]] std::string schedule(std::size_t episode) {
    VectorEnvironment& environment = running();
    if (episode >= environment.episodes()) {
      raise({ErrorCode::kInvalidArgument,
             concat("episode ", episode, " of ", environment.episodes())});
    }
    const Computation& computation = tasks_[environment.tasks()[episode]]->computation();
    return loop::to_text(computation, loop::schedule_of(computation, environment.nest(episode)));
  }
  [[nodiscard]] std::uint64_t evaluations() const {
    std::uint64_t sum = 0;
    for (const auto& task : tasks_) {
      sum += task->evaluations();
    }
    return sum;
  }

 private:
  [[nodiscard]] std::unique_lock<std::mutex> exclusive() {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      raise({ErrorCode::kInvalidArgument,
             "the environment is in use by another thread; one thread at a time may use it"});
    }
    return lock;
  }

  std::vector<std::unique_ptr<NestTask>> tasks_;
  VectorOptions options_;
  std::optional<VectorEnvironment> environment_;
  std::mutex mutex_;
};

std::unique_ptr<LoopVectorEnvironment> make(const std::vector<const Computation*>& computations,
                                            const std::string& isa, double peak_gflops,
                                            std::size_t episodes, std::size_t max_steps,
                                            const std::string& reward, double price) {
  VectorOptions options{.episodes = episodes, .max_steps = max_steps, .price = price};
  options.reward = checked(loop::gym::parse_reward_kind(reward));
  const loop::VectorUnit unit = checked(unit_of_this_cpu(isa));
  const loop::PolicyMachine machine =
      policy_machine(cpu_fingerprint(read_cpu_facts(), CpuPeaks{}).hardware);
  std::vector<std::unique_ptr<NestTask>> tasks;
  for (const Computation* const computation : computations) {
    tasks.push_back(checked(NestTask::measured(*computation, unit.isa, peak_gflops, machine)));
  }
  return std::make_unique<LoopVectorEnvironment>(std::move(tasks), options);
}

// Returns a property that is an array over the environment's memory.
template <class Value, std::size_t Dimensions>
auto view(std::span<const Value> (VectorEnvironment::*values)() const,
          const std::array<std::size_t, Dimensions - 1>& inner) {
  return [values, inner](nb::handle self) {
    const VectorEnvironment& environment = nb::cast<LoopVectorEnvironment&>(self).running();
    std::array<std::size_t, Dimensions> shape{environment.episodes()};
    std::copy(inner.begin(), inner.end(), shape.begin() + 1);
    return nb::ndarray<nb::numpy, const Value, nb::ndim<Dimensions>>(
        (environment.*values)().data(), Dimensions, shape.data(), self);
  };
}

}  // namespace

void bind_loop_vector_environment(nb::module_& module) {
  using V = VectorEnvironment;
  nb::class_<LoopVectorEnvironment>(module, "LoopVectorEnvironment")
      .def("reset", &LoopVectorEnvironment::reset, nb::arg("seed"))
      .def("step", &LoopVectorEnvironment::step, nb::arg("actions"))
      .def("schedule", &LoopVectorEnvironment::schedule, nb::arg("episode"))
      .def_prop_ro("evaluations", &LoopVectorEnvironment::evaluations)
      .def_prop_ro("loops",
                   view<float, 3>(&V::loops, {LoopActions::kLevels, PolicyObserver::kLoopColumns}))
      .def_prop_ro("whole", view<float, 2>(&V::whole, {PolicyObserver::kWholeColumns}))
      .def_prop_ro("masks", view<std::uint8_t, 2>(&V::masks, {LoopActions::kCount}))
      .def_prop_ro("rewards", view<float, 1>(&V::rewards, {}))
      .def_prop_ro("ends", view<std::uint8_t, 1>(&V::ends, {}))
      .def_prop_ro("log_shares", view<float, 1>(&V::log_shares, {}))
      .def_prop_ro("tasks", view<std::uint32_t, 1>(&V::tasks, {}))
      .def_prop_ro("stepped_tasks", view<std::uint32_t, 1>(&V::stepped_tasks, {}));
  module.def("make_loop_vector_environment", &make, nb::arg("computations"), nb::arg("isa"),
             nb::arg("peak_gflops"), nb::arg("episodes"), nb::arg("max_steps"), nb::arg("reward"),
             nb::arg("price"));
  module.def("loop_action_sizes", [] {
    return std::vector<std::size_t>{LoopActions::kLevels, PolicyObserver::kLoopColumns,
                                    PolicyObserver::kWholeColumns, LoopActions::kCount};
  });
  module.def(
      "loop_action_text",
      [](std::size_t index) {
        // Any computation: names of actions do not depend on it.
        static const Computation computation = loop::matmul({.m = 2, .n = 2, .k = 2}).value();
        return LoopActions(computation, loop::VectorUnit::of(CpuIsa::kAvx2)).text(index);
      },
      nb::arg("index"));
}

}  // namespace foretune::python
