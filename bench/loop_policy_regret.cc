#include "bench/loop_policy_regret.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bench/loop_problems.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/loop/computation_text.h"
#include "foretune/loop/gym/recipe.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/measure.h"
#include "foretune/tune/strategy_contest.h"

namespace foretune::bench {
namespace {

constexpr const char* kMethods = "policy,random,greedy1,beam4bfs,annealing,guided";
constexpr std::size_t kBudget = 50;
constexpr double kNear = 0.95;
constexpr std::array<std::size_t, 6> kCounts = {1, 2, 5, 10, 20, 50};

// The times of one search, in the order of measuring, and the problem they are of.
struct Curve {
  std::size_t problem = 0;
  std::vector<double> fastest_ns;  // so far
};

struct Method {
  std::string name;
  std::vector<Curve> curves;
};

Curve curve_of(std::size_t problem, const ContestTrace& trace) {
  Curve curve{.problem = problem, .fastest_ns = {}};
  double fastest = std::numeric_limits<double>::infinity();
  for (const ContestStep& step : trace.steps) {
    fastest = std::min(fastest, step.time_ns);
    curve.fastest_ns.push_back(fastest);
  }
  return curve;
}

// Runs all methods with all seeds on one problem and returns the fastest time that any found.
Result<double> contest(std::size_t problem, const Model& policy, CpuIsa isa, std::uint64_t seeds,
                       std::vector<Method>& methods) {
  FORETUNE_TRY(loop::Computation computation, loop::parse_computation(kEnumeratedNests[problem]));
  LoopNestOptions nest_options;
  nest_options.isa = isa;
  nest_options.has_textbook_defaults = false;
  const auto schedules = loop::ScheduleSpace::of_loops(computation, loop::VectorUnit::of(isa));
  FORETUNE_TRY(const NestBench nest,
               make_nest_bench(std::move(computation), nest_options, 1, policy.fingerprint));
  const FamilyInfo& info = nest.family->info();
  const auto measurer = make_local_measurer(
      nest.family, Protocol::brief(info),
      {.machine = info.fingerprint.digest(), .device = info.fingerprint.device, .threads = 1});
  FORETUNE_TRY(std::vector<Contestant> contestants, Contestant::parse_list(kMethods));
  contestants.push_back(
      {.name = "recipe", .strategy = {}, .configs = loop::gym::recipe_configs(*schedules)});
  methods.resize(contestants.size());
  double best_ns = std::numeric_limits<double>::infinity();
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    ContestOptions options;
    options.tune.policy = &policy;
    options.tune.budget.measurements = kBudget;
    options.tune.seed = seed;
    options.tune.finalists = 3;
    options.tune.rounds = 3;
    CollectHooks hooks;
    hooks.now_s = &seconds_now;
    FORETUNE_TRY(
        const ContestResult result,
        run_contest(*nest.family, *measurer, nullptr, nest.problem, contestants, options, hooks));
    for (std::size_t i = 0; i < methods.size(); ++i) {
      methods[i].name = contestants[i].name;
      methods[i].curves.push_back(curve_of(problem, result.entries[i].trace));
      best_ns = std::min(best_ns, result.entries[i].time_ns);
    }
  }
  return best_ns;
}

double share_after(const Curve& curve, std::size_t count, double best_ns) {
  const std::size_t last = std::min(count, curve.fastest_ns.size());
  return last == 0 ? 0 : std::min(1.0, best_ns / curve.fastest_ns[last - 1]);
}

double needed(const Curve& curve, double best_ns) {
  for (std::size_t i = 0; i < curve.fastest_ns.size(); ++i) {
    if (best_ns >= kNear * curve.fastest_ns[i]) {
      return static_cast<double>(i + 1);
    }
  }
  return static_cast<double>(kBudget + 1);
}

}  // namespace

Status report_regret(const Model& policy, CpuIsa isa, std::uint64_t seeds, Figures& figures) {
  std::vector<Method> methods;
  std::vector<double> best_ns;
  for (std::size_t problem = 0; problem < kEnumeratedNests.size(); ++problem) {
    FORETUNE_TRY(const double best, contest(problem, policy, isa, seeds, methods));
    best_ns.push_back(best);
  }
  std::printf("%-12s%22s", "method", "to 95 % (quartiles)");
  for (const std::size_t count : kCounts) {
    std::printf("  after %-3zu", count);
  }
  std::printf("\n");
  for (const Method& method : methods) {
    std::vector<double> measurements;
    for (const Curve& curve : method.curves) {
      measurements.push_back(needed(curve, best_ns[curve.problem]));
    }
    const double median = quantile(measurements, 0.5);
    std::printf("%-12s%22s", method.name.c_str(),
                concat(fixed(median, 0), " (", fixed(quantile(measurements, 0.25), 0), " to ",
                       fixed(quantile(measurements, 0.75), 0), ")")
                    .c_str());
    figures.add(concat("measurements_to_95_percent ", method.name), median);
    for (const std::size_t count : kCounts) {
      std::vector<double> shares;
      for (const Curve& curve : method.curves) {
        shares.push_back(std::max(1e-3, share_after(curve, count, best_ns[curve.problem])));
      }
      const double share = geometric_mean(shares);
      std::printf("%11.3f", share);
      figures.add(concat("share_of_best ", method.name, " ", count), share);
    }
    std::printf("\n");
  }
  return {};
}

}  // namespace foretune::bench
