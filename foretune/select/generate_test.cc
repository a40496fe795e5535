#include "foretune/select/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "foretune/base/text.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/hardware.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/select/select.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

Problem product(int m, int n, int k) {
  return Problem::parse(concat("nest_mm m=", m, " n=", n, " k=", k)).value();
}

// Trees whose splits lie where features of schedules really are; its pool is of two problems.
Model schedule_model(std::uint64_t seed) {
  Rng rng(seed);
  const FeatureTable* table = *find_feature_table("loop-nest");
  Model model;
  model.problem_type = product(8, 8, 8).type();
  model.family = "loop-nest";
  model.problem_schema = product(8, 8, 8).schema().id();
  model.config_schema = loop::schedule_schema();
  model.feature_table = std::string(table->name());
  model.feature_table_id = feature_table_id(*table);
  model.fingerprint.hardware = *Hardware::parse("cores=2 vector_bytes=64 l2_bytes=1048576");
  model.target = "relative-log";
  model.residual_std = 0.1;
  std::set<Config> pool;
  std::vector<std::vector<double>> rows;
  for (const Problem& problem : {product(48, 64, 40), product(96, 32, 72)}) {
    const auto space = table->space(problem, model.fingerprint.hardware);
    std::vector<Config> configs = space->proposals(20);
    for (int i = 0; i < 20; ++i) {
      configs.push_back(*space->sample(rng));
    }
    for (const Config& config : configs) {
      pool.insert(config);
      std::vector<double>& row = rows.emplace_back(table->columns().size());
      feature_row(*table, problem, model.fingerprint.hardware, config, row);
    }
  }
  model.pool.assign(pool.begin(), pool.end());
  model.portfolio = {4, 0, 7};
  Forest forest = random_forest({.features = static_cast<std::uint32_t>(table->columns().size()),
                                 .trees = 20,
                                 .max_leaves = 31},
                                rng);
  for (std::size_t node = 0; node < forest.feature.size(); ++node) {
    forest.threshold[node] = rows[rng.below(rows.size())][forest.feature[node]];
  }
  set_forests(model, {std::move(forest)});
  for (std::size_t f = 0; f < feature_count(*table, FeatureKind::kProblem); ++f) {
    model.problem_range.emplace_back(-1e9, 1e9);
  }
  return model;
}

constexpr GenerateOptions kUnhurried{.seconds = 1e6};

TEST(GenerateConfigs, FindsSchedulesThatRunBestFirst) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Model model = schedule_model(seed);
    ASSERT_TRUE(check_model(model)) << check_model(model).error().message;
    const FeatureTable& table = **find_feature_table("loop-nest");
    for (const Problem& problem : {product(80, 48, 56), product(7, 100, 33)}) {
      const auto found = generate_configs(model, problem, kUnhurried);
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_FALSE(found->ran_out_of_time);
      EXPECT_GT(found->considered, 300U);
      ASSERT_EQ(found->configs.size(), kUnhurried.kept);
      ASSERT_EQ(found->texts.size(), found->configs.size());
      EXPECT_TRUE(std::is_sorted(found->scores.begin(), found->scores.end()));
      const auto space = table.space(problem, model.fingerprint.hardware);
      std::set<Config> distinct;
      for (std::size_t i = 0; i < found->configs.size(); ++i) {
        const Config& config = found->configs[i];
        EXPECT_TRUE(space->why_not(config));
        EXPECT_TRUE(table.may_run(problem, model.fingerprint.hardware, config));
        EXPECT_EQ(*score_config(model, problem, config), found->scores[i]);
        EXPECT_TRUE(distinct.insert(config).second);
      }
      for (const Config& config : space->proposals(kUnhurried.proposals)) {
        if (table.may_run(problem, model.fingerprint.hardware, config)) {
          EXPECT_GE(*score_config(model, problem, config), found->scores.front());
        }
      }
      const auto again = generate_configs(model, problem, kUnhurried);
      ASSERT_TRUE(again);
      EXPECT_EQ(again->configs, found->configs);
    }
  }
}

TEST(GenerateConfigs, StopsWhenItsTimeIsOver) {
  const Model model = schedule_model(1);
  const auto found = generate_configs(model, product(80, 48, 56), {.seconds = 0});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->ran_out_of_time);
  EXPECT_FALSE(found->configs.empty());
}

TEST(GenerateConfigs, IsWhatASelectorRanks) {
  const Model model = schedule_model(2);
  const Problem problem = product(80, 48, 56);
  const auto found = generate_configs(model, problem, kUnhurried);
  ASSERT_TRUE(found);
  const auto selector = Selector::create(with_pool(model, found->configs));
  ASSERT_TRUE(selector) << selector.error().message;
  const std::vector<RankedCandidate> ranked = (*selector)->rank(problem);
  ASSERT_EQ(ranked.size(), found->configs.size());
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    EXPECT_EQ(ranked[i].score, found->scores[i]);
  }
  const Choice choice = (*selector)->select(problem);
  EXPECT_TRUE(choice.picked());
  EXPECT_EQ(choice.score, found->scores.front());
  EXPECT_EQ((*selector)->describe(ranked[0].candidate, problem), found->texts.front());
}

TEST(GenerateConfigs, WithoutThemASelectorRanksThosePoolConfigsThatAreLegal) {
  const Model model = schedule_model(3);
  const auto selector = Selector::create(model);
  ASSERT_TRUE(selector) << selector.error().message;
  const FeatureTable& table = **find_feature_table("loop-nest");
  const Problem problem = product(48, 64, 40);
  const auto space = table.space(problem, model.fingerprint.hardware);
  std::size_t legal = 0;
  for (const Config& config : model.pool) {
    legal += space->why_not(config) && table.may_run(problem, model.fingerprint.hardware, config)
                 ? 1U
                 : 0U;
  }
  EXPECT_GT(legal, 10U);
  EXPECT_EQ((*selector)->rank(problem).size(), legal);
  EXPECT_TRUE((*selector)->select(problem).picked());
}

TEST(GenerateConfigs, RefusesWithTheReason) {
  const Model model = schedule_model(1);
  const Problem reduction = Problem::parse("nest_reduce r=8 c=8").value();
  EXPECT_EQ(generate_configs(model, reduction, {}).error().code, ErrorCode::kMismatch);
  Rng rng(1);
  const Model tiles = sample_model({}, rng);
  const auto listed = generate_configs(tiles, sample_gemm(rng), {});
  ASSERT_FALSE(listed);
  EXPECT_THAT(listed.error().message, HasSubstr("knows no space"));
  Model damaged = model;
  damaged.space_text = "anything";
  EXPECT_EQ(check_model(damaged).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace foretune
