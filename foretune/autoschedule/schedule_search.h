// A search for the fastest schedule of a computation: a strategy, a budget, and what was measured
// on the way.
//
//   FORETUNE_TRY(const SearchMethod method, SearchMethod::parse("beam4bfs"));
//   FORETUNE_TRY(const SearchTrace trace,
//                run_search(*space, method, stopwatch, {.measurements = 500}, 42, setup));
//   trace.steps[trace.best]
//
// Thread safety: one thread. Nothing is kept between searches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/autoschedule/nest_guide.h"
#include "foretune/base/result.h"
#include "foretune/environment/evaluator.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/search/strategy.h"

namespace foretune::autoschedule {

// A strategy with its settings, by a name: base (nothing but the start), random, greedy1, greedy2
// (any lookahead), beam2bfs, beam4dfs (any width), bruteforce, annealing, evolution, mcts, guided,
// recipe (the constant list that LoopTune's policy mostly took), textbook (register tiles by rule).
struct SearchMethod {
  std::string name;
  std::string strategy;  // of create_walk(); empty for a list of schedules
  std::size_t lookahead = 1;
  std::size_t width = 4;

  // Errors: kNotFound, with the names that there are.
  static Result<SearchMethod> parse(std::string_view name);
  // Names to compare by, when none are asked for.
  static std::vector<std::string> usual();
};

// What ends a search first; 0 is no limit, and one of them has to be there.
struct SearchBudget {
  std::size_t measurements = 0;
  double seconds = 0;
};

struct SearchStep {
  Config config;      // canonical
  double gflops = 0;  // counted: 0 where the schedule was refused
  double seconds = std::numeric_limits<double>::infinity();  // of one run
  double elapsed_s = 0;  // since the search began, its measuring included
};

struct SearchTrace {
  std::vector<SearchStep> steps;  // in the order of measuring
  std::size_t best = 0;           // the fastest of them, as far as is known
  double elapsed_s = 0;
  bool is_finished = false;  // the strategy had nothing more to try

  // How many measurements it took to reach a speed; 0 when it never did.
  [[nodiscard]] std::size_t measurements_to(double gflops) const;
};

// Seconds of the monotonic clock that is taken where none is given.
double steady_seconds();

struct SearchSetup {
  std::size_t max_steps = 10;  // actions of a schedule
  loop::VectorUnit unit;       // `textbook`, `guided`
  std::size_t textbook_count = 64;
  GuideOptions guide;
  const Regression* prior = nullptr;    // `guided`
  std::function<double()> now_seconds;  // monotonic; empty: steady_seconds
};

// `evaluator` has to be new where no time of another search may count. Errors: kInvalidArgument for
// a budget without a limit; the strategy's.
Result<SearchTrace> run_search(const ScheduleSpace& space, const SearchMethod& method,
                               environment::Evaluator& evaluator, const SearchBudget& budget,
                               std::uint64_t seed, const SearchSetup& setup);

}  // namespace foretune::autoschedule
