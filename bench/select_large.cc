#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bench/bench_json.h"
#include "bench/select_figures.h"
#include "bench/select_setup.h"
#include "foretune/base/statistics.h"
#include "foretune/model/forest/forest.h"

namespace foretune::bench {
namespace {

// Uses every eighth problem; each takes LightGBM or the plain evaluation a second.
constexpr std::size_t kFewProblems = 8;

double leaf_of(const Forest& forest, const Forest::Tree& tree, std::span<const double> row) {
  std::int32_t at = tree.node_count == 0 ? ~0 : 0;
  while (at >= 0) {
    at = next_node(forest, tree, at, row);
  }
  return forest.leaf_value[tree.first_leaf + static_cast<std::uint32_t>(~at)];
}

// Returns the share of all (tree, candidate) pairs that must be evaluated.
double share_of_work(const Setup& setup, const Problem& problem) {
  const Forest& forest = setup.forest;
  const std::size_t candidates = setup.pool.size();
  const std::size_t trees = forest.trees.size();
  std::vector<double> rows;
  setup.fill_rows(problem, rows);
  std::vector<double> values(trees * candidates);
  for (std::size_t t = 0; t < trees; ++t) {
    for (std::size_t i = 0; i < candidates; ++i) {
      values[t * candidates + i] = leaf_of(
          forest, forest.trees[t], std::span(rows).subspan(i * setup.features(), setup.features()));
    }
  }
  // The least and the most that the trees from index t on can add.
  std::vector<double> least(trees + 1, 0);
  std::vector<double> most(trees + 1, 0);
  for (std::size_t t = trees; t-- > 0;) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(t * candidates);
    const auto [low, high] =
        std::minmax_element(first, first + static_cast<std::ptrdiff_t>(candidates));
    least[t] = least[t + 1] + *low;
    most[t] = most[t + 1] + *high;
  }
  std::vector<double> sums(candidates, 0);
  std::size_t work = 0;
  for (std::size_t t = 0; t < trees; ++t) {
    for (std::size_t i = 0; i < candidates; ++i) {
      sums[i] += values[t * candidates + i];
    }
    const double bound = *std::min_element(sums.begin(), sums.end()) + most[t + 1] - least[t + 1];
    work += static_cast<std::size_t>(
        std::count_if(sums.begin(), sums.end(), [&](double sum) { return sum <= bound; }));
  }
  return static_cast<double>(work) / static_cast<double>(trees * candidates);
}

}  // namespace

void report_early_stop(Figures& figures, const Setup& setup) {
  double sum = 0;
  for (std::size_t i = 0; i < kFewProblems; ++i) {
    sum += share_of_work(setup, setup.problems[i * kProblems / kFewProblems]);
  }
  report(figures, "early_stop_work", sum / kFewProblems,
         "share of the work that exact bounds leave to find the best");
}

void report_large_forest(Figures& figures, int argc, char** argv, const SpaceDefinition& space,
                         int runs) {
  const Setup setup =
      make_setup(argc, argv, space, {.trees = 2000, .leaves = 115, .kept_by = "large-forest"});
  const Booster booster(setup.text);
  ScoredPool ours(setup, best_cpu_isa());
  std::vector<double> our_ms;
  std::vector<double> their_ms;
  std::vector<double> rows;
  std::vector<double> out(setup.pool.size());
  for (int run = 0; run < runs; ++run) {
    our_ms.push_back(ours.mean_ms(setup.problems));
    setup.fill_rows(setup.problems[static_cast<std::size_t>(run) % kProblems], rows);
    their_ms.push_back(milliseconds([&] { booster.predict(rows, setup.features(), out); }));
  }
  report(figures, "forest_2000_splits", static_cast<double>(setup.forest.feature.size()),
         "splits of 2,000 trees");
  report(figures, "forest_2000_4608_ms", median(our_ms), "ours, features included");
  report(figures, "lightgbm_2000_4608_ms", median(their_ms), "LightGBM's C API, one batch");
}

}  // namespace foretune::bench
