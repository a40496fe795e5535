// Results as searches of matrix products find them, without searching: for tests of tables and
// plots, and to look at the latter.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/report/contest_report.h"

namespace foretune::testing_support {

// How far a method gets towards a good schedule, after how many measurements, and how many it does.
struct TypicalMethod {
  std::string_view name;
  double reach;
  double spread;
  std::size_t measurements;
  double measurement_s;
};
inline constexpr std::array<TypicalMethod, 13> kTypicalMethods{
    {{"base", 0, 0, 1, 0.002},
     {"recipe", 0.72, 0.2, 9, 0.002},
     {"random", 0.6, 0.12, 3000, 0.004},
     {"greedy1", 0.12, 0.1, 40, 0.004},
     {"greedy2", 0.35, 0.15, 380, 0.004},
     {"beam2dfs", 0.3, 0.15, 900, 0.004},
     {"beam4dfs", 0.5, 0.12, 3000, 0.004},
     {"beam2bfs", 0.42, 0.15, 300, 0.004},
     {"beam4bfs", 0.55, 0.12, 900, 0.004},
     {"annealing", 0.8, 0.1, 3000, 0.004},
     {"evolution", 0.86, 0.08, 3000, 0.004},
     {"mcts", 0.78, 0.1, 3000, 0.004},
     {"guided", 0.97, 0.03, 1500, 0.008}}};

inline double uniform(Rng& rng) { return static_cast<double>(rng.below(1000001)) / 1e6; }

inline ContestEntry typical_result(const TypicalMethod& method, double base, double good,
                                   Rng& rng) {
  ContestEntry out{.name = std::string(method.name)};
  const double reach =
      std::clamp(method.reach + method.spread * (uniform(rng) + uniform(rng) - 1), 0.0, 1.0);
  const double found = base * std::pow(good / base, reach);
  double best = 0;
  for (std::size_t i = 0; i < method.measurements; ++i) {
    // Half of the way within the first percents of a search.
    const double way =
        std::pow(static_cast<double>(i + 1) / static_cast<double>(method.measurements), 0.25);
    ContestStep step;
    const double speed =
        i == 0 ? base
               : base * std::pow(found / base, way * uniform(rng)) * (0.6 + 0.4 * uniform(rng));
    step.speed = i % 17 == 5 ? 0 : i + 1 == method.measurements * 9 / 10 ? found : speed;
    if (step.speed > 0) {
      step.time_ns = 1e6 / step.speed;
    }
    step.elapsed_s = method.measurement_s * static_cast<double>(i + 1) * (0.7 + 0.6 * reach);
    if (step.speed > best) {
      best = step.speed;
      out.trace.best = i;
    }
    out.trace.steps.push_back(std::move(step));
  }
  out.trace.elapsed_s = out.trace.steps.back().elapsed_s;
  out.trace.is_finished = method.measurements < 1000;
  out.speed = std::max(best, 1e-3) * (0.98 + 0.04 * uniform(rng));
  out.config_text = "split m0 4, swap m1";
  const std::size_t actions = method.reach == 0 ? 0 : 3 + rng.below(8);
  for (std::size_t i = 0; i <= actions; ++i) {
    const double part = actions == 0 ? 0 : static_cast<double>(i) / static_cast<double>(actions);
    const double dip = i > 0 && i < actions ? 0.5 + 0.5 * uniform(rng) : 1;
    out.speeds_on_way.push_back(base * std::pow(out.speed / base, part) * dip);
  }
  return out;
}

// The first `methods` of the list, but for one: the last of it.
inline ContestResults typical_results(std::size_t methods, std::size_t problems,
                                      std::uint64_t seed = 1) {
  Rng rng(seed);
  ContestResults out{.peak = 134.4, .problems = {}};
  for (std::size_t b = 0; b < problems; ++b) {
    const auto size = [&rng] { return 64 + 16 * rng.below(13); };
    const std::string text = concat("mm m=", size(), " n=", size(), " k=", size());
    ContestResult problem{.name = text, .problem = text};
    problem.start_speed = 14 + 14 * uniform(rng);
    const double good = 80 + 40 * uniform(rng);
    for (std::size_t m = 0; m < methods; ++m) {
      const TypicalMethod& method =
          m + 1 == methods && m > 0 ? kTypicalMethods.back() : kTypicalMethods[m];
      problem.entries.push_back(typical_result(method, problem.start_speed, good, rng));
    }
    out.problems.push_back(std::move(problem));
  }
  return out;
}

}  // namespace foretune::testing_support
