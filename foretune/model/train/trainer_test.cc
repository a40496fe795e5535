// Models trained on times from a formula, so that the right result is known.
#include "foretune/model/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "foretune/base/statistics.h"
#include "foretune/model/forest/forest.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/train/testing/training_samples.h"
#include "foretune/model/train/training_set.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

double metric(const TrainResult& result, const std::string& name) {
  for (const auto& [key, value] : result.metrics) {
    if (key == name) {
      return value;
    }
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

TEST(TrainGbdt, LearnsAFormula) {
  const Dataset dataset = dataset_of(80, 3, formula_ns);
  const auto result = train_gbdt(dataset, quick_options());
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(metric(*result, "mean_efficiency"), 0.95);
  EXPECT_GT(metric(*result, "spearman_mean"), 0.95);
  EXPECT_GE(metric(*result, "top5_measured_efficiency"), metric(*result, "mean_efficiency"));
  // The best single config is far worse.
  const std::uint32_t single = greedy_portfolio(dataset, 1).front();
  std::vector<double> efficiency;
  for (std::uint32_t p = 0; p < dataset.problems().size(); ++p) {
    double best = 1e300;
    for (const Config& config : tiles()) {
      best = std::min(best, formula_ns(dataset.problems()[p], config));
    }
    efficiency.push_back(best / formula_ns(dataset.problems()[p], dataset.configs()[single]));
  }
  EXPECT_LT(mean(efficiency), metric(*result, "mean_efficiency") - 0.1);
}

// Nothing can be learned from random times. Held-out figures that looked better than a random pick
// would come from rows of the held-out problems.
TEST(TrainGbdt, HeldOutFiguresOfRandomTimesAreThoseOfARandomPick) {
  Rng rng(8);
  const Dataset dataset = dataset_of(
      60, 4, [&](const Problem&, const Config&) { return 1000 * std::exp(rng.uniform()); });
  const auto result = train_gbdt(dataset, quick_options());
  ASSERT_TRUE(result) << result.error().message;
  // best / mean of e^U over 25 draws: about 0.62.
  EXPECT_NEAR(metric(*result, "mean_efficiency"), 0.62, 0.08);
  EXPECT_NEAR(metric(*result, "spearman_mean"), 0, 0.1);
}

TEST(TrainGbdt, SameSeedSameModel) {
  const Dataset dataset = dataset_of(20, 5, formula_ns);
  TrainOptions options = quick_options();
  const auto first = train_gbdt(dataset, options);
  const auto second = train_gbdt(dataset, options);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(model_bytes(first->model), model_bytes(second->model));
  options.seed = 7;
  const auto third = train_gbdt(dataset, options);
  ASSERT_TRUE(third);
  EXPECT_NE(model_bytes(first->model), model_bytes(third->model));
}

TEST(TrainGbdt, FoldsKeepGroupsTogetherAndScoreEveryRow) {
  const Dataset dataset = dataset_of(30, 6, formula_ns);
  const auto result = train_gbdt(dataset, quick_options());
  ASSERT_TRUE(result);
  std::map<std::uint64_t, std::uint32_t> fold_of_group;
  std::vector<bool> used(5, false);
  for (std::uint32_t p = 0; p < dataset.problems().size(); ++p) {
    const std::uint32_t fold = result->fold_of_problem[p];
    ASSERT_LT(fold, 5U);
    used[fold] = true;
    const auto [found, is_new] = fold_of_group.emplace(dataset.problems()[p].group(), fold);
    EXPECT_EQ(found->second, fold);
  }
  EXPECT_EQ(std::count(used.begin(), used.end(), true), 5);
  ASSERT_EQ(result->held_out_scores.size(), dataset.size());
  EXPECT_TRUE(std::all_of(result->held_out_scores.begin(), result->held_out_scores.end(),
                          [](double score) { return std::isfinite(score); }));
}

// A config that is always stopped early at its bound must not look as fast as the bound.
TEST(TrainGbdt, BoundsAreNoTimes) {
  const Config slow = tile(256, 256, 8);
  Dataset dataset = dataset_of(40, 7, formula_ns);
  std::vector<Problem> problems(dataset.problems().begin(), dataset.problems().end());
  for (const Problem& problem : problems) {
    double best = 1e300;
    for (const Config& config : tiles()) {
      best = std::min(best, formula_ns(problem, config));
    }
    add(dataset, problem, slow, 2 * best, Outcome::kCensored);
  }
  const auto result = train_gbdt(dataset, quick_options());
  ASSERT_TRUE(result) << result.error().message;
  const std::optional<std::uint32_t> id = dataset.find_config(slow);
  std::vector<double> scores;
  for (RowIndex i = 0; i < dataset.size(); ++i) {
    if (dataset.rows()[i].config == *id) {
      scores.push_back(result->held_out_scores[i]);
    }
  }
  ASSERT_EQ(scores.size(), problems.size());
  EXPECT_GT(median(scores), std::log(2.0) - 0.1) << "relative log time";
  // It never ran to the end, so it is no candidate.
  EXPECT_EQ(std::count(result->model.pool.begin(), result->model.pool.end(), slow), 0);
}

TEST(TrainGbdt, FailedConfigsAreNoCandidatesAndNoTimes) {
  Dataset dataset = dataset_of(15, 9, formula_ns);
  const Config broken = tile(512, 512);
  const Problem problem = dataset.problems()[0];
  add(dataset, problem, broken, 0, Outcome::kCrashed);
  const auto result = train_gbdt(dataset, quick_options());
  ASSERT_TRUE(result);
  EXPECT_EQ(std::count(result->model.pool.begin(), result->model.pool.end(), broken), 0);
  EXPECT_TRUE(std::isnan(result->held_out_scores.back()));
  EXPECT_EQ(result->model.pool.size(), tiles().size());
}

TEST(TrainGbdt, ThePoolHoldsWhatItsConfigsBecomeOnTheProblems) {
  std::vector<std::int32_t> many(21);
  std::iota(many.begin(), many.end(), 1);
  many.back() = 32;  // block_k
  // Too many combinations for the pool to hold all that are legal.
  const SpaceDefinition space{
      .schema = tile_schema(),
      .problem_type = kGemmProblem,
      .domains = {{16, 32, 64, 128, 256}, {16, 32, 64, 128, 256}, many, many, many, many},
      .constraints = {},
      .canonical = {{"num_warps", "select(m <= 64, 2, num_warps)"}}};
  for (const std::int64_t m : {64, 65}) {
    DatasetHeader header = tile_header();
    header.space_text = space.text();
    Dataset dataset(header);
    for (std::int64_t k = 1; k <= 12; ++k) {
      const Problem problem = shape(m, 128, 64 * k);
      for (const Config& config : tiles()) {
        add(dataset, problem, config, formula_ns(problem, config));
      }
    }
    const auto result = train_gbdt(dataset, quick_options());
    ASSERT_TRUE(result) << result.error().message;
    const std::vector<Config>& pool = result->model.pool;
    EXPECT_EQ(pool.size(), (m <= 64 ? 2 : 1) * tiles().size());
    EXPECT_EQ(std::count(pool.begin(), pool.end(), tile(32, 64, 2)), m <= 64 ? 1 : 0);
  }
}

TEST(TrainGbdt, ConfigsThatNothingMeasuredMayBeCandidates) {
  Dataset dataset = dataset_of(15, 9, formula_ns);
  TrainOptions options = quick_options();
  options.gbdt.trees = 5;
  options.more_candidates = {tile(512, 512), tiles().front(), tile(512, 512)};
  const auto result = train_gbdt(dataset, options);
  ASSERT_TRUE(result) << result.error().message;
  const std::vector<Config>& pool = result->model.pool;
  EXPECT_EQ(pool.size(), tiles().size() + 1);
  EXPECT_EQ(std::count(pool.begin(), pool.end(), tile(512, 512)), 1);
  // The fallback is made of what was measured.
  for (const std::uint32_t place : result->model.portfolio) {
    EXPECT_NE(pool[place], tile(512, 512));
  }
  options.only_more_candidates = true;
  const auto only = train_gbdt(dataset, options);
  ASSERT_TRUE(only) << only.error().message;
  EXPECT_LT(only->model.pool.size(), pool.size());
  EXPECT_EQ(std::count(only->model.pool.begin(), only->model.pool.end(), tile(512, 512)), 1);
  const std::vector<std::uint32_t>& fallback = only->model.portfolio;
  const std::vector<Config>& given = options.more_candidates;
  for (std::uint32_t place = 0; place < only->model.pool.size(); ++place) {
    EXPECT_TRUE(std::find(fallback.begin(), fallback.end(), place) != fallback.end() ||
                std::find(given.begin(), given.end(), only->model.pool[place]) != given.end());
  }
  options.only_more_candidates = false;
  const SpaceDefinition space{.schema = tile_schema(),
                              .problem_type = kGemmProblem,
                              .domains = {},
                              .constraints = {{"block_m <= 256", "too tall"}},
                              .canonical = {}};
  dataset.mutable_header().space_text = space.text();
  const auto refused = train_gbdt(dataset, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("block_m=512"), std::string::npos);
  options.more_candidates = {{.schema = 7, .words = {1}}};
  EXPECT_EQ(train_gbdt(dataset, options).error().code, ErrorCode::kMismatch);
}

TEST(TrainGbdt, AModelStandsForItself) {
  const Dataset dataset = dataset_of(20, 10, formula_ns);
  const auto result = train_gbdt(dataset, quick_options());
  ASSERT_TRUE(result);
  const Model& model = result->model;
  EXPECT_EQ(model.family, "tiles");
  EXPECT_EQ(model.config_schema, dataset.header().config_schema);
  EXPECT_EQ(model.feature_table, "gemm-triton");
  EXPECT_EQ(model.fingerprint, dataset.header().fingerprint);
  EXPECT_EQ(model.data_fingerprint, dataset.fingerprint());
  EXPECT_GT(model.residual_std, 0);
  ASSERT_EQ(model.portfolio.size(), std::min<std::size_t>(16, model.portfolio.size()));
  const auto read = parse_model(model_bytes(model));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(model_bytes(*read), model_bytes(model));
}

TEST(TrainGbdt, OneGroupTrainsWithoutHeldOutFigures) {
  Dataset dataset(tile_header());
  const Problem problem = shape(512, 512, 512);
  for (const Config& config : tiles()) {
    add(dataset, problem, config, formula_ns(problem, config));
  }
  TrainOptions options = quick_options();
  options.gbdt.min_rows_per_leaf = 2;
  const auto result = train_gbdt(dataset, options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->metrics.empty());
}

// A run that is stopped early may leave a problem with a single time.
TEST(TrainGbdt, AProblemWithOneTimeIsNoFold) {
  Dataset dataset(tile_header());
  for (const Config& config : tiles()) {
    add(dataset, shape(512, 512, 512), config, formula_ns(shape(512, 512, 512), config));
  }
  add(dataset, shape(64, 64, 64), tiles().front(), 1000);
  const auto result = train_gbdt(dataset, quick_options());
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->metrics.empty());
  Dataset single(tile_header());
  add(single, shape(64, 64, 64), tiles().front(), 1000);
  const auto refused = train_gbdt(single, quick_options());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("one successful measurement"));
}

TEST(TrainGbdt, LearnsTheSameWhateverTheThreads) {
  const Dataset dataset = dataset_of(20, 11, formula_ns);
  TrainOptions options = quick_options();
  options.forests = 2;
  options.mining.rounds = 1;
  const auto alone = train_gbdt(dataset, options);
  ASSERT_TRUE(alone) << alone.error().message;
  for (const std::uint32_t threads : {2U, 5U}) {
    options.gbdt.threads = threads;
    const auto together = train_gbdt(dataset, options);
    ASSERT_TRUE(together) << together.error().message;
    EXPECT_EQ(model_bytes(together->model), model_bytes(alone->model)) << threads;
    EXPECT_EQ(together->metrics, alone->metrics) << threads;
  }
}

TEST(TrainGbdt, CanBeStopped) {
  const Dataset dataset = dataset_of(20, 11, formula_ns);
  int calls = 0;
  const auto result =
      train_gbdt(dataset, quick_options(), [&](const TrainProgress&) { return ++calls < 5; });
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(calls, 5);
}

TEST(TrainGbdt, RefusesWhatCannotBeLearned) {
  const Dataset empty(tile_header());
  const auto nothing = train_gbdt(empty, quick_options());
  ASSERT_FALSE(nothing.has_value());
  EXPECT_EQ(nothing.error().code, ErrorCode::kInvalidArgument);
  DatasetHeader header = tile_header();
  header.config_schema.parameters.pop_back();
  const auto foreign = train_gbdt(Dataset(header), quick_options());
  ASSERT_FALSE(foreign.has_value());
  EXPECT_EQ(foreign.error().code, ErrorCode::kUnsupported);
  TrainOptions options = quick_options();
  options.feature_table = "gemm-cpu";
  const auto other = train_gbdt(dataset_of(5, 1, formula_ns), options);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, ErrorCode::kMismatch);
}

// Imported times come without rules. Their model has a space without rules and is not a broken
// file.
TEST(TrainGbdt, DataWithoutASpaceGivesAModelThatCanBeRead) {
  Dataset dataset = dataset_of(15, 31, formula_ns);
  dataset.mutable_header().space_text.clear();
  TrainOptions options = quick_options();
  options.gbdt.trees = 5;
  options.folds = 0;
  const auto result = train_gbdt(dataset, options);
  ASSERT_TRUE(result) << result.error().message;
  const auto read = parse_model(model_bytes(result->model));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, result->model);
}

TEST(TrainGbdt, WithoutFoldsAllTreesAreGrown) {
  const Dataset dataset = dataset_of(6, 31, formula_ns);
  TrainOptions options = quick_options();
  options.gbdt.trees = 350;
  options.gbdt.leaves = 4;
  options.gbdt.learning_rate = 0.01;
  options.folds = 0;
  const auto result = train_gbdt(dataset, options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(forests_of(result->model).front().trees.size(), 350U);
}

TEST(TrainGbdt, LeavesColumnsOut) {
  const Dataset dataset = dataset_of(15, 31, formula_ns);
  TrainOptions options = quick_options();
  options.gbdt.trees = 30;
  options.without_columns = {"log2_estimate_ns", "block_m"};
  const auto without = train_gbdt(dataset, options);
  ASSERT_TRUE(without) << without.error().message;
  std::size_t others = 0;
  for (const FeatureImportance& importance : without->importances) {
    const bool is_left_out =
        importance.feature == "log2_estimate_ns" || importance.feature == "block_m";
    EXPECT_TRUE(!is_left_out || importance.splits == 0) << importance.feature;
    others += importance.splits;
  }
  EXPECT_GT(others, 0U);
  // The range of the training problems, which the selector checks, does not change.
  options.without_columns.clear();
  const auto with = train_gbdt(dataset, options);
  ASSERT_TRUE(with);
  EXPECT_EQ(without->model.problem_range, with->model.problem_range);
  EXPECT_NE(forests_of(without->model), forests_of(with->model));
}

TEST(TrainGbdt, RefusesToLeaveOutWhatIsNotThere) {
  TrainOptions options = quick_options();
  options.without_columns = {"log2_m", "phase_of_the_moon"};
  const auto result = train_gbdt(dataset_of(15, 31, formula_ns), options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kMismatch);
  EXPECT_NE(result.error().message.find("'phase_of_the_moon'"), std::string::npos);
}

// Tries all other configs in place of each choice.
TEST(GreedyPortfolio, EachConfigIsTheOneThatHelpsMost) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Dataset dataset = dataset_of(
        12, seed, [&](const Problem&, const Config&) { return 1000 * std::exp(rng.uniform()); });
    std::vector<std::vector<double>> regret(dataset.configs().size());
    for (std::uint32_t p = 0; p < dataset.problems().size(); ++p) {
      double best = 1e300;
      for (const Dataset::Row& row : dataset.rows()) {
        best = row.problem == p ? std::min(best, static_cast<double>(row.time_ns)) : best;
      }
      for (const Dataset::Row& row : dataset.rows()) {
        if (row.problem == p) {
          regret[row.config].push_back(std::log(static_cast<double>(row.time_ns) / best));
        }
      }
    }
    std::vector<double> covered(dataset.problems().size(), std::log(4.0));
    for (const std::uint32_t chosen : greedy_portfolio(dataset, 4)) {
      const auto total_with = [&](std::uint32_t config) {
        double sum = 0;
        for (std::size_t p = 0; p < covered.size(); ++p) {
          sum += std::min(covered[p], regret[config][p]);
        }
        return sum;
      };
      for (std::uint32_t other = 0; other < regret.size(); ++other) {
        ASSERT_LE(total_with(chosen), total_with(other) + 1e-9);
      }
      for (std::size_t p = 0; p < covered.size(); ++p) {
        covered[p] = std::min(covered[p], regret[chosen][p]);
      }
    }
  }
}

}  // namespace
}  // namespace foretune
