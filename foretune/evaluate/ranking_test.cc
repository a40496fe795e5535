#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/measured_times.h"
#include "foretune/evaluate/testing/evaluation_samples.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/forest/testing/forest_samples.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

// The configs that the feature table "gemm-null" describes. A block of rows above the matrix means
// the same as the smallest that covers it; large blocks in both directions are not legal.
SpaceDefinition block_space() {
  SpaceDefinition definition;
  definition.problem_type = kGemmProblem;
  definition.schema = {.name = "blocks",
                       .version = 1,
                       .kind = SchemaKind::kParametric,
                       .parameters = {{.name = "block_m", .labels = {}},
                                      {.name = "block_n", .labels = {}},
                                      {.name = "block_k", .labels = {}},
                                      {.name = "unroll", .labels = {}}}};
  definition.domains = {{16, 32, 64, 128}, {16, 32, 64, 128}, {8, 16}, {1, 2, 4}};
  definition.constraints = {{"block_m * block_n <= 4096", "the tile is too large"}};
  definition.canonical = {{"block_m", "min(block_m, round_up(m, 16))"}};
  return definition;
}

std::vector<Config> all_configs(const SpaceDefinition& definition) {
  std::vector<Config> out;
  for (const std::int32_t m : definition.domains[0]) {
    for (const std::int32_t n : definition.domains[1]) {
      for (const std::int32_t k : definition.domains[2]) {
        for (const std::int32_t unroll : definition.domains[3]) {
          Config config;
          config.schema = definition.schema.id();
          for (const std::int32_t word : {m, n, k, unroll}) {
            config.words.push_back(word);
          }
          out.push_back(config);
        }
      }
    }
  }
  return out;
}

Model block_model(std::uint64_t seed) {
  const SpaceDefinition definition = block_space();
  const FeatureTable* table = *find_feature_table("gemm-null");
  Model model = bare_model(definition, *table);
  model.fingerprint.device = "here";
  model.pool = all_configs(definition);
  Rng rng(seed);
  ForestShape shape;
  shape.features = static_cast<std::uint32_t>(table->columns().size());
  shape.trees = 40;
  shape.levels = 0;
  set_forests(model, {random_forest(shape, rng)});
  return model;
}

Dataset block_dataset(const Model& model) {
  DatasetHeader header;
  header.problem_type = kGemmProblem;
  header.family = model.family;
  header.config_schema = model.config_schema;
  header.fingerprint = model.fingerprint;
  return Dataset(header);
}

// Every legal config under its canonical name, times at random.
Dataset whole_dataset(const Model& model, Rng& rng) {
  Dataset dataset = block_dataset(model);
  const auto space = *CompiledSpace::create(block_space());
  for (const std::int64_t m : {5, 20, 100, 1000}) {
    const Problem problem = sample_problem(m, 300, 100);
    std::set<Config> configs;
    for (const Config& config : model.pool) {
      if (space->is_legal(config.words.view(), problem.fields(), {})) {
        configs.insert(space->canonical(config, problem, {}));
      }
    }
    for (const Config& config : configs) {
      add_sample(dataset, problem, config, 100 * std::exp(rng.uniform()));
    }
  }
  return dataset;
}

double slow_score(const Model& model, const Problem& problem, const Config& config) {
  const FeatureTable* table = *find_feature_table(model.feature_table);
  std::vector<double> row(table->columns().size());
  feature_row(*table, problem, model.fingerprint.hardware, config, row);
  return predict_reference(forests_of(model)[0], row);
}

TEST(RankWithModel, IsWhatTheSlowEvaluationOfThePoolSays) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Model model = block_model(seed);
    const Dataset dataset = whole_dataset(model, rng);
    const auto space = *CompiledSpace::create(block_space());
    const auto ranked = rank_with_model(model, dataset);
    ASSERT_TRUE(ranked) << ranked.error().message;
    ASSERT_EQ(ranked->size(), dataset.problems().size());
    const MeasuredTimes times(dataset);
    for (const RankedProblem& entry : *ranked) {
      const Problem& problem = dataset.problems()[entry.problem];
      EXPECT_EQ(entry.configs.size(), times.candidates(entry.problem).size());
      EXPECT_FALSE(entry.pick_unmeasured);
      // The pick: of all legal and canonical pool configs the first with the lowest score.
      double best = std::numeric_limits<double>::infinity();
      Config pick;
      for (const Config& config : model.pool) {
        if (space->is_legal(config.words.view(), problem.fields(), {}) &&
            space->is_canonical(config.words.view(), problem.fields(), {}) &&
            slow_score(model, problem, config) < best) {
          best = slow_score(model, problem, config);
          pick = config;
        }
      }
      EXPECT_EQ(dataset.configs()[entry.configs[0]], pick);
      EXPECT_EQ(entry.scores[0], best) << "to the last bit";
      EXPECT_TRUE(std::is_sorted(entry.scores.begin(), entry.scores.end()));
    }
  }
}

TEST(RankWithModel, SaysWhenThePickOfTheWholePoolWasNotMeasured) {
  Rng rng(3);
  const Model model = block_model(3);
  const Dataset whole = whole_dataset(model, rng);
  const auto all = *rank_with_model(model, whole);
  // The same without the first two of problem 0, and without the last of problem 1.
  Dataset part = block_dataset(model);
  for (const Dataset::Row& row : whole.rows()) {
    const std::vector<std::uint32_t>& order = all[row.problem].configs;
    const bool left_out =
        (row.problem == 0 && (row.config == order[0] || row.config == order[1])) ||
        (row.problem == 1 && row.config == order.back());
    if (!left_out) {
      add_sample(part, whole.problems()[row.problem], whole.configs()[row.config],
                 static_cast<double>(row.time_ns));
    }
  }
  const auto ranked = *rank_with_model(model, part);
  EXPECT_TRUE(ranked[0].pick_unmeasured);
  EXPECT_FALSE(ranked[1].pick_unmeasured);
  EXPECT_EQ(part.configs()[ranked[0].configs[0]], whole.configs()[all[0].configs[2]]);
  const auto evaluation = evaluate(part, ranked, &model, {.bootstrap_samples = 10});
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  EXPECT_EQ(evaluation->unmeasured_picks, 1U);
}

TEST(RankWithModel, ConfigsOutsideThePoolComeLast) {
  Rng rng(4);
  Model model = block_model(4);
  const Dataset dataset = whole_dataset(model, rng);
  const std::vector<Config> all = model.pool;
  // Half of the pool goes, and with it the right to be picked.
  model.pool.clear();
  std::set<Config> kept;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    model.pool.push_back(all[i]);
    kept.insert(all[i]);
  }
  const auto ranked = *rank_with_model(model, dataset);
  const RankedProblem& entry = ranked[3];  // m = 1000: every config is its own canonical form
  const std::size_t first_outside = static_cast<std::size_t>(
      std::find_if(entry.configs.begin(), entry.configs.end(),
                   [&](std::uint32_t id) { return !kept.contains(dataset.configs()[id]); }) -
      entry.configs.begin());
  EXPECT_GT(first_outside, 0U);
  EXPECT_LT(first_outside, entry.configs.size());
  for (std::size_t i = 0; i < entry.configs.size(); ++i) {
    EXPECT_EQ(kept.contains(dataset.configs()[entry.configs[i]]), i < first_outside) << i;
    EXPECT_EQ(entry.scores[i], slow_score(model, dataset.problems()[entry.problem],
                                          dataset.configs()[entry.configs[i]]));
  }
}

TEST(RankWithModel, WithoutALegalConfigThereIsNoPick) {
  Model model = block_model(5);
  Dataset dataset = block_dataset(model);
  std::erase_if(model.pool,
                [](const Config& config) { return config.words[0] * config.words[1] <= 4096; });
  add_sample(dataset, sample_problem(100), all_configs(block_space())[0], 10);
  const auto ranked = *rank_with_model(model, dataset);
  ASSERT_EQ(ranked.size(), 1U);
  EXPECT_TRUE(ranked[0].configs.empty());
  const auto evaluation = evaluate(dataset, ranked, &model, {.bootstrap_samples = 10});
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  EXPECT_EQ(evaluation->model.mean_efficiency.value, 0);
  EXPECT_EQ(evaluation->model.failed, 1U);
  ASSERT_EQ(evaluation->worst.size(), 1U);
  EXPECT_EQ(evaluation->worst[0].note, "no pick");
}

TEST(RankWithModel, WithoutASpaceEveryMeasuredConfigIsACandidate) {
  Rng rng(6);
  Model model = block_model(6);
  model.space_text.clear();
  const Dataset dataset = whole_dataset(model, rng);
  const auto ranked = *rank_with_model(model, dataset);
  const RankedProblem& entry = ranked[0];
  EXPECT_FALSE(entry.pick_unmeasured);
  for (std::size_t i = 0; i < entry.configs.size(); ++i) {
    EXPECT_EQ(entry.scores[i], slow_score(model, dataset.problems()[entry.problem],
                                          dataset.configs()[entry.configs[i]]));
  }
}

TEST(RankWithModel, RefusesWhatDoesNotFit) {
  const Model model = block_model(1);
  Dataset dataset = block_dataset(model);
  dataset.mutable_header().family = "other";
  EXPECT_EQ(rank_with_model(model, dataset).error().code, ErrorCode::kMismatch);
  dataset.mutable_header() = block_dataset(model).header();
  dataset.mutable_header().config_schema.version = 2;
  EXPECT_EQ(rank_with_model(model, dataset).error().code, ErrorCode::kMismatch);
  Model other = model;
  other.feature_table_id ^= 1;
  EXPECT_EQ(rank_with_model(other, block_dataset(model)).error().code, ErrorCode::kMismatch);
  other = model;
  other.kind = "oracle";
  EXPECT_EQ(rank_with_model(other, block_dataset(model)).error().code, ErrorCode::kUnsupported);
  other = model;
  other.space_text = "nonsense";
  EXPECT_FALSE(rank_with_model(other, block_dataset(model)));
  other = model;
  other.pool[0].schema = 1;
  EXPECT_EQ(rank_with_model(other, block_dataset(model)).error().code, ErrorCode::kMismatch);
  EXPECT_TRUE(rank_with_model(model, block_dataset(model))->empty());
}

TEST(RankWithScores, OrdersByScoreAndLeavesOutWhatHasNone) {
  Dataset dataset(sample_header());
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  add_sample(dataset, sample_problem(1), sample_config(0), 10);
  add_sample(dataset, sample_problem(1), sample_config(1), 20);
  add_sample(dataset, sample_problem(1), sample_config(2), 30);
  add_sample(dataset, sample_problem(1), sample_config(0), 11, {.flags = kFlagReference});
  add_sample(dataset, sample_problem(2), sample_config(0), 10);
  const auto ranked = rank_with_scores(dataset, std::vector<double>{3, 1, kNan, 0, kNan});
  ASSERT_EQ(ranked.size(), 1U);
  EXPECT_EQ(ranked[0].problem, 0U);
  EXPECT_EQ(ranked[0].configs, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(ranked[0].scores, (std::vector<double>{1, 3}));
}

}  // namespace
}  // namespace foretune
