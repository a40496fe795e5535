// How fast the environment of loop nests is: random walks over the products of a list, every new
// schedule compiled, verified and timed, and the same walks again with all of them remembered.
//
//   loop_environment --shapes bench/shapes/loop_test.csv [--seconds 20] [--seed 1] [--json FILE]
//
// New states: those that were not evaluated before, a second, with what the steps, the mask of
// legal actions and the observation (loops_tensor) take. Cached steps: steps a second when no
// schedule is new. One thread.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/hardware/cpu.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/loop/gym/environment.h"
#include "foretune/loop/gym/measured_evaluator.h"
#include "foretune/loop/gym/observations.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using loop::ActionSet;
using loop::gym::CachedEvaluator;
using loop::gym::Environment;
using loop::gym::MeasuredEvaluator;

// A product, its evaluator and its environment.
struct Place {
  std::unique_ptr<MeasuredEvaluator> measured;
  std::unique_ptr<CachedEvaluator> cached;
  std::unique_ptr<Environment> environment;
};

Result<std::vector<Place>> make_places(const std::string& path, double peak_gflops) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  FORETUNE_TRY(const std::vector<Problem> problems, parse_shape_set(text));
  std::vector<Place> places;
  for (const Problem& problem : problems) {
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
    FORETUNE_TRY(loop::Computation computation,
                 loop::matmul({.m = gemm.m(), .n = gemm.n(), .k = gemm.k()}));
    Place place;
    FORETUNE_TRY(place.measured, MeasuredEvaluator::create(computation));
    place.cached = std::make_unique<CachedEvaluator>(*place.measured);
    FORETUNE_TRY(Environment made, Environment::create(std::move(computation), ActionSet(),
                                                       *place.cached, peak_gflops));
    place.environment = std::make_unique<Environment>(std::move(made));
    places.push_back(std::move(place));
  }
  return places;
}

// One episode of random legal actions; returns its steps.
Result<std::uint64_t> walk(Environment& environment, Rng& rng, double& sum) {
  environment.reset();
  std::vector<float> observed(environment.options().max_loops * loop::gym::kLoopsTensorColumns);
  std::uint64_t steps = 0;
  while (!environment.is_over()) {
    const std::vector<bool>& legal = environment.legal_actions();
    std::size_t action = rng.below(legal.size());
    while (!legal[action]) {
      action = rng.below(legal.size());
    }
    FORETUNE_TRY(const auto result, environment.step(environment.actions()[action]));
    loop::gym::write_loops_tensor(environment.computation(), environment.state(), observed);
    sum += result.reward + static_cast<double>(observed[0]);
    ++steps;
  }
  return steps;
}

struct Pass {
  std::uint64_t steps = 0;
  std::uint64_t episodes = 0;
  double seconds = 0;
};

// Walks over all products in turn, for a time or for a number of episodes.
Result<Pass> walk_all(std::vector<Place>& places, std::uint64_t seed, double seconds,
                      std::uint64_t episodes) {
  Pass pass;
  double sum = 0;
  const Rng root(seed);
  const double begin_s = bench::seconds_now();
  while (episodes == 0 ? bench::seconds_now() - begin_s < seconds : pass.episodes < episodes) {
    Place& place = places[pass.episodes % places.size()];
    Rng rng = root.split(pass.episodes);
    FORETUNE_TRY(const std::uint64_t steps, walk(*place.environment, rng, sum));
    pass.steps += steps;
    ++pass.episodes;
  }
  pass.seconds = bench::seconds_now() - begin_s;
  return pass;
}

Status run(int argc, char** argv, Figures& figures) {
  const auto seed = bench::count_argument<std::uint64_t>(argc, argv, "seed", 1);
  const double seconds = bench::number_argument(argc, argv, "seconds", 20);
  FORETUNE_TRY(std::vector<Place> places,
               make_places(bench::argument(argc, argv, "shapes"), measure_fma_gflops(0.1)));
  const auto misses = [&] {
    std::uint64_t all = 0;
    for (const Place& place : places) {
      all += place.cached->misses();
    }
    return all;
  };
  const std::uint64_t before = misses();
  FORETUNE_TRY(const Pass fresh, walk_all(places, seed, seconds, 0));
  const std::uint64_t evaluated = misses() - before;
  FORETUNE_TRY(const Pass cached, walk_all(places, seed, 0, fresh.episodes));
  if (misses() - before != evaluated) {
    return fail(ErrorCode::kInternal, "the second pass met schedules that the first did not");
  }
  const double new_states = static_cast<double>(evaluated) / fresh.seconds;
  const double cached_steps = static_cast<double>(cached.steps) / cached.seconds;
  std::printf(
      "%llu steps of %llu episodes: %llu new states in %.1f s, %.0f a second; the same steps "
      "again %.0f a second\n",
      static_cast<unsigned long long>(fresh.steps), static_cast<unsigned long long>(fresh.episodes),
      static_cast<unsigned long long>(evaluated), fresh.seconds, new_states, cached_steps);
  figures.add("new_states_per_second", new_states);
  figures.add("cached_steps_per_second", cached_steps);
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("loop_environment", argc, argv, foretune::run);
}
