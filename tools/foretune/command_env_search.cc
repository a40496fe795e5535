// foretune env-search: searches for the fastest schedules of a data set's benchmarks against each
// other, and a folder of what they found.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/autoschedule/search_comparison.h"
#include "foretune/autoschedule/search_graph.h"
#include "foretune/autoschedule/search_results.h"
#include "foretune/base/figures.h"
#include "foretune/base/file.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/documents/tensorboard_events.h"
#include "foretune/environment/benchmarks.h"
#include "foretune/environment/cursor_space.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/computation_text.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

using autoschedule::BenchmarkResult;
using autoschedule::MethodResult;
using autoschedule::SearchMethod;
using autoschedule::SearchResults;
using environment::ActionSet;
using environment::Benchmark;
using environment::Workbench;
using loop::ScheduleSpace;

struct EnvSearchArguments {
  std::string dataset = "mm64_256_16_test25";
  std::int64_t size = 0;
  std::string methods;
  std::int64_t eval_size = 0;
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
    list.add("size", size, "N", "only the first N benchmarks; 0 is all").at_least(0);
    list.add("methods", methods, "LIST",
             "base, recipe, textbook, random, greedy1, greedy2, beam4bfs, beam4dfs (any numbers), "
             "bruteforce, annealing, evolution, mcts, guided; joined by commas")
        .also("strategies");
    list.add("eval-size", eval_size, "N", "measurements of each search; 0 is no limit").at_least(0);
    list.add("eval-time", eval_time, "SECONDS", "of each search; 2 when nothing is limited");
    list.add("steps", steps, "N", "actions of a schedule, at most").at_least(1).at_most(100);
    list.add("actions", actions, "LIST",
             "that schedules are made of: LoopTune's names joined by commas, 'all' of them, or "
             "'loops' for actions that name their loop; its seven when left out");
    list.add("isa", isa, "NAME", "instructions to compile for").choose({"avx2", "avx512"});
    list.add("peak", peak_gflops, "GFLOPS", "what is 100 %; measured when left out");
    list.add("output", output, "FOLDER", "new folder for tables, plots and logs");
    list.add_switch("debug", debug, "write every search as a graph, too")
        .only({"with --output", [this] { return !output.empty(); }});
  }
};

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Result<std::vector<SearchMethod>> parse_methods(const std::string& text) {
  std::vector<SearchMethod> methods;
  if (text.empty()) {
    for (const std::string& name : SearchMethod::usual()) {
      FORETUNE_TRY(SearchMethod method, SearchMethod::parse(name));
      methods.push_back(std::move(method));
    }
    return methods;
  }
  for (const std::string_view name : split(text, ',')) {
    FORETUNE_TRY(SearchMethod method, SearchMethod::parse(trim(name)));
    const auto is_same = [&](const SearchMethod& other) { return other.name == method.name; };
    if (std::any_of(methods.begin(), methods.end(), is_same)) {
      return fail(ErrorCode::kInvalidArgument, "the search '", method.name, "' is there twice");
    }
    methods.push_back(std::move(method));
  }
  return methods;
}

Result<std::unique_ptr<ScheduleSpace>> make_space(const EnvSearchArguments& arguments,
                                                  const Benchmark& benchmark,
                                                  const loop::VectorUnit& unit) {
  if (arguments.actions == "loops") {
    if (!benchmark.schedule.empty()) {
      return fail(ErrorCode::kUnsupported, benchmark.name,
                  ": actions that name their loop start from the plain nest");
    }
    return ScheduleSpace::of_loops(benchmark.computation, unit);
  }
  ActionSet actions;
  if (arguments.actions == "all") {
    actions = ActionSet::all();
  } else if (!arguments.actions.empty()) {
    FORETUNE_TRY(actions, ActionSet::parse(arguments.actions));
  }
  return environment::cursor_space(benchmark.computation, actions, environment::kDefaultLimits,
                                   benchmark.start());
}

// The folder of a run. Written anew after every benchmark, so that what is there is whole whenever
// a run ends.
class OutputFolder {
 public:
  static Result<OutputFolder> create(const std::string& path, const EnvSearchArguments& arguments,
                                     const Invocation& invocation,
                                     const std::vector<SearchMethod>& methods) {
    OutputFolder folder(path, arguments.debug, invocation.command_line);
    std::error_code error;
    if (std::filesystem::exists(path, error) && !std::filesystem::is_empty(path, error)) {
      return fail(ErrorCode::kInvalidArgument, path,
                  " is there and not empty; results go into a folder of their own");
    }
    std::filesystem::create_directories(folder.path_ / "benchmarks", error);
    if (error) {
      return fail(ErrorCode::kIo, path, ": ", error.message());
    }
    folder.begin_s_ = wall_seconds();
    for (const SearchMethod& method : methods) {
      FORETUNE_TRY(documents::TensorboardWriter writer,
                   documents::TensorboardWriter::create(folder.path_ / "tensorboard" / method.name,
                                                        folder.begin_s_, "foretune"));
      folder.writers_.push_back(std::move(writer));
    }
    return folder;
  }

  Status add(const SearchResults& results, const ScheduleSpace& space) {
    const BenchmarkResult& last = results.benchmarks.back();
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        (path_ / "benchmarks" / concat(file_name(last.benchmark), ".csv")).string(),
        autoschedule::measurements_csv(results, last, space)));
    FORETUNE_TRY_STATUS(write("results.csv", autoschedule::results_csv(results)));
    FORETUNE_TRY_STATUS(write("bars.svg", autoschedule::bars_svg(results)));
    FORETUNE_TRY_STATUS(write("violin.svg", autoschedule::violin_svg(results)));
    FORETUNE_TRY_STATUS(write("gain.svg", autoschedule::gain_svg(results)));
    for (std::size_t i = 0; i < last.methods.size(); ++i) {
      FORETUNE_TRY_STATUS(log(results, last, i));
      if (debug_) {
        std::error_code error;
        std::filesystem::create_directories(path_ / "graphs", error);
        FORETUNE_TRY_STATUS(write_text_file_atomically(
            (path_ / "graphs" /
             concat(file_name(last.benchmark), "-", last.methods[i].method, ".dot"))
                .string(),
            autoschedule::search_graph_dot(space, last.methods[i].trace,
                                           {.peak_gflops = results.peak_gflops})));
      }
    }
    return {};
  }

  Status write_manifest(const SearchResults& results, const EnvSearchArguments& arguments,
                        const Invocation& invocation, std::string_view isa) {
    const CpuFacts facts = read_cpu_facts();
    std::string methods;
    for (const MethodResult& method : results.benchmarks.front().methods) {
      methods += concat(methods.empty() ? "" : ", ", json_quoted(method.method));
    }
    return write(
        "manifest.json",
        concat("{\n  \"command\": ", json_quoted(command_line_), ",\n  \"data_set\": ",
               json_quoted(arguments.dataset), ",\n  \"benchmarks\": ", results.benchmarks.size(),
               ",\n  \"methods\": [", methods, "],\n  \"measurements\": ", arguments.eval_size,
               ",\n  \"seconds\": ", arguments.eval_time, ",\n  \"steps\": ", arguments.steps,
               ",\n  \"actions\": ", json_quoted(arguments.actions), ",\n  \"seed\": ",
               invocation.global->seed, ",\n  \"peak_gflops\": ", fixed(results.peak_gflops, 3),
               ",\n  \"peak_is_measured\": ", arguments.peak_gflops > 0 ? "false" : "true",
               ",\n  \"isa\": ", json_quoted(isa), ",\n  \"cpu\": ", json_quoted(facts.model),
               ",\n  \"cores\": ", facts.cores, ",\n  \"l2_bytes\": ", facts.l2_bytes,
               ",\n  \"l3_bytes\": ", facts.l3_bytes, ",\n  \"hypervisor\": ",
               json_quoted(facts.hypervisor), ",\n  \"began_unix_s\": ", fixed(begin_s_, 0),
               ",\n  \"took_s\": ", fixed(wall_seconds() - begin_s_, 1), "\n}\n"));
  }

  Status close() {
    for (documents::TensorboardWriter& writer : writers_) {
      FORETUNE_TRY_STATUS(writer.close());
    }
    return {};
  }

 private:
  OutputFolder(std::filesystem::path path, bool debug, std::string command_line)
      : path_(std::move(path)), debug_(debug), command_line_(std::move(command_line)) {}

  Status write(const char* name, const std::string& text) const {
    return text.empty() ? Status() : write_text_file_atomically((path_ / name).string(), text);
  }

  // A computation's text may be a benchmark's name.
  static std::string file_name(std::string name) {
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ' ' || c == '/' || c == '='; }, '_');
    return name;
  }

  // The best so far by measurements, and what was found by benchmarks.
  Status log(const SearchResults& results, const BenchmarkResult& benchmark, std::size_t index) {
    const MethodResult& method = benchmark.methods[index];
    documents::TensorboardWriter& writer = writers_[index];
    double best = 0;
    for (std::size_t i = 0; i < method.trace.steps.size(); ++i) {
      if (method.trace.steps[i].gflops > best || i + 1 == method.trace.steps.size()) {
        best = std::max(best, method.trace.steps[i].gflops);
        FORETUNE_TRY_STATUS(writer.add_scalar(concat("best_gflops/", benchmark.benchmark),
                                              static_cast<std::int64_t>(i + 1), best,
                                              wall_seconds()));
      }
    }
    const auto step = static_cast<std::int64_t>(results.benchmarks.size());
    FORETUNE_TRY_STATUS(writer.add_scalar("found/share_of_peak", step,
                                          method.gflops / results.peak_gflops, wall_seconds()));
    return writer.add_scalar("found/speedup_over_start", step,
                             method.gflops / benchmark.base_gflops, wall_seconds());
  }

  std::filesystem::path path_;
  bool debug_;
  std::string command_line_;
  double begin_s_ = 0;
  std::vector<documents::TensorboardWriter> writers_;  // per method
};

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

void print_benchmark(const BenchmarkResult& result, double peak_gflops) {
  const auto best = std::max_element(
      result.methods.begin(), result.methods.end(),
      [](const MethodResult& a, const MethodResult& b) { return a.gflops < b.gflops; });
  print(concat(
      padded(result.benchmark, 22), padded(concat("from ", fixed(result.base_gflops, 1)), 12),
      padded(concat("to ", fixed(best->gflops, 1), " GFLOP/s"), 20),
      padded(concat(fixed(100 * best->gflops / peak_gflops, 1), " %"), 9), best->method, "\n"));
}

// By method, over all benchmarks.
void print_summary(const SearchResults& results) {
  print(concat("\n", padded("", 12), padded("of the peak", 14), padded("over the start", 17),
               padded("measured", 11), padded("seconds", 9), "\n"));
  for (std::size_t i = 0; i < results.benchmarks.front().methods.size(); ++i) {
    std::vector<double> share;
    std::vector<double> speedup;
    std::vector<double> measured;
    std::vector<double> seconds;
    for (const BenchmarkResult& benchmark : results.benchmarks) {
      const MethodResult& method = benchmark.methods[i];
      share.push_back(method.gflops / results.peak_gflops);
      speedup.push_back(method.gflops / benchmark.base_gflops);
      measured.push_back(static_cast<double>(method.trace.steps.size()));
      seconds.push_back(method.trace.elapsed_s);
    }
    print(concat(padded(results.benchmarks.front().methods[i].method, 12),
                 padded(fixed(geometric_mean(share), 3), 14),
                 padded(concat(fixed(geometric_mean(speedup), 2), "x"), 17),
                 padded(fixed(quantile(measured, 0.5), 0), 11),
                 padded(fixed(quantile(seconds, 0.5), 2), 9), "\n"));
  }
}

Result<int> search_environment(const EnvSearchArguments& given, const Invocation& invocation) {
  EnvSearchArguments arguments = given;
  if (arguments.eval_time < 0 || arguments.peak_gflops < 0) {
    return fail(ErrorCode::kInvalidArgument, "seconds and GFLOPS are not negative");
  }
  if (arguments.eval_size == 0 && arguments.eval_time == 0) {
    arguments.eval_time = 2;
  }
  FORETUNE_TRY(const std::vector<SearchMethod> methods, parse_methods(arguments.methods));
  FORETUNE_TRY(std::vector<Benchmark> benchmarks, environment::load_benchmarks(arguments.dataset));
  if (arguments.size > 0) {
    benchmarks.erase(
        benchmarks.begin() + std::min<std::ptrdiff_t>(arguments.size, std::ssize(benchmarks)),
        benchmarks.end());
  }
  const CpuIsa isa = parse_cpu_isa(arguments.isa).value_or(best_cpu_isa());
  if (isa > best_cpu_isa() || isa == CpuIsa::kGeneric) {
    return fail(ErrorCode::kUnsupported, "this CPU runs ", to_string(best_cpu_isa()),
                "; loop nests are compiled for avx2 and avx512");
  }
  const loop::VectorUnit unit = loop::VectorUnit::of(isa);
  std::optional<OutputFolder> folder;
  if (!arguments.output.empty()) {
    FORETUNE_TRY(folder, OutputFolder::create(arguments.output, arguments, invocation, methods));
  }
  autoschedule::ComparisonOptions options{
      .budget = {.measurements = static_cast<std::size_t>(arguments.eval_size),
                 .seconds = arguments.eval_time},
      .seed = static_cast<std::uint64_t>(invocation.global->seed),
      .setup = {.max_steps = static_cast<std::size_t>(arguments.steps), .unit = unit}};
  SearchResults results{.peak_gflops = arguments.peak_gflops, .benchmarks = {}};
  for (const Benchmark& benchmark : benchmarks) {
    // The highest of all probes: clocks rise and fall.
    if (arguments.peak_gflops == 0) {
      results.peak_gflops = std::max(results.peak_gflops, measure_fma_gflops(0.05, isa));
    }
    FORETUNE_TRY(const auto space, make_space(arguments, benchmark, unit));
    FORETUNE_TRY(const std::unique_ptr<Workbench> workbench,
                 Workbench::create(benchmark.computation, unit));
    auto compared =
        autoschedule::compare_searches(benchmark.name, *workbench, *space, methods, options);
    if (!compared) {
      return fail_because(compared.error(), benchmark.name);
    }
    results.benchmarks.push_back(*std::move(compared));
    print_benchmark(results.benchmarks.back(), results.peak_gflops);
    if (folder) {
      FORETUNE_TRY_STATUS(folder->add(results, *space));
      FORETUNE_TRY_STATUS(folder->write_manifest(results, arguments, invocation, to_string(isa)));
    }
  }
  print_summary(results);
  if (folder) {
    FORETUNE_TRY_STATUS(folder->close());
    print(concat("\nwrote ", arguments.output, "\n"));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_env_search(OptionList& list) {
  return prepare_with<EnvSearchArguments, search_environment>(list);
}

}  // namespace foretune::cli
