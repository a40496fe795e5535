#include "foretune/model/forest/forest_scorer.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {
namespace {

struct Scores {
  std::vector<double> mean;
  std::vector<double> uncertainty;
};

// From the full feature row and the slow evaluation.
Scores slow_scores(const Model& model, const Problem& problem) {
  const FeatureTable* table = *find_feature_table(model.feature_table);
  std::vector<double> row(table->columns().size());
  Scores out;
  for (const Config& config : model.pool) {
    feature_row(*table, problem, model.fingerprint.hardware, config, row);
    double sum = 0;
    for (const Forest& forest : forests_of(model)) {
      sum += predict_reference(forest, row);
    }
    const auto count = static_cast<double>(forests_of(model).size());
    const double mean = forests_of(model).size() == 1 ? sum : sum / count;
    double squares = 0;
    for (const Forest& forest : forests_of(model)) {
      squares += std::pow(predict_reference(forest, row) - mean, 2);
    }
    out.mean.push_back(mean);
    out.uncertainty.push_back(std::sqrt(model.residual_std * model.residual_std +
                                        (count > 1 ? squares / (count - 1) : 0)));
  }
  return out;
}

TEST(ForestScorer, EqualsFeatureRowsAndTheReference) {
  constexpr std::uint64_t kSeed = 5;
  Rng rng(kSeed);
  for (const std::size_t forests : {1U, 3U}) {
    const Model model = sample_model({.forests = forests, .candidates = 700}, rng);
    const FeatureTable* table = *find_feature_table(model.feature_table);
    for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
      if (isa > best_cpu_isa()) {
        continue;
      }
      const auto scorer = forest_scorer(forests_of(model), *table, model.residual_std, isa);
      ASSERT_TRUE(scorer.has_value()) << scorer.error().message;
      const auto pool = (*scorer)->prepare(ConfigList(model.pool), model.fingerprint.hardware);
      ASSERT_TRUE(pool.has_value()) << pool.error().message;
      ASSERT_EQ((*pool)->size(), 700U);
      std::vector<std::byte> workspace((*pool)->workspace_bytes());
      for (int i = 0; i < 6; ++i) {
        const Problem problem = sample_gemm(rng);
        Scores fast{std::vector<double>(700), std::vector<double>(700)};
        (*pool)->score(problem, workspace, fast.mean, fast.uncertainty);
        const Scores slow = slow_scores(model, problem);
        EXPECT_EQ(fast.mean, slow.mean) << "seed " << kSeed;
        for (std::size_t c = 0; c < 700; ++c) {
          ASSERT_NEAR(fast.uncertainty[c], slow.uncertainty[c], 1e-12) << "seed " << kSeed;
        }
        std::vector<double> without(700);
        (*pool)->score(problem, workspace, without, {});
        EXPECT_EQ(without, fast.mean);
      }
    }
  }
}

// A table of four of a kernel's seven values, whose interaction columns need no other either.
TEST(ForestScorer, KernelsThatTheTableCannotTellApartScoreAlike) {
  constexpr std::uint64_t kSeed = 9;
  Rng rng(kSeed);
  const FeatureTable* table = *find_feature_table("grouped-conv-ck-83");
  SpaceDefinition space;
  space.problem_type = kConvProblem;
  space.schema = ck_grouped_conv_schema();
  Model model = bare_model(space, *table);
  model.fingerprint = *known_device("ck-gfx950");
  model.residual_std = 0.25;
  constexpr std::array kTiles{16, 32, 64, 128};
  for (int i = 0; i < 300; ++i) {
    Config config{.schema = space.schema.id()};
    for (const std::int32_t word :
         {kTiles[rng.below(4)], kTiles[2 + rng.below(2)], kTiles[2 + rng.below(2)]}) {
      config.words.push_back(word);
    }
    for (const std::uint64_t labels : {3U, 3U, 2U, 2U}) {
      config.words.push_back(static_cast<std::int32_t>(rng.below(labels)));
    }
    model.pool.push_back(config);
  }
  const auto draw_problem = [&] {
    return Problem::parse(concat("conv n=", rng.between(1, 8), " c=", 8 * rng.between(1, 32),
                                 " k=", 8 * rng.between(1, 32), " hi=", rng.between(7, 60),
                                 " wi=", rng.between(7, 60), " y=3 x=3 dtype=bf16"))
        .value();
  };
  std::vector<Forest> forests;
  for (int i = 0; i < 2; ++i) {
    Forest forest = random_forest({.features = static_cast<std::uint32_t>(table->columns().size()),
                                   .trees = 30,
                                   .max_leaves = 60,
                                   .any_missing = false},
                                  rng);
    for (std::size_t node = 0; node < forest.feature.size(); ++node) {
      std::vector<double> row(table->columns().size());
      feature_row(*table, draw_problem(), model.fingerprint.hardware,
                  model.pool[rng.below(model.pool.size())], row);
      forest.threshold[node] = row[forest.feature[node]];
    }
    forests.push_back(std::move(forest));
  }
  set_forests(model, forests);
  for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa > best_cpu_isa()) {
      continue;
    }
    const auto scorer = forest_scorer(forests, *table, model.residual_std, isa);
    ASSERT_TRUE(scorer.has_value()) << scorer.error().message;
    const auto pool = (*scorer)->prepare(ConfigList(model.pool), model.fingerprint.hardware);
    ASSERT_TRUE(pool.has_value()) << pool.error().message;
    ASSERT_EQ((*pool)->size(), 300U);
    std::vector<std::byte> workspace((*pool)->workspace_bytes());
    for (int i = 0; i < 20; ++i) {
      const Problem problem = draw_problem();
      Scores fast{std::vector<double>(300), std::vector<double>(300)};
      (*pool)->score(problem, workspace, fast.mean, fast.uncertainty);
      const Scores slow = slow_scores(model, problem);
      EXPECT_EQ(fast.mean, slow.mean) << "seed " << kSeed;
      for (std::size_t c = 0; c < 300; ++c) {
        ASSERT_NEAR(fast.uncertainty[c], slow.uncertainty[c], 1e-12) << "seed " << kSeed;
      }
    }
  }
}

TEST(ForestScorer, WorkspacesNeedNoAlignment) {
  Rng rng(6);
  const Model model = sample_model({.candidates = 60}, rng);
  const auto scorer = make_scorer(model);
  ASSERT_TRUE(scorer.has_value()) << scorer.error().message;
  const auto pool = (*scorer)->prepare(ConfigList(model.pool), model.fingerprint.hardware);
  ASSERT_TRUE(pool.has_value());
  const Problem problem = sample_gemm(rng);
  const Scores slow = slow_scores(model, problem);
  std::vector<std::byte> workspace((*pool)->workspace_bytes() + 64);
  for (std::size_t shift = 0; shift < 64; shift += 9) {
    std::vector<double> scores(60);
    (*pool)->score(problem, std::span(workspace).subspan(shift), scores, {});
    EXPECT_EQ(scores, slow.mean) << shift;
  }
}

TEST(ForestScorer, RefusesWhatDoesNotFit) {
  Rng rng(8);
  Model model = sample_model({.candidates = 10}, rng);
  const FeatureTable* table = *find_feature_table(model.feature_table);
  EXPECT_FALSE(forest_scorer({}, *table, 0).has_value());
  EXPECT_FALSE(forest_scorer(forests_of(model), *table, std::nan("")).has_value());
  EXPECT_FALSE(forest_scorer(forests_of(model), *table, -1).has_value());
  Forest other = forests_of(model)[0];
  other.feature_count += 1;
  const auto mismatch = forest_scorer({other}, *table, 0);
  ASSERT_FALSE(mismatch.has_value());
  EXPECT_EQ(mismatch.error().code, ErrorCode::kMismatch);

  const auto scorer = forest_scorer(forests_of(model), *table, 0);
  ASSERT_TRUE(scorer.has_value());
  const ConfigList list(model.pool);
  const std::span<const std::int32_t> words = list.view().words();
  EXPECT_FALSE((*scorer)->prepare({words, 7}, {}).has_value());
  EXPECT_FALSE((*scorer)->prepare({words, 0}, {}).has_value());
  EXPECT_FALSE((*scorer)->prepare({}, {}).has_value());

  model.kind = "oracle";
  const auto unknown = make_scorer(model);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnsupported);

  model.kind = "gbdt";
  model.feature_table_id += 1;
  EXPECT_EQ(make_scorer(model).error().code, ErrorCode::kMismatch);
}

}  // namespace
}  // namespace foretune
