#include "bench/contest.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "bench/bench_json.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/tune/tune_problem.h"

namespace foretune::bench {
namespace {

constexpr double kWindowSeconds = 4e-3;
constexpr std::size_t kResamples = 4000;

// `has_threads`: those of the last contender may spin for a while on cores that this one uses, and
// its own take a while to wake on cores of their own.
double timed(const std::function<void()>& run, bool has_threads) {
  if (has_threads) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    for (const double woken = seconds_now(); seconds_now() - woken < 10e-3;) {
      run();
    }
  }
  double start = seconds_now();
  run();
  const double once = seconds_now() - start;
  const int repeats = std::max(1, static_cast<int>(kWindowSeconds / once));
  start = seconds_now();
  for (int i = 0; i < repeats; ++i) {
    run();
  }
  return (seconds_now() - start) / repeats;
}

}  // namespace

void time_in_turn(std::span<Contender> contenders, int rounds, bool has_threads) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      Contender& next = contenders[(i + static_cast<std::size_t>(round)) % contenders.size()];
      next.seconds.push_back(timed(next.run, has_threads));
    }
  }
}

Result<Config> tuned_config(const std::shared_ptr<const Family>& family, const Problem& problem,
                            double seconds, const Scorer* scorer) {
  Context context;
  context.machine = family->info().fingerprint.digest();
  context.device = family->info().fingerprint.device;
  context.threads = family->info().max_threads;
  Protocol protocol;
  protocol.windows = 2;
  protocol.max_windows = 3;
  const std::unique_ptr<Measurer> measurer = make_local_measurer(family, protocol, context);
  CollectHooks hooks;
  hooks.now_s = &seconds_now;
  TuneOptions options;
  options.strategy = scorer != nullptr ? "model" : "local";
  options.scorer = scorer;
  options.budget.seconds = seconds;
  FORETUNE_TRY(const TuneResult result,
               tune_problem(*family, *measurer, nullptr, problem, options, hooks));
  return result.finalists.front().config;
}

void print_ratios(const std::string& name, const std::vector<double>& ratios,
                  std::string_view unit) {
  Rng rng(1);
  const BootstrapInterval interval = bootstrap_interval(ratios, &geometric_mean, kResamples, rng);
  std::printf("  %-14s %3zu %s: %.3f (%.3f to %.3f), least %.3f\n", name.c_str(), ratios.size(),
              std::string(unit).c_str(), geometric_mean(ratios), interval.low, interval.high,
              *std::min_element(ratios.begin(), ratios.end()));
}

}  // namespace foretune::bench
