// Tests how a library's answers are ranked together with a model's pool.
#include "foretune/dispatch/answer_ranking.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "foretune/dispatch/testing/cudnn.h"

namespace foretune::dispatch_internal {
namespace {

Config rank_of_a(std::int32_t rank) {
  return CudnnConfig::ranked(CudnnHeuristic::kA, rank).to_config();
}

Config rank_of_b(std::int32_t rank) {
  return CudnnConfig::ranked(CudnnHeuristic::kB, rank).to_config();
}

Config engine(std::int32_t number) { return engine_config(number).to_config(); }

std::vector<RankedConfig> ranking(const std::vector<ConvPrediction>& predictions,
                                  const std::vector<LibraryAnswer>& answers) {
  const auto selector = Selector::create(cudnn_model(predictions)).value();
  const Problem problem = ConvProblem::create(sample_conv()).value().to_problem();
  return rank_with_answers(*selector, problem, answers).value();
}

std::vector<Config> configs_of(const std::vector<RankedConfig>& ranked) {
  std::vector<Config> configs;
  for (const RankedConfig& one : ranked) {
    configs.push_back(one.config);
  }
  return configs;
}

TEST(AnswerRankingTest, WithoutAnswersItIsThePool) {
  const auto ranked = ranking({{engine_config(4), 8}, {engine_config(0), 7}}, {});
  EXPECT_EQ(configs_of(ranked), (std::vector{engine(0), engine(4)}));
  EXPECT_EQ(ranked.front().score, 7);
}

TEST(AnswerRankingTest, AnAnswerHasTheMeanOfItsScores) {
  // All ranks share the score 6. Engine 4 is the first of A and the second of B: (8 + 6 + 6/2)/2.5.
  const auto ranked = ranking({{CudnnConfig::ranked(CudnnHeuristic::kA, 1), 6},
                               {CudnnConfig::ranked(CudnnHeuristic::kB, 2), 6},
                               {engine_config(4), 8},
                               {engine_config(0), 7}},
                              {{.name = rank_of_a(1), .config = engine(4)},
                               {.name = rank_of_b(2), .config = engine(4), .weight = 0.5}});
  EXPECT_EQ(configs_of(ranked), (std::vector{rank_of_a(1), engine(0)}));
  EXPECT_DOUBLE_EQ(ranked.front().score, 17 / 2.5);
}

TEST(AnswerRankingTest, EveryConfigIsThereOnce) {
  // The pool has engine 4, but not engine 5, and no second rank.
  const auto ranked = ranking({{CudnnConfig::ranked(CudnnHeuristic::kA, 1), 9},
                               {engine_config(0), 7},
                               {engine_config(4), 8}},
                              {{.name = rank_of_a(1), .config = engine(0)},
                               {.name = rank_of_a(2), .config = engine(4)},
                               {.name = rank_of_a(3), .config = engine(5)},
                               {.name = rank_of_b(1), .config = engine(5)}});
  EXPECT_EQ(configs_of(ranked), (std::vector{engine(4), rank_of_a(1), rank_of_a(3)}));
  EXPECT_EQ(ranked[1].score, 8);
  EXPECT_EQ(ranked[2].score, kUnknownEngine);
}

TEST(AnswerRankingTest, AmongEqualsThePoolComesFirstAndThenTheLibrarysOrder) {
  const auto ranked = ranking(
      {{engine_config(4), kUnknownEngine}},
      {{.name = rank_of_a(1), .config = engine(7)}, {.name = rank_of_a(2), .config = engine(2)}});
  EXPECT_EQ(configs_of(ranked), (std::vector{engine(4), rank_of_a(1), rank_of_a(2)}));
}

}  // namespace
}  // namespace foretune::dispatch_internal
