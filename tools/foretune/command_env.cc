// foretune env: shows and times schedules of one loop nest, as text, as a tree and as C.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/canonical_schedule.h"
#include "foretune/loop/computation_text.h"
#include "foretune/loop/cursor_actions.h"
#include "foretune/loop/gym/benchmarks.h"
#include "foretune/loop/gym/environment.h"
#include "foretune/loop/gym/measured_evaluator.h"
#include "foretune/loop/gym/observe.h"
#include "foretune/loop/machine/c_emitter.h"
#include "foretune/loop/register_tiles.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/output.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

using loop::Computation;
using loop::CursorAction;
using loop::Nest;
using loop::State;
using loop::gym::Benchmark;
using loop::gym::CachedEvaluator;
using loop::gym::Environment;
using loop::gym::Evaluated;
using loop::gym::FloatTensor;
using loop::gym::MeasuredEvaluator;
using loop::gym::Observation;

struct EnvArguments {
  std::string computation;
  std::string bench;
  std::string schedule;
  std::string actions;
  std::string c_file;
  std::string observe;
  std::string isa;
  std::int64_t search = 0;
  void visit(OptionList& list) {
    list.add_positional("computation", computation,
                        "loop nest: \"mm m=192 n=96 k=64\", \"conv c=64 h=56 ...\"");
    list.add(
        "bench", bench, "NAME",
        "benchmark instead: one of a data set (mm64_256_16_test/mm64_80_96), or a file with one");
    list.add("schedule", schedule, "TEXT",
             "schedule as text: \"split n0 16, swap m0, vectorize n1\"");
    list.add("actions", actions, "LIST", "schedule as LoopTune's actions: split_4,down,swap_up");
    list.add("search", search, "N", "try the textbook's schedules and time the best N").at_least(0);
    list.add("isa", isa, "NAME", "instruction set to compile for").choose({"avx2", "avx512"});
    list.add("c", c_file, "FILE", "write the schedule as a C function");
    list.add(
        "observe", observe, "NAME",
        "print one observation of the schedule and nothing else: loops_tensor, ir, ir_tree_dot, "
        "ir_graph_dot (for Graphviz), ...");
  }
};

// One line of the table.
void print_line(const std::string& what, const Evaluated& evaluated, double peak_gflops) {
  const std::string speed =
      evaluated.ok ? concat(fixed(evaluated.gflops, 1), " GFLOP/s, ",
                            fixed(100 * evaluated.gflops / peak_gflops, 1), " % of the peak, ",
                            fixed(1e6 * evaluated.seconds, 2), " us")
                   : concat("refused: ", evaluated.reason);
  print(concat(what, what.size() < 24 ? std::string(24 - what.size(), ' ') : " ", speed, "\n"));
}

std::string text_of(const Observation& observation) {
  if (const auto* const number = std::get_if<double>(&observation)) {
    return concat(*number, "\n");
  }
  if (const auto* const text = std::get_if<std::string>(&observation)) {
    return text->ends_with('\n') ? *text : concat(*text, "\n");
  }
  const FloatTensor& tensor = std::get<FloatTensor>(observation);
  const std::size_t columns = tensor.shape.back();
  std::string out;
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    out += concat(tensor.values[i], (i + 1) % columns == 0 ? "\n" : " ");
  }
  return out;
}

// Prints what an agent sees of a schedule, for other programs to read.
Status print_observation(const EnvArguments& arguments, const Computation& computation, State state,
                         CachedEvaluator& evaluator, double peak_gflops) {
  FORETUNE_TRY(Environment environment,
               Environment::create(computation, loop::ActionSet(), evaluator, peak_gflops));
  FORETUNE_TRY_STATUS(environment.reset(std::move(state)));
  FORETUNE_TRY(const Observation observation, loop::gym::observe(environment, arguments.observe));
  print(text_of(observation));
  return {};
}

Nest search(const Computation& computation, const loop::VectorUnit& unit, std::int64_t count,
            CachedEvaluator& evaluator) {
  std::optional<std::pair<double, Nest>> best;
  for (const Nest& nest :
       loop::textbook_nests(computation, unit, static_cast<std::size_t>(count))) {
    const Evaluated evaluated = evaluator.evaluate(nest);
    if (evaluated.ok && (!best || evaluated.seconds < best->first)) {
      best.emplace(evaluated.seconds, nest);
    }
  }
  return best ? best->second : Nest::plain(computation);
}

Result<Benchmark> benchmark_of(const EnvArguments& arguments) {
  if (arguments.computation.empty() == arguments.bench.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "say what to compute, as \"mm m=192 n=96 k=64\" or by --bench");
  }
  if (arguments.bench.empty()) {
    FORETUNE_TRY(Computation computation, loop::parse_computation(arguments.computation));
    return Benchmark{
        .name = computation.name, .computation = std::move(computation), .schedule = {}};
  }
  FORETUNE_TRY(std::vector<Benchmark> found, loop::gym::load_benchmarks(arguments.bench));
  if (found.size() != 1) {
    return fail(ErrorCode::kInvalidArgument, arguments.bench, " has ", found.size(),
                " benchmarks; name one: ", arguments.bench, "/", found.front().name);
  }
  return std::move(found.front());
}

Result<std::vector<State>> states_of(const EnvArguments& arguments, const Benchmark& benchmark) {
  FORETUNE_TRY(const std::vector<CursorAction> actions, loop::parse_actions(arguments.actions));
  std::vector<State> states = {{.nest = benchmark.start(), .cursor = 0}};
  for (const CursorAction action : actions) {
    FORETUNE_TRY(State next, loop::apply(benchmark.computation, states.back(), action));
    states.push_back(std::move(next));
  }
  return states;
}

// Prints every action with the speed after it and, where it changed anything, the tree.
Status print_actions(const EnvArguments& arguments, const Benchmark& benchmark,
                     CachedEvaluator& evaluator, double peak_gflops) {
  FORETUNE_TRY(const std::vector<CursorAction> actions, loop::parse_actions(arguments.actions));
  FORETUNE_TRY(const std::vector<State> states, states_of(arguments, benchmark));
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const std::string name(loop::to_string(actions[i]));
    const Nest& nest = states[i + 1].nest;
    if (nest == states[i].nest) {
      print(concat(name, "\n"));
    } else {
      print_line(name, evaluator.evaluate(nest), peak_gflops);
      print(concat(loop::tree_text(benchmark.computation, nest), "\n"));
    }
  }
  return {};
}

// Returns the state that the arguments describe; the benchmark's own where they describe none.
Result<State> state_of(const EnvArguments& arguments, const Benchmark& benchmark,
                       const loop::VectorUnit& unit, CachedEvaluator& evaluator) {
  const Computation& computation = benchmark.computation;
  if (!arguments.actions.empty()) {
    FORETUNE_TRY(const std::vector<State> states, states_of(arguments, benchmark));
    return states.back();
  }
  if (!arguments.schedule.empty()) {
    // Continues from the benchmark's start, so its loops are those of that nest.
    std::string text = loop::to_text(computation, benchmark.schedule);
    text += concat(text.empty() ? "" : ", ", arguments.schedule);
    FORETUNE_TRY(const std::vector<loop::Action> actions, loop::parse_schedule(computation, text));
    FORETUNE_TRY(Nest nest, loop::apply_all(computation, actions));
    return State{.nest = std::move(nest), .cursor = 0};
  }
  return State{.nest = arguments.search > 0 ? search(computation, unit, arguments.search, evaluator)
                                            : benchmark.start(),
               .cursor = 0};
}

Result<int> show(const EnvArguments& arguments, const Invocation& /*invocation*/) {
  FORETUNE_TRY(const Benchmark benchmark, benchmark_of(arguments));
  const Computation& computation = benchmark.computation;
  if ((arguments.schedule.empty() ? 0 : 1) + (arguments.actions.empty() ? 0 : 1) +
          (arguments.search > 0 ? 1 : 0) >
      1) {
    return fail(ErrorCode::kInvalidArgument, "give one of --schedule, --actions and --search");
  }
  const CpuIsa isa = parse_cpu_isa(arguments.isa).value_or(best_cpu_isa());
  if (isa > best_cpu_isa() || isa == CpuIsa::kGeneric) {
    return fail(ErrorCode::kUnsupported, "this CPU runs ", to_string(best_cpu_isa()),
                "; loop nests are compiled for avx2 and avx512");
  }
  const loop::VectorUnit unit = loop::VectorUnit::of(isa);
  FORETUNE_TRY(const std::unique_ptr<MeasuredEvaluator> measured,
               MeasuredEvaluator::create(computation, {.isa = isa}));
  CachedEvaluator evaluator(*measured);
  const double peak_gflops = measure_fma_gflops(0.05);
  if (!arguments.observe.empty()) {
    FORETUNE_TRY(State observed, state_of(arguments, benchmark, unit, evaluator));
    FORETUNE_TRY_STATUS(
        print_observation(arguments, computation, std::move(observed), evaluator, peak_gflops));
    return kExitOk;
  }
  print(concat(computation.name, ": ", fixed(computation.flops() / 1e6, 2), " MFLOP, ",
               to_string(isa), ", peak ", fixed(peak_gflops, 1), " GFLOP/s\n"));
  print_line("as it is", evaluator.evaluate(benchmark.start()), peak_gflops);
  if (!arguments.actions.empty()) {
    FORETUNE_TRY_STATUS(print_actions(arguments, benchmark, evaluator, peak_gflops));
  }
  FORETUNE_TRY(const State state, state_of(arguments, benchmark, unit, evaluator));
  const Nest& nest = state.nest;
  const Evaluated scheduled = evaluator.evaluate(nest);
  print_line("scheduled", scheduled, peak_gflops);
  const std::vector<loop::Action> schedule = loop::schedule_of(computation, nest);
  print(concat("\n", loop::tree_text(computation, nest), "\n", loop::to_text(computation, schedule),
               "\n"));
  if (!arguments.c_file.empty()) {
    FORETUNE_TRY(const std::string code, loop::emit_c(computation, nest, "kernel"));
    FORETUNE_TRY_STATUS(write_text_file_atomically(arguments.c_file, code));
    print(concat("wrote ", arguments.c_file, "\n"));
  }
  if (!scheduled.ok) {
    return fail(ErrorCode::kUnsupported, scheduled.reason);
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_env(OptionList& list) {
  return prepare_with<EnvArguments, show>(list);
}

}  // namespace foretune::cli
