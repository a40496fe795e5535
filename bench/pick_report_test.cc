#include "bench/pick_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/breakdown.h"
#include "foretune/base/rng.h"

namespace foretune::bench {
namespace {

Verdict verdict_of(double pick, double expected_gain) {
  Verdict verdict;
  verdict.pick = pick;
  verdict.expected_gain = expected_gain;
  verdict.is_library = false;
  return verdict;
}

double figure(const Figures& figures, const std::string& name) {
  for (const auto& [known, value] : figures.metrics) {
    if (known == name) {
      return value;
    }
  }
  ADD_FAILURE() << "there is no figure " << name;
  return 0;
}

TEST(Breakdown, HasARowForEveryClass) {
  const std::vector<ShapeClass> layer{{0, "all"}, {1, "llm: new layer"}};
  const std::vector<ShapeClass> drawn{{0, "all"}, {1, "log-normal"}};
  Breakdown breakdown;
  breakdown.add(layer, 0.5, 1);
  breakdown.add(layer, 2, 4);
  breakdown.add(drawn, 4, 4);
  Figures figures;
  breakdown.print("picks", figures);
  EXPECT_DOUBLE_EQ(figure(figures, "picks_geomean_all"), std::cbrt(4.0));
  EXPECT_DOUBLE_EQ(figure(figures, "picks_worst_all"), 0.5);
  EXPECT_DOUBLE_EQ(figure(figures, "picks_problems_llm_new_layer"), 2);
  EXPECT_DOUBLE_EQ(figure(figures, "picks_geomean_llm_new_layer"), 1);
  EXPECT_DOUBLE_EQ(figure(figures, "picks_share_slower_than_098_llm_new_layer"), 0.5);
  EXPECT_DOUBLE_EQ(figure(figures, "picks_share_slower_than_098_log_normal"), 0);
}

TEST(ChooseOnHalves, TakesTheMarginThatLeavesSlowPicksAlone) {
  std::vector<Verdict> verdicts;
  for (int i = 0; i < 50; ++i) {
    verdicts.push_back(verdict_of(0.9, 0.01));
    verdicts.push_back(verdict_of(1.21, 0.10));
  }
  const HalvesResult result = choose_on_halves(verdicts, std::vector{0.0, 0.05, 0.2}, 200);
  EXPECT_NEAR(result.geomean, 1.1, 0.01);
  EXPECT_EQ(result.share_slower, 0);
  EXPECT_EQ(result.share_of_halves, 0);
}

// Gains that say nothing about speeds: what looks best on all products is luck.
TEST(ChooseOnHalves, IsNotFlatteredByTheChoice) {
  Rng rng(7);
  std::vector<Verdict> verdicts;
  for (int i = 0; i < 60; ++i) {
    verdicts.push_back(verdict_of(std::exp(0.1 * rng.normal()), rng.uniform()));
  }
  std::vector<double> margins;
  double best_of_all = 0;
  for (int i = 0; i < 50; ++i) {
    margins.push_back(0.02 * i);
    double sum = 0;
    for (const Verdict& verdict : verdicts) {
      sum += std::log(verdict.with_margin(margins.back()));
    }
    best_of_all = std::max(best_of_all, std::exp(sum / 60));
  }
  EXPECT_LT(choose_on_halves(verdicts, margins, 500).geomean, best_of_all);
}

}  // namespace
}  // namespace foretune::bench
