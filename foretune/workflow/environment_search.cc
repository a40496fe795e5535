#include "foretune/workflow/environment_search.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "foretune/base/clock.h"
#include "foretune/base/text.h"
#include "foretune/loop/cursor_actions.h"
#include "foretune/loop/gym/recipe.h"
#include "foretune/loop/nest.h"
#include "foretune/loop/problem_computation.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/source.h"

namespace foretune::workflow {

using loop::gym::Benchmark;

void EnvSearchArguments::visit(OptionList& list) {
  list.add("dataset", dataset, "NAME",
           "benchmarks: a data set's name (env-generate --list), a file, a folder, or \"mm m=192 "
           "n=96 k=64\"");
  list.add("eval-size", eval_size, "N", "search the first N benchmarks only; 0 takes all")
      .also("size")
      .at_least(0);
  list.add("methods", methods, "LIST",
           "methods, joined by commas: base, recipe, textbook, random, greedy1, greedy2, "
           "beam4bfs, beam4dfs (any numbers), bruteforce, annealing, evolution, mcts, guided, and "
           "with "
           "--policy looptune: a learned policy")
      .also("strategies");
  list.add("policy", policy, "FILE", "model of kind policy, for the method looptune");
  list.add("measurements", measurements, "N", "limit of measurements per search; 0 is no limit")
      .at_least(0);
  list.add("eval-time", eval_time, "SECONDS",
           "limit of time per search; 2 where no limit is given");
  list.add("steps", steps, "N", "maximum number of actions of a schedule").at_least(1).at_most(100);
  list.add("actions", actions, "LIST",
           "actions that build schedules: LoopTune's names joined by commas, 'all' of them, or "
           "'loops' for actions that name their loop (default: LoopTune's seven)");
  list.add("isa", isa, "NAME", "instruction set to compile for").choose({"avx2", "avx512"});
  list.add("peak", peak_gflops, "GFLOPS", "peak that counts as 100 %; 0 measures it");
  list.add("output", output, "FOLDER", "new folder for tables, plots and logs");
  list.add_switch("debug", debug, "also write every search as a graph")
      .only({"with --output", [this] { return !output.empty(); }});
}

namespace {

// The default methods.
constexpr const char* kUsual =
    "base,recipe,random,greedy1,greedy2,beam2dfs,beam4dfs,beam2bfs,beam4bfs,annealing,evolution,"
    "mcts,guided";

// Leaves out the configs of the recipe, which differ from benchmark to benchmark.
Result<std::vector<Contestant>> parse_methods(const std::string& text) {
  std::vector<Contestant> out;
  for (const std::string_view name : split(text, ',')) {
    const bool is_recipe = trim(name) == "recipe";
    const bool is_policy = trim(name) == "looptune";
    FORETUNE_TRY(Contestant next, Contestant::parse(is_recipe   ? "base"
                                                    : is_policy ? "policy"
                                                                : trim(name)));
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
  Bench(const PreparedEnvSearch& prepared, const Invocation& invocation)
      : prepared_(prepared), invocation_(invocation) {}

  Status open(const Benchmark& benchmark, const Problem& problem) {
    std::vector<std::string> options{concat("type=", problem.schema().name), "defaults=start"};
    options.insert(options.end(), prepared_.family_options.begin(), prepared_.family_options.end());
    if (!benchmark.schedule.empty()) {
      options.push_back(concat("start=", loop::to_text(benchmark.computation, benchmark.schedule)));
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
  const PreparedEnvSearch& prepared_;
  const Invocation& invocation_;
  FamilyArguments family_;
  std::optional<LiveFamily> live_;
  std::unique_ptr<Measurer> measurer_;
};

// Returns the options of the family that no benchmark changes.
std::vector<std::string> common_options_of(const EnvSearchArguments& arguments) {
  std::vector<std::string> options;
  if (arguments.actions != "loops") {
    options.push_back(concat(
        "actions=", arguments.actions.empty() ? loop::ActionSet().text() : arguments.actions));
  }
  if (!arguments.isa.empty()) {
    options.push_back(concat("isa=", arguments.isa));
  }
  return options;
}

ContestOptions contest_options(const EnvSearchArguments& arguments) {
  ContestOptions options;
  options.tune.max_steps = static_cast<std::size_t>(arguments.steps);
  if (arguments.measurements > 0) {
    options.tune.budget.measurements = static_cast<std::uint64_t>(arguments.measurements);
  }
  if (arguments.eval_time > 0) {
    options.tune.budget.seconds = arguments.eval_time;
  } else if (arguments.measurements == 0) {
    options.tune.budget.seconds = 2;
  }
  return options;
}

}  // namespace

Result<PreparedEnvSearch> prepare_env_search(const EnvSearchArguments& arguments) {
  if (arguments.eval_time < 0 || arguments.peak_gflops < 0) {
    return fail(ErrorCode::kInvalidArgument, "seconds and GFLOPS are not negative");
  }
  PreparedEnvSearch ready;
  FORETUNE_TRY(ready.contestants,
               parse_methods(arguments.methods.empty() ? kUsual : arguments.methods));
  FORETUNE_TRY(ready.benchmarks, loop::gym::load_benchmarks(arguments.dataset));
  if (arguments.eval_size > 0) {
    ready.benchmarks.erase(
        ready.benchmarks.begin() +
            std::min<std::ptrdiff_t>(arguments.eval_size, std::ssize(ready.benchmarks)),
        ready.benchmarks.end());
  }
  ready.family_options = common_options_of(arguments);
  ready.isa = parse_cpu_isa(arguments.isa).value_or(best_cpu_isa());
  ready.peak_gflops = arguments.peak_gflops;
  ready.source = source_line({concat("data set ", arguments.dataset)}, read_cpu_facts().model);
  ready.options = contest_options(arguments);
  if (!arguments.policy.empty()) {
    FORETUNE_TRY(Model model, read_model(arguments.policy));
    ready.policy = std::make_unique<Model>(std::move(model));
  }
  return ready;
}

Result<ContestResults> run_env_search(const PreparedEnvSearch& prepared,
                                      const Invocation& invocation, const EnvSearchHooks& hooks) {
  Bench bench(prepared, invocation);
  ContestOptions options = prepared.options;
  options.tune.seed = invocation.seed;
  options.tune.policy = prepared.policy.get();
  CollectHooks inner;
  inner.now_s = &monotonic_s;
  inner.stop = hooks.stop;
  std::vector<Contestant> contestants = prepared.contestants;
  ContestResults results{.peak = prepared.peak_gflops, .problems = {}};
  for (const Benchmark& benchmark : prepared.benchmarks) {
    FORETUNE_TRY(const Problem problem, loop::problem_of(benchmark.computation.name));
    if (Status status = bench.open(benchmark, problem); !status) {
      return fail_because(status.error(), benchmark.name);
    }
    // The highest of all probes, because clocks rise and fall.
    if (prepared.peak_gflops == 0) {
      results.peak = std::max(results.peak, measure_fma_gflops(0.05, prepared.isa));
    }
    FORETUNE_TRY(const std::unique_ptr<Space> space, bench.family().space(problem));
    const auto& schedules = dynamic_cast<const loop::ScheduleSpace&>(*space);
    for (Contestant& contestant : contestants) {
      if (contestant.name == "recipe") {
        contestant.configs = loop::gym::recipe_configs(schedules);
      }
    }
    auto compared = run_contest(bench.family(), bench.measurer(), nullptr, problem, contestants,
                                options, inner);
    if (!compared) {
      return fail_because(compared.error(), benchmark.name);
    }
    if (hooks.stop != nullptr && hooks.stop->load()) {
      break;
    }
    compared->name = benchmark.name;
    compared->problem = benchmark.computation.name;
    results.problems.push_back(*std::move(compared));
    if (hooks.on_result) {
      FORETUNE_TRY_STATUS(hooks.on_result(results, *space));
    }
  }
  return results;
}

}  // namespace foretune::workflow
