#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "foretune/base/testing/allocation_count.h"
#include "foretune/model/distilled/testing/distilled_samples.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/select/select.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

constexpr double kNoLimit = 1e9;

class SelectFastTest : public testing::Test {
 protected:
  Rng rng_{41};
  Model model_ = sample_model_with_distilled({}, rng_);

  static std::unique_ptr<Selector> open(const Model& model) {
    auto selector = Selector::create(model);
    EXPECT_TRUE(selector.has_value()) << selector.error().message;
    return std::move(*selector);
  }
};

TEST_F(SelectFastTest, PicksTheBestLegalOfThePortfolioInsideItsBound) {
  const auto selector = open(model_);
  const auto space = CompiledSpace::create(*SpaceDefinition::parse(model_.space_text));
  const DistilledModel& fast = *model_.distilled;
  std::vector<std::int16_t> inputs(fast.features.size());
  std::vector<std::int32_t> scores(fast.portfolio.size());
  int answered = 0;
  int over_bound = 0;
  for (int i = 0; i < 300; ++i) {
    const Problem problem = sample_gemm(rng_);
    fast.inputs(problem.fields(), inputs);
    fast.scores(inputs, scores);
    std::size_t best = fast.portfolio.size();
    for (std::size_t k = 0; k < scores.size(); ++k) {
      if ((*space)->is_legal(model_.pool[fast.portfolio[k]].words.view(), problem.fields(),
                             model_.fingerprint.hardware) &&
          (best == fast.portfolio.size() || scores[k] < scores[best])) {
        best = k;
      }
    }
    const FastChoice choice = selector->select_fast(problem);
    const bool answers = model_.domain->is_inside(problem.fields()) &&
                         static_cast<double>(fast.bound(inputs)) <= Selector::kMaxDistilledRegret &&
                         best < fast.portfolio.size();
    ASSERT_EQ(choice.exact, !answers) << problem.text();
    if (answers) {
      ++answered;
      EXPECT_EQ(choice.choice.candidate, fast.portfolio[best]);
      EXPECT_EQ(choice.choice.score, scores[best] * fast.score_unit);
      EXPECT_GE(choice.choice.margin, 0);
      EXPECT_EQ(choice.bound, static_cast<double>(fast.bound(inputs)));
    } else {
      const Choice exact = selector->select_uncached(problem);
      EXPECT_EQ(choice.choice.candidate, exact.candidate);
      EXPECT_EQ(choice.choice.reason, exact.reason);
    }
    over_bound += fast.bound(inputs) > 0.1F ? 1 : 0;
    EXPECT_TRUE(selector->select_fast(problem, -1).exact);
    EXPECT_FALSE(model_.domain->is_inside(problem.fields()) && best < fast.portfolio.size() &&
                 selector->select_fast(problem, kNoLimit).exact);
  }
  EXPECT_GT(answered, 30);
  EXPECT_GT(over_bound, 30);
}

TEST_F(SelectFastTest, WithoutAFastModelTheExactOneAnswers) {
  model_.distilled.reset();
  const auto selector = open(model_);
  const Problem problem = sample_gemm(rng_);
  const FastChoice choice = selector->select_fast(problem, kNoLimit);
  EXPECT_TRUE(choice.exact);
  EXPECT_EQ(choice.choice.candidate, selector->select(problem).candidate);
}

TEST_F(SelectFastTest, FieldsThatAreNoProblemAreRefused) {
  const auto selector = open(model_);
  const std::array<std::int64_t, 7> fields{0, 0, 8, 8, 1, 2, 1};
  const FastChoice choice = selector->select_fast(kGemmProblem, fields);
  EXPECT_EQ(choice.choice.reason, AbstainReason::kInvalidProblem);
  EXPECT_FALSE(choice.choice.has_candidate);
}

TEST_F(SelectFastTest, DoesNotAllocate) {
  const auto selector = open(model_);
  std::vector<Problem> problems;
  for (int i = 0; i < 50; ++i) {
    problems.push_back(sample_gemm(rng_));
  }
  const std::uint64_t before = allocation_count();
  for (const Problem& problem : problems) {
    static_cast<void>(selector->select_fast(problem, kNoLimit));
  }
  EXPECT_EQ(allocation_count(), before);
}

TEST_F(SelectFastTest, TheDomainDecidesInsteadOfTheRanges) {
  // Ranges that hold nothing, and a domain that holds the problem.
  for (auto& [low, high] : model_.problem_range) {
    low = high = -1e6;
  }
  const Problem problem = sample_gemm(rng_);
  model_.domain = ApplicabilityDomain::fit(std::vector{problem});
  const auto selector = open(model_);
  EXPECT_TRUE(selector->select(problem).picked());
  const Problem far = *Problem::parse("gemm m=1 n=1 k=1 dtype=bf16");
  const Choice choice = selector->select(far);
  EXPECT_EQ(choice.reason, AbstainReason::kOutsideTraining);
  EXPECT_NE(selector->explain(far, choice).find("standard deviations"), std::string::npos)
      << selector->explain(far, choice);
}

TEST_F(SelectFastTest, WithoutADomainTheReasonNamesTheFeature) {
  model_.domain.reset();
  model_.distilled.reset();
  model_.problem_range[0] = {-2, -1};
  const auto selector = open(model_);
  const Problem problem = sample_gemm(rng_);
  const Choice choice = selector->select(problem);
  ASSERT_EQ(choice.reason, AbstainReason::kOutsideTraining);
  EXPECT_NE(selector->explain(problem, choice).find("log2_m"), std::string::npos);
}

TEST_F(SelectFastTest, ASmallMarginIsAReasonOnlyWhenAskedFor) {
  const auto selector = open(model_);
  int abstained = 0;
  for (int i = 0; i < 50; ++i) {
    const Problem problem = sample_gemm(rng_);
    const Choice choice = selector->select(problem);
    if (!choice.picked()) {
      continue;
    }
    EXPECT_TRUE(selector->select(problem, 0.0).picked());
    EXPECT_TRUE(selector->select(problem, choice.margin).picked());
    const Choice closer = selector->select(problem, choice.margin + 1);
    EXPECT_EQ(closer.reason == AbstainReason::kSmallMargin,
              choice.margin < std::numeric_limits<double>::infinity());
    EXPECT_EQ(closer.candidate, choice.candidate);
    if (!closer.picked()) {
      ++abstained;
      EXPECT_NE(selector->explain(problem, closer).find("% slower"), std::string::npos);
    }
  }
  EXPECT_GT(abstained, 10);
}

}  // namespace
}  // namespace foretune
