#include "foretune/autoschedule/search_comparison.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretune/loop/canonical_schedule.h"

namespace foretune::autoschedule {
namespace {

using environment::Stopwatch;
using environment::StopwatchOptions;
using environment::Workbench;

// A schedule that a search found, ready to run.
struct Contender {
  std::function<void()> run;
  double seconds = std::numeric_limits<double>::infinity();
};

void time_window(Contender& contender, double window_s,
                 const std::function<double()>& now_seconds) {
  const double begin_s = now_seconds();
  double elapsed_s = 0;
  int runs = 0;
  for (int batch = 1; elapsed_s < window_s; batch *= 2) {
    for (int i = 0; i < batch; ++i) {
      contender.run();
    }
    runs += batch;
    elapsed_s = now_seconds() - begin_s;
  }
  contender.seconds = std::min(contender.seconds, elapsed_s / runs);
}

// The fastest of a search, as it saw them.
std::vector<std::size_t> finalists_of(const SearchTrace& trace, std::size_t count) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    if (trace.steps[i].gflops > 0) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return trace.steps[a].gflops > trace.steps[b].gflops;
  });
  order.resize(std::min(order.size(), count));
  return order;
}

std::vector<double> after_each_action(Workbench& workbench, const ScheduleSpace& space,
                                      const Config& config, StopwatchOptions options) {
  std::vector<double> gflops;
  options.give_up = std::numeric_limits<double>::infinity();
  Stopwatch stopwatch(workbench, options);
  const loop::Computation& computation = space.computation();
  loop::Nest nest = loop::Nest::plain(computation);
  gflops.push_back(stopwatch.evaluate(nest).counted_gflops());
  if (const auto found = space.nest(config)) {
    for (const loop::Action& action : loop::schedule_of(computation, *found)) {
      nest = loop::apply(computation, nest, action).value_or(nest);
      gflops.push_back(stopwatch.evaluate(nest).counted_gflops());
    }
  }
  return gflops;
}

}  // namespace

Result<std::vector<double>> time_finalists(Workbench& workbench, const ScheduleSpace& space,
                                           std::span<SearchTrace* const> traces,
                                           const FinalOptions& options) {
  // What several found is timed once: the same schedule has one speed.
  std::unordered_map<Config, Contender> contenders;
  std::vector<std::vector<std::size_t>> finalists;
  for (const SearchTrace* const trace : traces) {
    finalists.push_back(finalists_of(*trace, options.finalists));
    for (const std::size_t step : finalists.back()) {
      const Config& config = trace->steps[step].config;
      const auto [contender, is_new] = contenders.try_emplace(config);
      if (is_new) {
        FORETUNE_TRY(const loop::Nest nest, space.nest(config));
        FORETUNE_TRY(contender->second.run, workbench.prepare(nest));
      }
    }
  }
  const auto now_seconds = options.now_seconds ? options.now_seconds : steady_seconds;
  for (int round = 0; round < options.rounds; ++round) {
    for (auto& [config, contender] : contenders) {
      time_window(contender, options.window_s, now_seconds);
    }
  }
  std::vector<double> gflops;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    double seconds = std::numeric_limits<double>::infinity();
    for (const std::size_t step : finalists[i]) {
      const double its_seconds = contenders.at(traces[i]->steps[step].config).seconds;
      if (its_seconds < seconds) {
        seconds = its_seconds;
        traces[i]->best = step;
      }
    }
    gflops.push_back(space.computation().flops() / seconds / 1e9);
  }
  return gflops;
}

Result<BenchmarkResult> compare_searches(const std::string& benchmark, Workbench& workbench,
                                         const ScheduleSpace& space,
                                         std::span<const SearchMethod> methods,
                                         const ComparisonOptions& options) {
  BenchmarkResult result{
      .benchmark = benchmark, .computation = space.computation().name, .methods = {}};
  for (const SearchMethod& method : methods) {
    if (options.on_search) {
      options.on_search(method);
    }
    Stopwatch stopwatch(workbench, options.stopwatch);
    MethodResult of_method{.method = method.name, .trace = {}, .schedule = {}, .gflops_after = {}};
    FORETUNE_TRY(of_method.trace,
                 run_search(space, method, stopwatch, options.budget, options.seed, options.setup));
    result.methods.push_back(std::move(of_method));
  }
  // The start takes its turns, too.
  SearchTrace start;
  start.steps.push_back({.config = space.start(), .gflops = 1});
  std::vector<SearchTrace*> traces{&start};
  for (MethodResult& method : result.methods) {
    traces.push_back(&method.trace);
  }
  FORETUNE_TRY(const std::vector<double> gflops,
               time_finalists(workbench, space, traces, options.final));
  result.base_gflops = gflops.front();
  for (std::size_t i = 0; i < result.methods.size(); ++i) {
    MethodResult& method = result.methods[i];
    method.gflops = gflops[i + 1];
    if (!method.trace.steps.empty()) {
      const Config& best = method.trace.steps[method.trace.best].config;
      method.schedule = space.text(best);
      method.gflops_after = after_each_action(workbench, space, best, options.stopwatch);
    }
  }
  return result;
}

}  // namespace foretune::autoschedule
