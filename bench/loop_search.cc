// How many measurements each search needs: the trees that at most ten of LoopTune's actions lead to
// are all measured once, and every search then runs on these times, so that none sees noise that
// another does not.
//
//   loop_search [--times FOLDER] [--steps 10] [--seeds 10] [--budget 1000] [--methods a,b]
//               [--problems N] [--json FILE]
//
// Times are kept in FOLDER, one file a problem (the thousandfold logarithm of ns, in the order of
// enumeration, 0: refused; gzip), and read from there when it has them. `guided+others` is taught
// by 300 random schedules of each of the other problems first. Counts of measurements include those
// that were refused.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/autoschedule/schedule_search.h"
#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/documents/gzip.h"
#include "foretune/environment/cursor_space.h"
#include "foretune/environment/workbench.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/computation_text.h"

namespace foretune {
namespace {

using autoschedule::GuideLesson;
using autoschedule::SearchMethod;
using autoschedule::SearchTrace;
using environment::ActionSet;
using environment::Evaluated;
using environment::Stopwatch;
using environment::Workbench;
using loop::ScheduleSpace;

const char* const kProblems[] = {
    "mm m=64 n=96 k=240",  "mm m=112 n=240 k=128", "mm m=192 n=176 k=80",
    "mm m=240 n=128 k=96", "mm m=127 n=129 k=131", "conv c=32 h=14 w=14 o=32 r=3 s=3 pad=1 nhwc"};

// All trees of a problem with their times.
struct Enumerated {
  std::string text;
  std::unique_ptr<ScheduleSpace> space;
  std::vector<Config> configs;                 // in the order of enumeration
  std::unordered_map<Config, double> seconds;  // of one run; not there: refused
  double best_seconds = std::numeric_limits<double>::infinity();
  double peak_share = 0;
};

// Answers from the table.
class TableEvaluator final : public environment::Evaluator {
 public:
  explicit TableEvaluator(const Enumerated& table) : table_(table) {}
  Evaluated evaluate(const loop::Nest& nest) override {
    const auto found = table_.seconds.find(table_.space->config({.nest = nest, .cursor = 0}));
    if (found == table_.seconds.end()) {
      return {.reason = "refused"};
    }
    return {.ok = true,
            .seconds = found->second,
            .gflops = table_.space->computation().flops() / found->second / 1e9};
  }

 private:
  const Enumerated& table_;
};

Result<std::vector<Config>> enumerate(const ScheduleSpace& space, std::size_t steps) {
  FORETUNE_TRY(const auto walk, create_walk("exhaustive", space, {.max_steps = steps}));
  std::vector<Config> all;
  Rng rng(1);
  while (true) {
    const std::vector<Config> batch = walk->ask(4096, rng);
    if (batch.empty()) {
      return all;
    }
    std::vector<Trial> trials;
    for (const Config& config : batch) {
      trials.push_back({.config = config, .value = 1});
    }
    walk->tell(trials);
    all.insert(all.end(), batch.begin(), batch.end());
  }
}

// The fastest are timed again, in turns, until their order is more than luck.
Status measure(Enumerated& table) {
  constexpr std::size_t kFinalists = 200;
  constexpr int kRounds = 5;
  const loop::VectorUnit unit = loop::VectorUnit::of(best_cpu_isa());
  FORETUNE_TRY(const auto workbench, Workbench::create(table.space->computation(), unit));
  Stopwatch stopwatch(*workbench);
  std::vector<std::pair<double, const Config*>> order;
  for (const Config& config : table.configs) {
    FORETUNE_TRY(const loop::Nest nest, table.space->nest(config));
    if (const Evaluated evaluated = stopwatch.evaluate(nest); evaluated.ok) {
      table.seconds[config] = evaluated.seconds;
      order.emplace_back(evaluated.seconds, &config);
    }
  }
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), kFinalists));
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& [seconds, config] : order) {
      FORETUNE_TRY(const loop::Nest nest, table.space->nest(*config));
      const Evaluated evaluated = stopwatch.evaluate(nest);
      table.seconds[*config] = std::min(table.seconds[*config], evaluated.seconds);
    }
  }
  return {};
}

std::string file_of(const std::string& folder, std::size_t index) {
  return concat(folder, "/loop-trees-", index, ".txt.gz");
}

Status write_times(const Enumerated& table, const std::string& path) {
  std::string text = concat(table.text, "\n");
  for (const Config& config : table.configs) {
    const auto found = table.seconds.find(config);
    text += concat(found == table.seconds.end()
                       ? 0
                       : static_cast<int>(std::lround(1000 * std::log(1e9 * found->second))),
                   "\n");
  }
  return write_file_atomically(
      path, documents::deflate_gzip(std::as_bytes(std::span(text.data(), text.size()))));
}

Status read_times(Enumerated& table, const std::string& path) {
  FORETUNE_TRY(const std::vector<std::byte> bytes, documents::read_maybe_gzip(path));
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::vector<std::string_view> lines = split(text, '\n');
  if (lines.size() < table.configs.size() + 1 || lines[0] != table.text) {
    return fail(ErrorCode::kMismatch, path, " is not of ", table.text);
  }
  for (std::size_t i = 0; i < table.configs.size(); ++i) {
    if (const auto value = parse_int(lines[i + 1]); value && *value > 0) {
      table.seconds[table.configs[i]] = 1e-9 * std::exp(static_cast<double>(*value) / 1000);
    }
  }
  return {};
}

Result<Enumerated> make_table(std::size_t index, const std::string& folder, std::size_t steps) {
  Enumerated table{.text = kProblems[index]};
  FORETUNE_TRY(const loop::Computation computation, loop::parse_computation(table.text));
  table.space = environment::cursor_space(computation, ActionSet());
  const double begin_s = bench::seconds_now();
  FORETUNE_TRY(table.configs, enumerate(*table.space, steps));
  const double enumerated_s = bench::seconds_now() - begin_s;
  const std::string path = file_of(folder, index);
  if (!folder.empty() && std::filesystem::exists(path)) {
    FORETUNE_TRY_STATUS(read_times(table, path));
  } else {
    FORETUNE_TRY_STATUS(measure(table));
    if (!folder.empty()) {
      FORETUNE_TRY_STATUS(write_times(table, path));
    }
  }
  for (const auto& [config, seconds] : table.seconds) {
    table.best_seconds = std::min(table.best_seconds, seconds);
  }
  const double gflops = computation.flops() / table.best_seconds / 1e9;
  std::printf("%-46s %6zu trees, %5zu refused, %.1f s to enumerate; the best %.1f GFLOP/s\n",
              table.text.c_str(), table.configs.size(), table.configs.size() - table.seconds.size(),
              enumerated_s, gflops);
  std::fflush(stdout);
  return table;
}

// What 300 random schedules of the other problems teach.
Result<Regression> learn_others(const std::vector<Enumerated>& tables, std::size_t left_out,
                                const loop::VectorUnit& unit) {
  constexpr std::size_t kLesson = 300;
  std::vector<GuideLesson> lessons;
  FORETUNE_TRY(const SearchMethod random, SearchMethod::parse("random"));
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (i == left_out) {
      continue;
    }
    TableEvaluator evaluator(tables[i]);
    FORETUNE_TRY(const SearchTrace trace,
                 autoschedule::run_search(*tables[i].space, random, evaluator,
                                          {.measurements = kLesson}, 7 + i, {.unit = unit}));
    GuideLesson lesson{.space = tables[i].space.get(), .trials = {}};
    for (const auto& step : trace.steps) {
      lesson.trials.push_back(
          {.config = step.config,
           .value = step.gflops > 0 ? std::optional(step.seconds) : std::nullopt});
    }
    lessons.push_back(std::move(lesson));
  }
  return autoschedule::learn_prior(lessons, unit, {.trees = 200, .leaves = 31});
}

// Of one method on all problems and seeds.
struct Tally {
  std::vector<double> needed;  // measurements to 95 %; the budget + 1 where it never got there
  std::vector<double> share_at_20;
  std::vector<double> share_at_100;
  std::vector<double> share_at_end;
  std::vector<double> measured;
  double seconds = 0;
};

double share_after(const SearchTrace& trace, std::size_t count, double best_gflops) {
  double best = 0;
  for (std::size_t i = 0; i < std::min(count, trace.steps.size()); ++i) {
    best = std::max(best, trace.steps[i].gflops);
  }
  return best / best_gflops;
}

Status run(int argc, char** argv, Figures& figures) {
  const std::string folder = bench::argument(argc, argv, "times");
  const auto steps = bench::count_argument<std::size_t>(argc, argv, "steps", 10);
  const auto seeds = bench::count_argument<std::uint64_t>(argc, argv, "seeds", 10);
  const auto budget = bench::count_argument<std::size_t>(argc, argv, "budget", 1000);
  const auto problems = std::min(std::size(kProblems),
                                 bench::count_argument<std::size_t>(argc, argv, "problems", 100));
  std::vector<std::string> methods;
  const std::string named = bench::argument(argc, argv, "methods");
  for (const std::string_view name : split(named, ',')) {
    if (!name.empty()) {
      methods.emplace_back(name);
    }
  }
  if (methods.empty()) {
    methods = SearchMethod::usual();
    if (problems > 1) {
      methods.emplace_back("guided+others");
    }
  }
  const loop::VectorUnit unit = loop::VectorUnit::of(best_cpu_isa());
  const double peak_gflops = measure_fma_gflops(0.2);
  std::printf("peak %.1f GFLOP/s\n", peak_gflops);
  std::vector<Enumerated> tables;
  std::vector<Regression> taught;
  for (std::size_t i = 0; i < problems; ++i) {
    FORETUNE_TRY(Enumerated table, make_table(i, folder, steps));
    tables.push_back(std::move(table));
  }
  for (std::size_t i = 0; i < problems && problems > 1; ++i) {
    FORETUNE_TRY(Regression prior, learn_others(tables, i, unit));
    taught.push_back(std::move(prior));
  }
  std::printf("%-16s %38s %8s %8s %8s %9s %7s\n", "", "to 95 %: median (quartiles), reached",
              "at 20", "at 100", "at end", "measured", "s");
  for (const std::string& name : methods) {
    const bool knows_others = name == "guided+others";
    FORETUNE_TRY(const SearchMethod method, SearchMethod::parse(knows_others ? "guided" : name));
    Tally tally;
    std::size_t reached = 0;
    const double begin_s = bench::seconds_now();
    for (std::size_t i = 0; i < tables.size(); ++i) {
      const double best = tables[i].space->computation().flops() / tables[i].best_seconds / 1e9;
      std::vector<double> of_problem;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        TableEvaluator evaluator(tables[i]);
        FORETUNE_TRY(
            const SearchTrace trace,
            autoschedule::run_search(
                *tables[i].space, method, evaluator, {.measurements = budget}, seed,
                {.max_steps = steps, .unit = unit, .prior = knows_others ? &taught[i] : nullptr}));
        const std::size_t needed = trace.measurements_to(0.95 * best);
        reached += needed > 0 ? 1 : 0;
        tally.needed.push_back(static_cast<double>(needed > 0 ? needed : budget + 1));
        of_problem.push_back(tally.needed.back());
        tally.share_at_20.push_back(share_after(trace, 20, best));
        tally.share_at_100.push_back(share_after(trace, 100, best));
        tally.share_at_end.push_back(share_after(trace, budget, best));
        tally.measured.push_back(static_cast<double>(trace.steps.size()));
      }
      figures.add(concat("measurements_to_95_percent ", name, " ", tables[i].text),
                  quantile(of_problem, 0.5));
    }
    tally.seconds = bench::seconds_now() - begin_s;
    const std::string median = concat(
        fixed(quantile(tally.needed, 0.5), 0), " (", fixed(quantile(tally.needed, 0.25), 0), " to ",
        fixed(quantile(tally.needed, 0.75), 0), "), ", reached, "/", tally.needed.size());
    std::printf("%-16s %38s %8.3f %8.3f %8.3f %9.0f %7.1f\n", name.c_str(), median.c_str(),
                geometric_mean(tally.share_at_20), geometric_mean(tally.share_at_100),
                geometric_mean(tally.share_at_end), quantile(tally.measured, 0.5), tally.seconds);
    std::fflush(stdout);
    figures.add(concat("measurements_to_95_percent ", name), quantile(tally.needed, 0.5));
    figures.add(concat("share_of_optimum_at_100 ", name), geometric_mean(tally.share_at_100));
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("loop_search", argc, argv, foretune::run);
}
