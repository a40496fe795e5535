#include "bench/sparse_records.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/rng.h"

namespace foretune::bench {
namespace {

// A matrix with the times 1, 2, ... ns, whose scores are those times, their reverse, or missing.
JudgedMatrix matrix_of(std::size_t schedules) {
  JudgedMatrix matrix;
  std::vector<double> worst;
  for (std::size_t i = 0; i < schedules; ++i) {
    matrix.time_ns.push_back(static_cast<double>(i + 1));
    worst.push_back(static_cast<double>(schedules - i));
  }
  matrix.scores = {{"best", matrix.time_ns},
                   {"worst", worst},
                   {"none", std::vector<double>(schedules, std::nan(""))}};
  return matrix;
}

TEST(SparseRecords, ChoosersAreJudgedByTheBestOfTheDraw) {
  const std::vector<JudgedMatrix> matrices{matrix_of(1000)};
  const TopFigures best = judge(matrices, "best", 50, 1).at(0);
  const TopFigures worst = judge(matrices, "worst", 50, 1).at(0);
  const TopFigures random = judge(matrices, "random", 50, 1).at(0);
  for (std::size_t top = 0; top < kTopCounts.size(); ++top) {
    EXPECT_NEAR(best.ratio[top], 1, 1e-9);
    EXPECT_NEAR(best.chosen[top], best.best, 1e-6);
    EXPECT_LT(worst.ratio[top], random.ratio[top]);
    EXPECT_LT(random.ratio[top], 1);
    EXPECT_GT(random.chosen[top], random.best);
  }
  EXPECT_LT(random.ratio[0], random.ratio[3]);
  // Every chooser sees the same draws.
  EXPECT_EQ(best.best, worst.best);
  EXPECT_EQ(best.best, random.best);
}

TEST(SparseRecords, MatricesOfFewSchedulesOrWithoutScoresAreLeftOut) {
  const std::vector<JudgedMatrix> matrices{matrix_of(199), matrix_of(200)};
  EXPECT_EQ(judge(matrices, "best", 5, 1).size(), 1U);
  EXPECT_TRUE(judge(matrices, "none", 5, 1).empty());
}

}  // namespace
}  // namespace foretune::bench
