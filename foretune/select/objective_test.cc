// Selectors that follow an objective.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "foretune/base/testing/allocation_count.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/model/distilled/testing/distilled_samples.h"
#include "foretune/model/objective_scorer.h"
#include "foretune/model/testing/metric_model_samples.h"
#include "foretune/select/foretune.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

Model metrics_model() {
  Rng rng(51);
  return sample_metrics_model(
      {.forests = 1, .candidates = 300, .forest = {.trees = 8, .max_leaves = 31}}, rng);
}

std::unique_ptr<Selector> follow(const Model& model, std::string_view objective) {
  auto selector = Selector::create(model, {.objective = *Objective::parse(objective)});
  EXPECT_TRUE(selector.has_value()) << selector.error().message;
  return std::move(*selector);
}

Problem inside(const Selector& selector, Rng& rng) {
  for (;;) {
    const Problem problem = sample_gemm(rng);
    if (selector.select(problem).picked()) {
      return problem;
    }
  }
}

TEST(ObjectiveSelector, PicksTheBestOfWhatIsPredictedToKeepAllBounds) {
  const Model model = metrics_model();
  const auto plain = Selector::create(model);
  ASSERT_TRUE(plain.has_value());
  Rng rng(2);
  std::size_t other_picks = 0;
  for (int i = 0; i < 20; ++i) {
    const Problem problem = inside(**plain, rng);
    std::vector<std::uint32_t> candidates;
    for (const RankedCandidate& ranked : (*plain)->rank(problem)) {
      candidates.push_back(ranked.candidate);
    }
    const auto predicted = (*plain)->predict_metrics(problem, candidates);
    ASSERT_EQ(predicted.size(), candidates.size());
    std::vector<double> packs;
    for (const auto& metrics : predicted) {
      packs.push_back(metrics[1].value);
    }
    std::nth_element(packs.begin(), packs.begin() + packs.size() / 4, packs.end());
    const double limit = packs[packs.size() / 4];
    // Those in canonical form come first in rank(), and only among them is picked.
    const auto selector = follow(model, concat("minimise time_ns subject to pack_ns <= ", limit));
    const Choice choice = selector->select(problem);
    ASSERT_TRUE(choice.picked()) << selector->explain(problem, choice);
    const auto of_pick = selector->predict_metrics(problem, std::array{choice.candidate});
    EXPECT_LE(of_pick[0][1].value, limit);
    EXPECT_EQ(of_pick[0][0].z, choice.score);
    EXPECT_LE(of_pick[0][0].low, of_pick[0][0].value);
    EXPECT_GE(of_pick[0][0].high, of_pick[0][0].value);
    const std::vector<RankedCandidate> ranked = selector->rank(problem);
    EXPECT_EQ(ranked[0].candidate, choice.candidate);
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      const auto found = std::find_if(ranked.begin(), ranked.end(), [&](const auto& entry) {
        return entry.candidate == candidates[k];
      });
      ASSERT_NE(found, ranked.end());
      EXPECT_EQ(keeps_bounds(found->score), predicted[k][1].value <= limit);
    }
    other_picks += choice.candidate != (*plain)->select(problem).candidate ? 1U : 0U;
    EXPECT_EQ(choice.margin > 1e5, std::isinf(choice.margin));
  }
  EXPECT_GT(other_picks, 5U);
}

TEST(ObjectiveSelector, AbstainsWhereNothingIsPredictedToKeepTheBounds) {
  const auto selector = follow(metrics_model(), "minimise time_ns subject to qos_tune >= 1e9");
  Rng rng(3);
  bool abstained = false;
  for (int i = 0; i < 40 && !abstained; ++i) {
    const Problem problem = sample_gemm(rng);
    const Choice choice = selector->select(problem);
    EXPECT_FALSE(choice.picked());
    if (choice.reason == AbstainReason::kNoFeasibleConfig) {
      abstained = true;
      EXPECT_TRUE(choice.has_candidate);
      EXPECT_FALSE(keeps_bounds(choice.score));
      const std::string why = selector->explain(problem, choice);
      EXPECT_NE(why.find("qos_tune is predicted to be"), std::string::npos) << why;
    }
  }
  EXPECT_TRUE(abstained);
}

TEST(ObjectiveSelector, OfTheModelsOwnOrderChangesNothing) {
  Rng rng(8);
  Model model = sample_model({.candidates = 60}, rng);
  const auto plain = Selector::create(model);
  const auto same = follow(model, "minimise time_ns");
  EXPECT_EQ(same->judge(), nullptr);
  for (int i = 0; i < 20; ++i) {
    const Problem problem = sample_gemm(rng);
    const Choice a = (*plain)->select(problem);
    const Choice b = same->select(problem);
    EXPECT_EQ(a.candidate, b.candidate);
    EXPECT_EQ(a.score, b.score);
  }
  // A model that knows times up to a factor says no value.
  const auto predicted = same->predict_metrics(sample_gemm(rng), std::array{0U});
  EXPECT_TRUE(std::isnan(predicted[0][0].value));
}

TEST(ObjectiveSelector, NeitherAllocatesNorForgets) {
  const auto selector = follow(metrics_model(), "maximise qos_tune subject to time_ns <= 1.5");
  Rng rng(5);
  const Problem problem = sample_gemm(rng);
  const Choice first = selector->select_uncached(problem);
  const std::uint64_t before = allocation_count();
  const Choice again = selector->select_uncached(problem);
  const Choice cached = selector->select(problem);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(first.candidate, again.candidate);
  EXPECT_EQ(first.score, cached.score);
}

TEST(ObjectiveSelector, RefusesWhatTheModelCannotFollow) {
  const Model model = metrics_model();
  const auto refused = [&](std::string_view objective, std::string_view reason) {
    const auto selector = Selector::create(model, {.objective = *Objective::parse(objective)});
    ASSERT_FALSE(selector.has_value());
    EXPECT_NE(selector.error().message.find(reason), std::string::npos) << selector.error().message;
  };
  refused("pareto time_ns pack_ns", "several targets");
  refused("minimise energy_j", "no energy_j");
  refused("minimise time_ns subject to time_ns <= 2 * baseline", "baseline");
}

TEST(ObjectiveSelector, OpensThroughTheCInterface) {
  const Model model = metrics_model();
  const testing_support::TemporaryFolder folder;
  const std::string path = (folder / "model.ftm").string();
  ASSERT_TRUE(write_model(model, path));
  std::array<char, 200> message{};
  foretune_selector* selector = nullptr;
  EXPECT_EQ(foretune_selector_open_objective(path.c_str(), "minimise bytes", &selector,
                                             message.data(), message.size()),
            FORETUNE_NOT_FOUND);
  EXPECT_EQ(foretune_selector_open_objective(path.c_str(), nullptr, &selector, message.data(),
                                             message.size()),
            FORETUNE_INVALID_ARGUMENT);
  const char* const text = "minimise pack_ns subject to qos_tune >= 80";
  ASSERT_EQ(foretune_selector_open_objective(path.c_str(), text, &selector, message.data(),
                                             message.size()),
            FORETUNE_OK)
      << message.data();
  const auto expected = follow(model, text);
  const foretune_gemm gemm = {.m = 64, .n = 512, .k = 256, .batch = 1, .dtype = FORETUNE_BF16};
  foretune_choice choice;
  ASSERT_EQ(foretune_select_gemm(selector, &gemm, &choice), FORETUNE_OK);
  const Choice own = expected->select(
      GemmProblem::create({.m = 64, .n = 512, .k = 256, .dtype = DataType::kBf16})->to_problem());
  EXPECT_EQ(choice.reason, static_cast<int>(own.reason));
  EXPECT_EQ(choice.candidate, own.candidate);
  EXPECT_EQ(choice.score, own.score);
  EXPECT_NE(
      std::string_view(foretune_reason_text(FORETUNE_REASON_NO_FEASIBLE_CONFIG)).find("bounds"),
      std::string_view::npos);
  foretune_selector_close(selector);
}

}  // namespace
}  // namespace foretune
