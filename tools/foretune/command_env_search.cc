// foretune env-search: LoopTune's searches, with LoopTune's option names. `tune --strategies` does
// the same for every family. Only here are LoopTune's data sets, whose benchmarks may start from a
// schedule, and its recipe.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/clock.h"
#include "foretune/base/figures.h"
#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/cursor_actions.h"
#include "foretune/loop/gym/benchmarks.h"
#include "foretune/loop/gym/recipe.h"
#include "foretune/loop/nest.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/tune/strategy_contest.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/output.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/contest_log.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

using loop::gym::Benchmark;

// The default methods.
constexpr const char* kUsual =
    "base,recipe,random,greedy1,greedy2,beam2dfs,beam4dfs,beam2bfs,beam4bfs,annealing,evolution,"
    "mcts,guided";

struct EnvSearchArguments {
  std::string dataset = "mm64_256_16_test25";
  std::int64_t eval_size = 0;
  std::string methods;
  std::int64_t measurements = 0;
  double eval_time = 0;
  std::int64_t steps = 10;
  std::string actions;
  std::string isa;
  double peak_gflops = 0;
  std::string output;
  bool debug = false;

  void visit(OptionList& list) {
    list.add("dataset", dataset, "NAME",
             "benchmarks: a data set's name (env-generate --list), a file, a folder, or \"mm m=192 "
             "n=96 k=64\"");
    list.add("eval-size", eval_size, "N", "search the first N benchmarks only; 0 takes all")
        .also("size")
        .at_least(0);
    list.add("methods", methods, "LIST",
             "methods, joined by commas: base, recipe, textbook, random, greedy1, greedy2, "
             "beam4bfs, beam4dfs (any numbers), bruteforce, annealing, evolution, mcts, guided")
        .also("strategies");
    list.add("measurements", measurements, "N", "limit of measurements per search; 0 is no limit")
        .at_least(0);
    list.add("eval-time", eval_time, "SECONDS",
             "limit of time per search; 2 where no limit is given");
    list.add("steps", steps, "N", "maximum number of actions of a schedule")
        .at_least(1)
        .at_most(100);
    list.add("actions", actions, "LIST",
             "actions that build schedules: LoopTune's names joined by commas, 'all' of them, or "
             "'loops' for actions that name their loop (default: LoopTune's seven)");
    list.add("isa", isa, "NAME", "instruction set to compile for").choose({"avx2", "avx512"});
    list.add("peak", peak_gflops, "GFLOPS", "peak that counts as 100 %; 0 measures it");
    list.add("output", output, "FOLDER", "new folder for tables, plots and logs");
    list.add_switch("debug", debug, "also write every search as a graph")
        .only({"with --output", [this] { return !output.empty(); }});
  }
};

// Without the configs of the recipe, which are another benchmark by benchmark.
Result<std::vector<Contestant>> parse_methods(const std::string& text) {
  std::vector<Contestant> out;
  for (const std::string_view name : split(text, ',')) {
    const bool is_recipe = trim(name) == "recipe";
    FORETUNE_TRY(Contestant next, Contestant::parse(is_recipe ? "base" : trim(name)));
    next.name = trim(name);
    const auto is_same = [&](const Contestant& other) { return other.name == next.name; };
    if (std::any_of(out.begin(), out.end(), is_same)) {
      return fail(ErrorCode::kInvalidArgument, "the search ", quoted(next.name, 40),
                  " is there twice");
    }
    out.push_back(std::move(next));
  }
  return out;
}

// The family whose spaces are a benchmark's, and what measures it: kept for as long as benchmarks
// ask for the same.
class Bench {
 public:
  Bench(const EnvSearchArguments& arguments, const Invocation& invocation)
      : arguments_(arguments), invocation_(invocation) {}

  Status open(const Benchmark& benchmark, const Problem& problem) {
    std::vector<std::string> options{concat("type=", problem.schema().name), "defaults=start"};
    if (arguments_.actions != "loops") {
      options.push_back(concat(
          "actions=", arguments_.actions.empty() ? loop::ActionSet().text() : arguments_.actions));
    }
    if (!benchmark.schedule.empty()) {
      options.push_back(concat("start=", loop::to_text(benchmark.computation, benchmark.schedule)));
    }
    if (!arguments_.isa.empty()) {
      options.push_back(concat("isa=", arguments_.isa));
    }
    if (measurer_ != nullptr && options == family_.family_options) {
      return {};
    }
    measurer_.reset();
    family_.family = "loop-nest";
    family_.family_options = options;
    family_.threads = 1;
    const std::optional<Fingerprint> known =
        live_ ? std::optional(live_->family->info().fingerprint) : std::nullopt;
    FORETUNE_TRY(live_, open_family(family_, known ? &*known : nullptr, invocation_));
    FORETUNE_TRY(const Context context, MeasureArguments().context(live_->family->info()));
    FORETUNE_TRY(measurer_, open_measurer(*live_, Protocol::brief(live_->family->info()), context,
                                          invocation_));
    return {};
  }

  [[nodiscard]] const Family& family() const { return *live_->family; }
  [[nodiscard]] Measurer& measurer() { return *measurer_; }

 private:
  const EnvSearchArguments& arguments_;
  const Invocation& invocation_;
  FamilyArguments family_;
  std::optional<LiveFamily> live_;
  std::unique_ptr<Measurer> measurer_;
};

std::vector<std::pair<std::string, std::string>> manifest_of(const EnvSearchArguments& arguments,
                                                             const Invocation& invocation,
                                                             CpuIsa isa) {
  return {{"command", json_quoted(invocation.command_line)},
          {"data_set", json_quoted(arguments.dataset)},
          {"measurements", concat(arguments.measurements)},
          {"seconds", concat(arguments.eval_time)},
          {"steps", concat(arguments.steps)},
          {"actions", json_quoted(arguments.actions)},
          {"seed", concat(invocation.seed)},
          {"peak_is_measured", arguments.peak_gflops > 0 ? "false" : "true"},
          {"isa", json_quoted(to_string(isa))}};
}

ContestOptions contest_options(const EnvSearchArguments& arguments, std::uint64_t seed) {
  ContestOptions options;
  options.tune.seed = seed;
  options.tune.max_steps = static_cast<std::size_t>(arguments.steps);
  if (arguments.measurements > 0) {
    options.tune.budget.measurements = static_cast<std::uint64_t>(arguments.measurements);
  }
  if (arguments.eval_time > 0) {
    options.tune.budget.seconds = arguments.eval_time;
  }
  return options;
}

Result<int> search_environment(const EnvSearchArguments& given, const Invocation& invocation) {
  EnvSearchArguments arguments = given;
  if (arguments.eval_time < 0 || arguments.peak_gflops < 0) {
    return fail(ErrorCode::kInvalidArgument, "seconds and GFLOPS are not negative");
  }
  if (arguments.measurements == 0 && arguments.eval_time == 0) {
    arguments.eval_time = 2;
  }
  FORETUNE_TRY(std::vector<Contestant> contestants,
               parse_methods(arguments.methods.empty() ? kUsual : arguments.methods));
  FORETUNE_TRY(std::vector<Benchmark> benchmarks, loop::gym::load_benchmarks(arguments.dataset));
  if (arguments.eval_size > 0) {
    benchmarks.erase(
        benchmarks.begin() + std::min<std::ptrdiff_t>(arguments.eval_size, std::ssize(benchmarks)),
        benchmarks.end());
  }
  const CpuIsa isa = parse_cpu_isa(arguments.isa).value_or(best_cpu_isa());
  Bench bench(arguments, invocation);
  FORETUNE_TRY(ContestLog log,
               ContestLog::create({.folder = arguments.output,
                                   .has_graphs = arguments.debug,
                                   .max_steps = static_cast<std::size_t>(arguments.steps),
                                   .manifest = manifest_of(arguments, invocation, isa)},
                                  contestants));
  const ContestOptions options = contest_options(arguments, invocation.seed);
  CollectHooks hooks;
  hooks.now_s = &monotonic_s;
  hooks.stop = &stop_flag();
  ContestResults results{.peak = arguments.peak_gflops, .problems = {}};
  for (const Benchmark& benchmark : benchmarks) {
    FORETUNE_TRY(const Problem problem, loop::problem_of(benchmark.computation.name));
    if (Status status = bench.open(benchmark, problem); !status) {
      return fail_because(status.error(), benchmark.name);
    }
    // The highest of all probes, because clocks rise and fall.
    if (arguments.peak_gflops == 0) {
      results.peak = std::max(results.peak, measure_fma_gflops(0.05, isa));
    }
    FORETUNE_TRY(const std::unique_ptr<Space> space, bench.family().space(problem));
    const auto& schedules = dynamic_cast<const loop::ScheduleSpace&>(*space);
    for (Contestant& contestant : contestants) {
      if (contestant.name == "recipe") {
        contestant.configs = loop::gym::recipe_configs(schedules);
      }
    }
    auto compared = run_contest(bench.family(), bench.measurer(), nullptr, problem, contestants,
                                options, hooks);
    if (!compared) {
      return fail_because(compared.error(), benchmark.name);
    }
    if (stop_flag().load()) {
      break;
    }
    compared->name = benchmark.name;
    compared->problem = benchmark.computation.name;
    results.problems.push_back(*std::move(compared));
    FORETUNE_TRY_STATUS(log.add(results, *space));
  }
  FORETUNE_TRY_STATUS(log.finish(results));
  return stop_flag().load() ? kExitInterrupted : kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_env_search(OptionList& list) {
  return prepare_with<EnvSearchArguments, search_environment>(list);
}

}  // namespace foretune::cli
