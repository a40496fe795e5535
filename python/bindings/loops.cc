// Bindings for loop nests: computations, schedules as text, and kernels that run on NumPy's memory.
#include "python/bindings/loops.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "foretune/base/clock.h"
#include "foretune/base/fork.h"
#include "foretune/base/text.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/canonical_schedule.h"
#include "foretune/loop/computation_text.h"
#include "foretune/loop/gym/observation_texts.h"
#include "foretune/loop/gym/recipe.h"
#include "foretune/loop/machine/c_emitter.h"
#include "foretune/loop/machine/jit.h"
#include "foretune/loop/register_tiles.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/measure.h"
#include "foretune/tune/strategy_contest.h"
#include "python/bindings/bindings.h"

namespace foretune::python {

using loop::Computation;
using loop::Nest;
using loop::VectorUnit;

Result<VectorUnit> known_unit(const std::string& isa) {
  const std::optional<CpuIsa> known = parse_cpu_isa(isa);
  if (!known || *known == CpuIsa::kGeneric) {
    return fail(ErrorCode::kInvalidArgument, "loop nests are compiled for avx2 and avx512, not '",
                isa, "'");
  }
  return VectorUnit::of(*known);
}

Result<VectorUnit> unit_of_this_cpu(const std::string& isa) {
  const CpuIsa best = best_cpu_isa();
  if (best == CpuIsa::kGeneric) {
    return fail(ErrorCode::kUnsupported,
                "loop nests are compiled for avx2 and avx512, and this CPU has neither");
  }
  if (isa.empty()) {
    return VectorUnit::of(best);
  }
  FORETUNE_TRY(const VectorUnit unit, known_unit(isa));
  if (unit.isa > best) {
    return fail(ErrorCode::kUnsupported, "this CPU runs ", to_string(best), ", not ", isa);
  }
  return unit;
}

namespace {

Result<Nest> nest_of(const Computation& computation, const std::string& schedule) {
  FORETUNE_TRY(const std::vector<loop::Action> actions,
               loop::parse_schedule(computation, schedule));
  return loop::apply_all(computation, actions);
}

std::string schedule_text(const Computation& computation, const Nest& nest) {
  return loop::to_text(computation, loop::schedule_of(computation, nest));
}

// A compiled schedule with its workspaces and threads. Thread safety: any number of threads.
class LoopKernel {
 public:
  static Result<std::unique_ptr<LoopKernel>> create(const Computation& computation,
                                                    const std::string& schedule,
                                                    const std::string& isa, std::size_t threads) {
    FORETUNE_TRY(const VectorUnit unit, unit_of_this_cpu(isa));
    FORETUNE_TRY(Nest nest, nest_of(computation, schedule));
    FORETUNE_TRY(loop::Kernel kernel, loop::Jit(unit).compile(computation, nest));
    return std::unique_ptr<LoopKernel>(
        new LoopKernel(computation, std::move(nest), unit, std::move(kernel), threads));
  }

  Status run(const std::vector<std::span<const float>>& inputs, std::span<float> output) {
    FORETUNE_TRY(loop::Kernel::Workspace workspace, take_workspace());
    {
      // Calls take turns, because a pool runs one loop at a time.
      std::unique_lock alone(pool_turn_, std::defer_lock);
      if (pool_) {
        alone.lock();
      }
      kernel_.run(inputs, output, workspace, pool_.get());
    }
    const std::lock_guard lock(free_mutex_);
    free_.push_back(std::move(workspace));
    return {};
  }

  // Returns the seconds of one run in the fastest of several windows, on operands of its own; also
  // verifies the result.
  Result<double> time(int windows, double window_seconds) {
    if (windows < 1 || !std::isfinite(window_seconds) || window_seconds <= 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "at least one window is timed, of more than 0 seconds");
    }
    const std::lock_guard alone(bench_turn_);
    Bench bench = take_bench();
    if (bench.measurer == nullptr || bench.windows != windows ||
        bench.window_seconds != window_seconds) {
      FORETUNE_TRY(bench, make_bench(windows, window_seconds));
    }
    const auto space = loop::ScheduleSpace::of_loops(computation_, unit_);
    const Measurement measured = bench.measurer->measure(
        {.problem = *bench.problem, .config = space->config({.nest = nest_, .cursor = 0})});
    {
      const std::lock_guard lock(free_mutex_);
      bench_ = std::move(bench);
    }
    const MetricValue* const found = measured.find(kTimeNs);
    if (measured.outcome != Outcome::kOk || found == nullptr) {
      return fail(ErrorCode::kUnsupported, measured.reason);
    }
    return 1e-9 * found->value;
  }

  [[nodiscard]] const Computation& computation() const { return computation_; }
  [[nodiscard]] std::string schedule() const { return schedule_text(computation_, nest_); }
  [[nodiscard]] std::string isa() const { return std::string(to_string(unit_.isa)); }
  [[nodiscard]] std::size_t code_bytes() const { return kernel_.code_bytes(); }

 private:
  LoopKernel(Computation computation, Nest nest, const VectorUnit& unit, loop::Kernel kernel,
             std::size_t threads)
      : computation_(std::move(computation)),
        nest_(std::move(nest)),
        unit_(unit),
        kernel_(std::move(kernel)),
        pool_(threads > 1 ? std::make_unique<ThreadPool>(threads) : nullptr) {}

  // Times the kernel on operands, which the first call makes and verifies.
  struct Bench {
    std::optional<Problem> problem;
    std::unique_ptr<Measurer> measurer;  // null before the first timing
    int windows = 0;
    double window_seconds = 0;
  };

  [[nodiscard]] Result<Bench> make_bench(int windows, double window_seconds) const {
    Protocol protocol;
    protocol.windows = windows;
    protocol.max_windows = windows;
    protocol.window_ns = 1e9 * window_seconds;
    protocol.warmup_ns = 0;
    protocol.max_total_ns = 1e18;
    const std::size_t threads = pool_ ? pool_->threads() : 1;
    FORETUNE_TRY(NestBench nest,
                 make_nest_bench(computation_, {.isa = unit_.isa, .max_loops = nest_.loops.size()},
                                 threads));
    return Bench{.problem = std::move(nest.problem),
                 .measurer = make_local_measurer(std::move(nest.family), protocol,
                                                 {.threads = static_cast<int>(threads)}),
                 .windows = windows,
                 .window_seconds = window_seconds};
  }

  Bench take_bench() {
    const std::lock_guard lock(free_mutex_);
    return std::exchange(bench_, Bench());
  }

  Result<loop::Kernel::Workspace> take_workspace() {
    {
      const std::lock_guard lock(free_mutex_);
      if (!free_.empty()) {
        loop::Kernel::Workspace workspace = std::move(free_.back());
        free_.pop_back();
        return workspace;
      }
    }
    return kernel_.make_workspace(pool_ ? pool_->threads() : 1);
  }

  Computation computation_;
  Nest nest_;
  VectorUnit unit_;
  loop::Kernel kernel_;
  std::unique_ptr<ThreadPool> pool_;  // null for one thread
  // Calls take a workspace or the bench out of the members below while they use it, so that a
  // forked child finds only complete objects there.
  ForkSafeTurn pool_turn_;
  ForkSafeTurn bench_turn_;
  ForkSafeMutex free_mutex_;
  std::vector<loop::Kernel::Workspace> free_;
  Bench bench_;
};

// Returns the floats of an array; raises unless there are as many as the tensor has elements.
std::span<float> floats_of(const ArrayMemory& memory, const loop::Tensor& tensor) {
  if (memory.bytes() != static_cast<std::size_t>(tensor.elements()) * sizeof(float)) {
    raise({ErrorCode::kInvalidArgument, concat(tensor.name, " has ", memory.bytes(),
                                               " bytes, and not ", tensor.elements(), " floats")});
  }
  return memory.floats();
}

void run_kernel(LoopKernel& kernel, const nb::tuple& inputs, nb::handle out) {
  const Computation& computation = kernel.computation();
  if (inputs.size() != computation.inputs.size()) {
    raise({ErrorCode::kInvalidArgument,
           concat("there are ", computation.inputs.size(), " inputs, not ", inputs.size())});
  }
  std::vector<ArrayMemory> memory;
  std::vector<std::span<const float>> values;
  memory.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    memory.emplace_back(inputs[i], ArrayMemory::kRead);
    values.emplace_back(floats_of(memory.back(), computation.inputs[i]));
  }
  const ArrayMemory target(out, ArrayMemory::kWrite);
  const std::span<float> output = floats_of(target, computation.output);
  checked(without_lock([&] { return kernel.run(values, output); }));
}

std::string refusal(const Computation& computation, const std::string& schedule,
                    const std::string& isa) {
  const auto attempt = [&]() -> Status {
    FORETUNE_TRY(const Nest nest, nest_of(computation, schedule));
    if (!isa.empty()) {
      FORETUNE_TRY(const VectorUnit unit, known_unit(isa));
      if (const auto lowered = loop::lower(computation, nest, unit); !lowered) {
        return fail(lowered.error().code, lowered.error().message);
      }
    }
    return {};
  };
  const Status status = attempt();
  return status ? std::string() : status.error().message;
}

std::vector<std::string> textbook_schedules(const Computation& computation, const std::string& isa,
                                            std::size_t count) {
  const VectorUnit unit = checked(isa.empty() ? unit_of_this_cpu(isa) : known_unit(isa));
  std::vector<std::string> out;
  for (const Nest& nest : loop::textbook_nests(computation, unit, count)) {
    out.push_back(schedule_text(computation, nest));
  }
  return out;
}

// Searches by one of env-search's methods. Returns the schedule found, its GFLOPS, the GFLOPS of
// every measurement with the seconds since the search began, and true when nothing was left to try.
using Timed = std::pair<double, double>;
std::tuple<std::string, double, std::vector<Timed>, bool> search(
    const Computation& computation, const std::string& method, std::size_t measurements,
    double seconds, std::uint64_t seed, std::size_t max_steps, bool names_loops,
    const std::string& isa) {
  LoopNestOptions settings{.has_textbook_defaults = false,
                           .isa = checked(unit_of_this_cpu(isa)).isa};
  if (!names_loops) {
    settings.actions = loop::ActionSet();
  }
  const NestBench bench = checked(make_nest_bench(computation, std::move(settings)));
  const bool is_recipe = method == "recipe";
  Contestant contestant = checked(Contestant::parse(is_recipe ? "base" : method));
  const std::unique_ptr<Space> space = checked(bench.family->space(bench.problem));
  if (is_recipe) {
    contestant.configs =
        loop::gym::recipe_configs(dynamic_cast<const loop::ScheduleSpace&>(*space));
  }
  ContestOptions options;
  options.tune.seed = seed;
  options.tune.max_steps = max_steps;
  if (measurements > 0) {
    options.tune.budget.measurements = measurements;
  }
  if (seconds > 0) {
    options.tune.budget.seconds = seconds;
  }
  CollectHooks hooks;
  hooks.now_s = &monotonic_s;
  ContestResult result;
  checked(without_lock([&]() -> Status {
    const auto measurer =
        make_local_measurer(bench.family, Protocol::brief(bench.family->info()), {.threads = 1});
    FORETUNE_TRY(result, run_contest(*bench.family, *measurer, nullptr, bench.problem,
                                     {&contestant, 1}, options, hooks));
    return {};
  }));
  const ContestEntry& entry = result.entries.front();
  std::vector<Timed> steps;
  for (const ContestStep& step : entry.trace.steps) {
    steps.emplace_back(computation.flops() / step.time_ns, step.elapsed_s);
  }
  const bool has_found = entry.speed > 0;
  return {has_found ? dynamic_cast<const loop::ScheduleSpace&>(*space).text(
                          entry.trace.steps[entry.trace.best].config)
                    : "",
          has_found ? computation.flops() / entry.time_ns : 0, std::move(steps),
          entry.trace.is_finished};
}

// Returns the highest of several short probes: other programs make a probe slower, never faster.
double measure_peak(const std::string& isa, double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0) {
    raise({ErrorCode::kInvalidArgument, "a peak is measured over more than 0 seconds"});
  }
  const VectorUnit unit = checked(unit_of_this_cpu(isa));
  return without_lock([&] {
    constexpr double kProbeSeconds = 1e-3;
    const double end_s = monotonic_s() + seconds;
    double best = 0;
    do {
      best = std::max(best, measure_fma_gflops(kProbeSeconds, unit.isa));
    } while (monotonic_s() < end_s);
    return best;
  });
}

nb::tuple describe(const loop::Tensor& tensor) {
  nb::list shape;
  for (const loop::Dimension& dimension : tensor.dimensions) {
    shape.append(dimension.size);
  }
  return nb::make_tuple(tensor.name, nb::tuple(shape));
}

std::vector<std::tuple<std::string, std::int64_t, bool>> variables_of(
    const Computation& computation) {
  std::vector<std::tuple<std::string, std::int64_t, bool>> out;
  for (const loop::Var& var : computation.vars) {
    out.emplace_back(var.name, var.extent, var.is_reduction);
  }
  return out;
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> out;
  for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa <= best_cpu_isa()) {
      out.emplace_back(to_string(isa));
    }
  }
  return out;
}

void bind_computation(nb::module_& module) {
  nb::class_<Computation>(module, "LoopComputation")
      .def_ro("name", &Computation::name)
      .def_prop_ro("flops", &Computation::flops)
      .def_prop_ro("points", &Computation::points)
      .def_prop_ro("operation",
                   [](const Computation& each) { return loop::gym::operation_text(each); })
      .def_prop_ro("variables", &variables_of)
      .def_prop_ro("output", [](const Computation& each) { return describe(each.output); })
      .def_prop_ro("inputs", [](const Computation& each) {
        nb::list out;
        for (const loop::Tensor& tensor : each.inputs) {
          out.append(describe(tensor));
        }
        return out;
      });
  module.def(
      "parse_loop_computation",
      [](const std::string& text) { return checked(loop::parse_computation(text)); },
      nb::arg("text"));
}

void bind_schedules(nb::module_& module) {
  const auto computation = nb::arg("computation");
  const auto schedule = nb::arg("schedule");
  module.def(
      "loop_tree",
      [](const Computation& each, const std::string& text) {
        return loop::tree_text(each, checked(nest_of(each, text)));
      },
      computation, schedule);
  module.def(
      "loop_canonical",
      [](const Computation& each, const std::string& text) {
        return schedule_text(each, checked(nest_of(each, text)));
      },
      computation, schedule);
  module.def(
      "loop_to_c",
      [](const Computation& each, const std::string& text, const std::string& name) {
        return checked(loop::emit_c(each, checked(nest_of(each, text)), name));
      },
      computation, schedule, nb::arg("name"));
  module.def("loop_refusal", &refusal, computation, schedule, nb::arg("isa"));
  module.def("search_loops", &search, computation, nb::arg("method"), nb::arg("measurements"),
             nb::arg("seconds"), nb::arg("seed"), nb::arg("max_steps"), nb::arg("names_loops"),
             nb::arg("isa"));
  module.def("loop_textbook_schedules", &textbook_schedules, computation, nb::arg("isa"),
             nb::arg("count"));
}

}  // namespace

void bind_loops(nb::module_& module) {
  bind_computation(module);
  bind_schedules(module);
  nb::class_<LoopKernel>(module, "LoopKernel")
      .def_prop_ro("schedule", &LoopKernel::schedule)
      .def_prop_ro("isa", &LoopKernel::isa)
      .def_prop_ro("code_bytes", &LoopKernel::code_bytes)
      .def("run", &run_kernel, nb::arg("inputs"), nb::arg("out"))
      .def(
          "time",
          [](LoopKernel& kernel, int windows, double window_seconds) {
            return checked(without_lock([&] { return kernel.time(windows, window_seconds); }));
          },
          nb::arg("windows"), nb::arg("window_seconds"));
  module.def(
      "compile_loops",
      [](const Computation& computation, const std::string& schedule, const std::string& isa,
         std::size_t threads) {
        return checked(
            without_lock([&] { return LoopKernel::create(computation, schedule, isa, threads); }));
      },
      nb::arg("computation"), nb::arg("schedule"), nb::arg("isa"), nb::arg("threads"));
  module.def("loop_instruction_sets", &instruction_sets);
  module.def("measure_loop_peak", &measure_peak, nb::arg("isa"), nb::arg("seconds"));
  bind_loop_environment(module);
}

}  // namespace foretune::python
