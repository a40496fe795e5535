#include "foretune/select/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "foretune/base/testing/allocation_count.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/function/function_body.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/select/foretune.h"

namespace foretune {
namespace {

class SelectTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSeed = 31;

  std::unique_ptr<Selector> make(const Model& model) {
    auto selector = Selector::create(model);
    EXPECT_TRUE(selector.has_value()) << selector.error().message;
    return std::move(*selector);
  }
  // Legal candidates with their scores, from the slow evaluation: those in canonical form, then
  // those whose form is no candidate; best first, ties by position.
  static std::vector<RankedCandidate> slow_rank(const Model& model, const Problem& problem) {
    const FeatureTable* table = *find_feature_table(model.feature_table);
    const auto space = CompiledSpace::create(*SpaceDefinition::parse(model.space_text));
    std::vector<double> row(table->columns().size());
    std::vector<RankedCandidate> canonical;
    std::vector<RankedCandidate> others;
    for (std::uint32_t i = 0; i < model.pool.size(); ++i) {
      const Config& config = model.pool[i];
      const Config same = (*space)->canonical(config, problem, model.fingerprint.hardware);
      const bool represented = same != config && std::find(model.pool.begin(), model.pool.end(),
                                                           same) != model.pool.end();
      if (!represented &&
          (*space)->is_legal(config.words.view(), problem.fields(), model.fingerprint.hardware)) {
        feature_row(*table, problem, model.fingerprint.hardware, config, row);
        (same == config ? canonical : others)
            .push_back({.candidate = i, .score = predict_reference(forests_of(model)[0], row)});
      }
    }
    for (auto* ranked : {&canonical, &others}) {
      std::stable_sort(ranked->begin(), ranked->end(),
                       [](const auto& a, const auto& b) { return a.score < b.score; });
    }
    canonical.insert(canonical.end(), others.begin(), others.end());
    return canonical;
  }
  static bool inside(const Model& model, const Problem& problem) {
    const FeatureTable* table = *find_feature_table(model.feature_table);
    std::vector<double> row(model.problem_range.size());
    table->problem_row(problem, model.fingerprint.hardware, row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] < model.problem_range[i].first || row[i] > model.problem_range[i].second) {
        return false;
      }
    }
    return true;
  }

  Rng rng_{kSeed};
};

TEST_F(SelectTest, PicksTheBestLegalCandidate) {
  const Model model = sample_model({.candidates = 600}, rng_);
  const auto selector = make(model);
  int picked = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = sample_gemm(rng_);
    const std::vector<RankedCandidate> expected = slow_rank(model, problem);
    const std::vector<RankedCandidate> ranked = selector->rank(problem);
    ASSERT_EQ(ranked.size(), expected.size()) << problem.text();
    for (std::size_t k = 0; k < ranked.size(); ++k) {
      ASSERT_EQ(ranked[k].candidate, expected[k].candidate) << problem.text();
      ASSERT_EQ(ranked[k].score, expected[k].score);
    }
    const Choice choice = selector->select(problem);
    if (!inside(model, problem)) {
      EXPECT_EQ(choice.reason, AbstainReason::kOutsideTraining);
      EXPECT_EQ(selector->coverage(problem), AbstainReason::kOutsideTraining);
      continue;
    }
    ++picked;
    EXPECT_EQ(selector->coverage(problem), AbstainReason::kNone);
    ASSERT_TRUE(choice.picked()) << problem.text() << " seed " << kSeed;
    EXPECT_EQ(choice.candidate, expected[0].candidate);
    EXPECT_EQ(choice.score, expected[0].score);
    EXPECT_EQ(choice.margin, expected[1].score - expected[0].score);
    const Choice again = selector->select(problem);
    EXPECT_EQ(again.candidate, choice.candidate);
    EXPECT_EQ(again.score, choice.score);
    EXPECT_EQ(again.margin, choice.margin);
    EXPECT_EQ(again.reason, choice.reason);
    EXPECT_EQ(again.has_candidate, choice.has_candidate);
  }
  EXPECT_GT(picked, 30);
}

TEST_F(SelectTest, ScoresAnyConfig) {
  Model model = sample_model({.candidates = 40}, rng_);
  const Config left_out = model.pool.back();
  const Problem problem = sample_gemm(rng_);
  const auto whole = make(model);
  const auto expected = score_configs(whole->model(), problem, model.pool);
  ASSERT_TRUE(expected) << expected.error().message;
  for (const RankedCandidate& candidate : whole->rank(problem)) {
    EXPECT_EQ((*expected)[candidate.candidate], candidate.score);
    EXPECT_EQ(score_config(whole->model(), problem, model.pool[candidate.candidate]),
              candidate.score);
  }
  model.pool.pop_back();
  const auto without = make(model);
  const auto scores =
      score_configs(without->model(), problem, std::array{left_out, model.pool.front()});
  ASSERT_TRUE(scores);
  EXPECT_EQ(*scores, (std::vector<double>{expected->back(), expected->front()}));
  EXPECT_TRUE(score_configs(without->model(), problem, {})->empty());

  EXPECT_EQ(score_config(without->model(), problem, left_out), expected->back());

  Config other = left_out;
  other.schema += 1;
  EXPECT_EQ(score_configs(without->model(), problem, std::array{other}).error().code,
            ErrorCode::kMismatch);
  other = left_out;
  other.words.push_back(1);
  EXPECT_EQ(score_configs(without->model(), problem, std::array{other}).error().code,
            ErrorCode::kMismatch);
  const Result<Problem> conv = Problem::parse("conv n=1 c=8 k=8 hi=8 wi=8 y=1 x=1");
  ASSERT_TRUE(conv) << conv.error().message;
  EXPECT_EQ(score_configs(without->model(), *conv, std::array{left_out}).error().code,
            ErrorCode::kMismatch);
}

TEST_F(SelectTest, AbstainsOutsideOfTrainingWithTheBestLegalConfigOfThePortfolio) {
  Model model = sample_model({.candidates = 50}, rng_);
  // A tall tile, which a flat problem forbids, before one that is always legal.
  const auto place = [&](std::uint32_t position, std::int32_t block) {
    Config config = model.pool[position];
    for (std::size_t p = 0; p < 2; ++p) {
      config.words[p] = block;
    }
    config.words[2] = 4096;  // no sampled config has it: distinct
    model.pool[position] = config;
  };
  place(7, 128);
  place(9, 16);
  const Problem far = *Problem::parse("gemm m=8 n=1000000 k=1000000 dtype=bf16");
  const std::vector<RankedCandidate> ranked = slow_rank(model, far);
  const auto [least, most] = std::minmax_element(
      ranked.begin(), ranked.end(),
      [](const RankedCandidate& a, const RankedCandidate& b) { return a.score < b.score; });
  ASSERT_NE(least, ranked.end());
  ASSERT_LT(least->score, most->score);
  const std::uint32_t better = least->candidate;
  const std::uint32_t worse = most->candidate;
  const std::uint32_t first = ranked.front().candidate;
  for (const auto& [portfolio, expected] :
       std::vector<std::pair<std::vector<std::uint32_t>, std::uint32_t>>{
           {{7, 9}, 9},
           {{7, worse, better}, better},
           {{better, worse}, better},
           {{7}, first},
           {{}, first}}) {
    model.portfolio = portfolio;
    const Choice choice = make(model)->select(far);
    EXPECT_EQ(choice.reason, AbstainReason::kOutsideTraining);
    EXPECT_FALSE(choice.picked());
    ASSERT_TRUE(choice.has_candidate);
    EXPECT_EQ(choice.candidate, expected);
  }
}

TEST_F(SelectTest, SaysWhenNothingIsLegal) {
  Model model = sample_model({.candidates = 30}, rng_);
  SpaceDefinition space = sample_space();
  space.constraints.push_back({"m != 64", "not this one"});
  model.space_text = space.text();
  const auto selector = make(model);
  const Problem problem = *Problem::parse("gemm m=64 n=256 k=256 dtype=bf16");
  ASSERT_TRUE(inside(model, problem));
  const Choice choice = selector->select(problem);
  EXPECT_EQ(choice.reason, AbstainReason::kNoLegalConfig);
  EXPECT_FALSE(choice.has_candidate);
  EXPECT_TRUE(selector->rank(problem).empty());
  EXPECT_EQ(selector->coverage(problem), AbstainReason::kNone);
  EXPECT_EQ(selector->coverage(*Problem::parse("conv n=1 c=8 k=8 hi=8 wi=8 y=1 x=1")),
            AbstainReason::kInvalidProblem);
  EXPECT_TRUE(selector->select(*Problem::parse("gemm m=65 n=256 k=256 dtype=bf16")).picked());
}

TEST_F(SelectTest, TheOnlyLegalCandidateHasAnInfiniteMargin) {
  Model model = sample_model({.candidates = 5}, rng_);
  SpaceDefinition space = sample_space();
  space.constraints = {{"block_k == 4096", "only one"}};
  model.space_text = space.text();
  model.pool[2].words[2] = 4096;
  const auto selector = make(model);
  const Choice choice = selector->select(*Problem::parse("gemm m=64 n=256 k=256 dtype=bf16"));
  ASSERT_TRUE(choice.picked());
  EXPECT_EQ(choice.candidate, 2U);
  EXPECT_TRUE(std::isinf(choice.margin));
}

TEST_F(SelectTest, RefusesModelsThatDoNotFit) {
  Model model = sample_model({.candidates = 5}, rng_);
  SpaceDefinition space = sample_space();
  space.constraints = {{"block_k == 7", "never"}};
  model.space_text = space.text();
  const auto nothing_legal = Selector::create(model);
  ASSERT_FALSE(nothing_legal.has_value());
  EXPECT_EQ(nothing_legal.error().code, ErrorCode::kMismatch);
  model.feature_table_id ^= 1;
  EXPECT_FALSE(Selector::create(model).has_value());
  EXPECT_EQ(Selector::open("no/such/file.ftm").error().code, ErrorCode::kNotFound);
}

TEST_F(SelectTest, AnswersWithoutAllocating) {
  const Model model = sample_model({.candidates = 600}, rng_);
  const auto selector = make(model);
  std::vector<Problem> problems;
  for (int i = 0; i < 20; ++i) {
    problems.push_back(sample_gemm(rng_));
  }
  problems.push_back(*Problem::parse("gemm m=8 n=1000000 k=1000000 dtype=bf16"));
  std::uint32_t sum = 0;
  const std::uint64_t before = allocation_count();
  for (int round = 0; round < 2; ++round) {
    for (const Problem& problem : problems) {
      sum += selector->select(problem).candidate;
      sum += selector->select_uncached(problem).candidate;
    }
  }
  EXPECT_EQ(allocation_count(), before) << sum;
}

TEST_F(SelectTest, AModelThatCallsBackIsRefused) {
  class Zero final : public RowFunction {
   public:
    Status predict(std::span<const float> /*inputs*/,
                   std::span<double> out) const noexcept override {
      std::fill(out.begin(), out.end(), 0.0);
      return {};
    }
  };
  Model model = sample_model({.candidates = 20}, rng_);
  set_function(model, {"zero", {NetworkInput{.column = 0}}, std::make_shared<const Zero>()});
  ASSERT_TRUE(check_model(model)) << check_model(model).error().message;
  const auto selector = Selector::create(model);
  ASSERT_FALSE(selector);
  EXPECT_EQ(selector.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(selector.error().message.find("neither stored nor selected with"), std::string::npos);
}

TEST_F(SelectTest, TheCInterfaceAnswersWithoutAllocating) {
  const Model model = sample_model({.candidates = 100}, rng_);
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.ftm";
  ASSERT_TRUE(write_model(model, path));
  foretune_selector* selector = nullptr;
  ASSERT_EQ(foretune_selector_open(path.c_str(), &selector, nullptr, 0), FORETUNE_OK);
  const std::uint64_t before = allocation_count();
  for (std::int64_t m = -1; m < 300; m += 3) {
    const foretune_gemm gemm{
        .m = m, .n = 256, .k = 512, .batch = 1, .op = FORETUNE_MM, .dtype = 2, .layout = 1};
    foretune_choice choice;
    ASSERT_EQ(foretune_select_gemm(selector, &gemm, &choice), FORETUNE_OK);
  }
  EXPECT_EQ(allocation_count(), before);
  foretune_selector_close(selector);
}

}  // namespace
}  // namespace foretune
