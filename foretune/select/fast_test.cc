#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "foretune/base/testing/allocation_count.h"
#include "foretune/base/text.h"
#include "foretune/model/distilled/testing/distilled_samples.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/select/select.h"
#include "foretune/space/parametric_space.h"
#include "foretune/space/testing/folded_check.h"

namespace foretune {
namespace {

constexpr double kManyUs = 1e9;

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
                 selector->select_fast(problem, kManyUs).exact);
  }
  EXPECT_GT(answered, 30);
  EXPECT_GT(over_bound, 30);
}

// The spaces of the shipped models: cpu-gemm, cpu-conv, cuBLASLt and Triton.
std::vector<std::filesystem::path> shipped_models() {
  std::vector<std::filesystem::path> out;
  for (const char* folder : {"/foretune/dispatch/models", "/python/foretune/models"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(concat(FORETUNE_SOURCE_DIR, folder))) {
      if (entry.path().extension() == ".ftm") {
        out.push_back(entry.path());
      }
    }
  }
  return out;
}

TEST(ShippedModels, FoldedRulesEqualTheUnfoldedOnes) {
  Rng rng(43);
  std::size_t spaces = 0;
  for (const std::filesystem::path& path : shipped_models()) {
    SCOPED_TRACE(path.string());
    const Model model = read_model(path).value();
    if (model.config_schema.kind == SchemaKind::kSequence) {
      continue;  // a program has the rules of such configs
    }
    const SpaceDefinition definition = SpaceDefinition::parse(model.space_text).value();
    for (int i = 0; i < 8; ++i) {
      spaces += expect_folded_is_unfolded(definition, model.fingerprint.hardware, rng).rules;
    }
  }
  EXPECT_GT(spaces, 0U);
}

// A problem near one of training: the sizes of a point of the domain, and labels that occurred.
std::optional<Problem> draw_near(const Model& model, Rng& rng) {
  const ApplicabilityDomain& domain = *model.domain;
  const std::size_t width = domain.sizes.size();
  const std::size_t point = rng.below(domain.points.size() / width);
  const ProblemSchema& schema = *find_problem_schema(model.problem_type);
  Problem::Fields fields(schema.fields.size());
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    fields[i] = schema.fields[i].minimum;
  }
  for (std::size_t i = 0; i < width; ++i) {
    const ApplicabilityDomain::Size& size = domain.sizes[i];
    const std::int64_t value = std::llround(
        std::exp2(static_cast<double>(domain.points[point * width + i] / size.per_log2)));
    // Padding may be 0.
    fields[size.field] =
        value == 1 && schema.fields[size.field].minimum == 0 ? 0 : value + (rng.below(8) == 0);
  }
  for (const ApplicabilityDomain::Label& label : domain.labels) {
    do {
      fields[label.field] = static_cast<std::int64_t>(rng.below(64));
    } while (!label.occurred(fields[label.field]));
  }
  Result<Problem> problem = Problem::create(model.problem_type, std::move(fields));
  return problem ? std::optional(*std::move(problem)) : std::nullopt;
}

TEST(ShippedModels, PickFastAsTheirPartsDo) {
  Rng rng(44);
  std::size_t answered = 0;
  for (const std::filesystem::path& path : shipped_models()) {
    SCOPED_TRACE(path.string());
    const Model model = read_model(path).value();
    if (!model.distilled) {
      continue;
    }
    const DistilledModel& fast = *model.distilled;
    const auto space =
        CompiledSpace::create(SpaceDefinition::parse(model.space_text).value()).value();
    const auto selector = Selector::open(path, Preparation::kAtFirstUse).value();
    for (int i = 0; i < 2000; ++i) {
      const std::optional<Problem> problem = draw_near(model, rng);
      if (!problem || !model.domain->is_inside(problem->fields())) {
        continue;
      }
      std::vector<std::int16_t> inputs(fast.features.size());
      std::vector<std::int32_t> scores(fast.portfolio.size());
      fast.inputs(problem->fields(), inputs);
      fast.scores(inputs, scores);
      std::vector<std::pair<std::int32_t, std::size_t>> legal;
      for (std::size_t k = 0; k < scores.size(); ++k) {
        if (space->is_legal(model.pool[fast.portfolio[k]].words.view(), problem->fields(),
                            model.fingerprint.hardware)) {
          legal.emplace_back(scores[k], k);
        }
      }
      if (legal.empty()) {
        continue;
      }
      ++answered;
      std::sort(legal.begin(), legal.end());
      const FastChoice choice = selector->select_fast(*problem, kManyUs);
      ASSERT_FALSE(choice.exact) << problem->text();
      EXPECT_EQ(choice.choice.candidate, fast.portfolio[legal[0].second]) << problem->text();
      EXPECT_EQ(choice.choice.score, legal[0].first * fast.score_unit);
      EXPECT_EQ(choice.choice.margin, legal.size() == 1
                                          ? std::numeric_limits<double>::infinity()
                                          : (legal[1].first - legal[0].first) * fast.score_unit);
    }
  }
  EXPECT_GT(answered, 100U);
}

TEST_F(SelectFastTest, WithoutAFastModelTheExactOneAnswers) {
  model_.distilled.reset();
  const auto selector = open(model_);
  const Problem problem = sample_gemm(rng_);
  const FastChoice choice = selector->select_fast(problem, kManyUs);
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
    static_cast<void>(selector->select_fast(problem, kManyUs));
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
