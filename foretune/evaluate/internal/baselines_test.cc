#include "foretune/evaluate/internal/baselines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/testing/evaluation_samples.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using evaluate_internal::log_distance;
using evaluate_internal::TrainedBaselines;

// times_ns[problem][config]; 0: not measured. Problem p has m = 10 (p + 1).
Dataset table_dataset(const std::vector<std::vector<double>>& times_ns, std::int64_t k = 64) {
  Dataset dataset(sample_header());
  for (std::size_t p = 0; p < times_ns.size(); ++p) {
    const Problem problem = sample_problem(10 * (static_cast<std::int64_t>(p) + 1), 64, k);
    for (std::size_t c = 0; c < times_ns[p].size(); ++c) {
      if (times_ns[p][c] > 0) {
        add_sample(dataset, problem, sample_config(static_cast<std::int32_t>(c)), times_ns[p][c]);
      }
    }
  }
  return dataset;
}

// By word, not by id.
std::vector<std::int32_t> words(const Dataset& dataset, std::span<const std::uint32_t> ids) {
  std::vector<std::int32_t> out;
  for (const std::uint32_t id : ids) {
    out.push_back(dataset.configs()[id].words[0]);
  }
  return out;
}

Evaluation evaluate_first(const Dataset& dataset, const EvaluateOptions& options,
                          const Model* model = nullptr) {
  std::vector<RankedProblem> ranked;
  const MeasuredTimes times(dataset);
  for (std::uint32_t p = 0; p < dataset.problems().size(); ++p) {
    RankedProblem entry;
    entry.problem = p;
    entry.configs.push_back(times.candidates(p)[0].config);
    ranked.push_back(entry);
  }
  Result<Evaluation> out = evaluate(dataset, ranked, model, options);
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return *std::move(out);
}

TEST(TrainedBaselines, BestSingleConfigHasTheBestMean) {
  const Dataset dataset = table_dataset({{100, 110, 300}, {300, 110, 100}, {200, 100, 110}});
  const MeasuredTimes times(dataset);
  const TrainedBaselines trained(dataset, times, {true, true, true}, nullptr);
  EXPECT_EQ(words(dataset, trained.by_mean()), (std::vector<std::int32_t>{1, 2, 0}));
}

TEST(TrainedBaselines, PortfolioAddsWhatHelpsMost) {
  // 1 is good everywhere, 0 is perfect where 1 is worst, 2 is good but says nothing new.
  const Dataset dataset =
      table_dataset({{100, 200, 199}, {400, 100, 101}, {400, 100, 101}, {400, 100, 101}});
  const MeasuredTimes times(dataset);
  const TrainedBaselines trained(dataset, times, std::vector<bool>(4, true), nullptr);
  EXPECT_EQ(words(dataset, trained.portfolio()), (std::vector<std::int32_t>{1, 0, 2}));
}

TEST(TrainedBaselines, GreedyIsWhatAPlainSearchPicks) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Dataset dataset = random_dataset(12, 9, false, rng);
    const MeasuredTimes times(dataset);
    const TrainedBaselines trained(dataset, times, std::vector<bool>(12, true), nullptr);
    std::vector<std::uint32_t> chosen;
    while (chosen.size() < 9) {
      double best_sum = -1;
      std::uint32_t best = 0;
      for (std::uint32_t c = 0; c < 9; ++c) {
        if (std::find(chosen.begin(), chosen.end(), c) != chosen.end()) {
          continue;
        }
        double sum = 0;
        for (std::uint32_t p = 0; p < 12; ++p) {
          double reached = times.compare(p, *times.find(p, c)).efficiency;
          for (const std::uint32_t other : chosen) {
            reached = std::max(reached, times.compare(p, *times.find(p, other)).efficiency);
          }
          sum += reached;
        }
        if (sum > best_sum + 1e-5) {
          best_sum = sum;
          best = c;
        }
      }
      // Sums that are equal but for rounding may be taken in either order.
      if (best_sum < 12 - 1e-4) {
        ASSERT_EQ(trained.portfolio()[chosen.size()], best) << chosen.size();
      } else {
        break;
      }
      chosen.push_back(best);
    }
    EXPECT_GE(chosen.size(), 2U);
    EXPECT_EQ(
        std::set<std::uint32_t>(trained.portfolio().begin(), trained.portfolio().end()).size(), 9U);
  }
}

TEST(TrainedBaselines, AConfigThatIsMissingForAReasonIsNoGoodSingleConfig) {
  // 0 is there everywhere; 1 is perfect, but only where it exists. Everything else is complete, so
  // 1 is missing because it is not legal.
  std::vector<std::vector<double>> table;
  for (int p = 0; p < 20; ++p) {
    table.push_back({110, p < 5 ? 100.0 : 0.0, p < 5 ? 300.0 : 100.0 + 60 * (p % 2), 150});
  }
  const Dataset dataset = table_dataset(table);
  const MeasuredTimes times(dataset);
  const TrainedBaselines trained(dataset, times, std::vector<bool>(20, true), nullptr);
  EXPECT_EQ(words(dataset, trained.by_mean())[0], 0);
}

TEST(TrainedBaselines, ASparselySampledConfigIsJudgedByWhatWasSeen) {
  // A quarter of all pairs, at random: the config that is best wherever it was measured wins.
  Rng rng(9);
  std::vector<std::vector<double>> table(80, std::vector<double>(40, 0));
  for (auto& row : table) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = rng.below(4) == 0 ? 100 * (c == 17 ? 1.0 : 1.3 + rng.uniform()) : 0;
    }
    row[3] = 200;
  }
  const Dataset dataset = table_dataset(table);
  const MeasuredTimes times(dataset);
  const TrainedBaselines trained(dataset, times, std::vector<bool>(80, true), nullptr);
  EXPECT_EQ(words(dataset, trained.by_mean())[0], 17);
  EXPECT_EQ(words(dataset, trained.portfolio())[0], 17);
}

TEST(TrainedBaselines, LearnsFromTheProblemsGivenOnly) {
  const Dataset dataset = table_dataset({{100, 200}, {200, 100}, {200, 100}});
  const MeasuredTimes times(dataset);
  const TrainedBaselines trained(dataset, times, {true, false, false}, nullptr);
  EXPECT_EQ(trained.problems(), 1U);
  EXPECT_EQ(words(dataset, trained.by_mean())[0], 0);
  EXPECT_EQ(TrainedBaselines(dataset, times, {false, false, false}, nullptr).problems(), 0U);
}

TEST(TrainedBaselines, NearestIsByLogarithmAndLabel) {
  Dataset dataset(sample_header());
  add_sample(dataset, sample_problem(100), sample_config(0), 1);
  add_sample(dataset, sample_problem(1000), sample_config(0), 1);
  add_sample(
      dataset,
      GemmProblem::create({.m = 310, .n = 64, .k = 64, .dtype = DataType::kBf16})->to_problem(),
      sample_config(0), 1);
  const MeasuredTimes times(dataset);
  const TrainedBaselines trained(dataset, times, std::vector<bool>(3, true), nullptr);
  // 310 is nearer to 1000 on a plain scale never, by ratio it is 3.1 against 3.2.
  EXPECT_EQ(trained.nearest(sample_problem(310)), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(trained.nearest(sample_problem(330)), (std::vector<std::uint32_t>{1, 0, 2}));
  EXPECT_EQ(log_distance(sample_problem(3), sample_problem(3)), 0);
  EXPECT_GT(log_distance(sample_problem(1), sample_problem(2)), 0);
}

TEST(Baselines, ComeFromTheTrainingSet) {
  const Dataset training =
      table_dataset({{100, 200, 300, 400, 500}, {100, 200, 300, 400, 500}}, 32);
  const Dataset dataset = table_dataset({{500, 250, 125, 400, 100}, {200, 100, 300, 400, 500}});
  EvaluateOptions options{.bootstrap_samples = 50};
  options.training = &training;
  const Evaluation out = evaluate_first(dataset, options);
  EXPECT_DOUBLE_EQ(find_baseline(out, "best_single_config")->mean_efficiency.value,
                   (0.2 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(find_baseline(out, "portfolio_4")->mean_efficiency.value, (0.8 + 1) / 2);
  EXPECT_DOUBLE_EQ(find_baseline(out, "portfolio_16")->mean_efficiency.value, 1);
  EXPECT_DOUBLE_EQ(find_baseline(out, "nearest_problem")->mean_efficiency.value, (0.2 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(find_baseline(out, "random")->efficiency[1],
                   (0.5 + 1 + 1.0 / 3 + 0.25 + 0.2) / 5);
  // Hindsight knows that the second config is best here: 0.4 and 1.
  EXPECT_DOUBLE_EQ(find_baseline(out, "best_single_config_in_hindsight")->mean_efficiency.value,
                   (0.4 + 1) / 2);
  EXPECT_EQ(find_baseline(out, "default_config"), nullptr);
  EXPECT_EQ(out.training_problems, 2U);
}

TEST(Baselines, ComeFromTheModelWithoutATrainingSet) {
  const Dataset dataset = table_dataset({{500, 250, 125, 400, 100}, {200, 100, 300, 400, 500}});
  Model model;
  model.problem_type = kGemmProblem;
  for (const std::int32_t c : {3, 1, 0}) {
    model.pool.push_back(sample_config(c));
  }
  model.portfolio = {1, 2};
  const Evaluation out = evaluate_first(dataset, {.bootstrap_samples = 50}, &model);
  EXPECT_DOUBLE_EQ(find_baseline(out, "best_single_config")->mean_efficiency.value, (0.4 + 1) / 2);
  EXPECT_EQ(find_baseline(out, "portfolio_4"), nullptr) << "two configs are no portfolio of four";
  EXPECT_EQ(find_baseline(out, "nearest_problem"), nullptr);
}

TEST(Baselines, TheNextChoiceStandsInWhereTheFirstWasNotMeasured) {
  const Dataset training = table_dataset({{100, 200, 300}, {100, 200, 300}}, 32);
  const Dataset dataset = table_dataset({{0, 250, 125}, {100, 200, 100}});
  EvaluateOptions options{.bootstrap_samples = 50};
  options.training = &training;
  const Evaluation out = evaluate_first(dataset, options);
  const PickerResult* single = find_baseline(out, "best_single_config");
  EXPECT_EQ(single->replaced, 1U);
  EXPECT_DOUBLE_EQ(single->mean_efficiency.value, (0.5 + 1) / 2);
}

TEST(Baselines, AProblemWithoutAnyOfTheChoicesIsLeftOut) {
  const Dataset dataset = table_dataset({{0, 100}, {100, 200}});
  EvaluateOptions options{.bootstrap_samples = 50};
  options.default_configs = [](const Problem&) { return std::vector<Config>{sample_config(0)}; };
  const Evaluation out = evaluate_first(dataset, options);
  const PickerResult* fallback = find_baseline(out, "default_config");
  ASSERT_NE(fallback, nullptr);
  EXPECT_EQ(fallback->problems, 1U);
  EXPECT_EQ(fallback->problem_ids, (std::vector<std::uint32_t>{1}));
}

TEST(Baselines, VendorsMayBeFaster) {
  Dataset dataset = table_dataset({{100, 200}, {100, 200}, {100, 200}});
  dataset.add_baseline({0, "blas", 50});
  dataset.add_baseline({2, "blas", 200});
  const Evaluation out = evaluate_first(dataset, {.bootstrap_samples = 50});
  const PickerResult* vendor = find_baseline(out, "vendor_blas");
  ASSERT_NE(vendor, nullptr);
  EXPECT_EQ(vendor->problems, 2U);
  EXPECT_DOUBLE_EQ(vendor->mean_efficiency.value, (2 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(vendor->top1_hit, 0.5);
  EXPECT_TRUE(std::isnan(vendor->top5_measured_efficiency.value));
}

TEST(Baselines, InCrossValidationLearnFromTheOtherFolds) {
  // Problems 0 and 1 want config 0, problems 2 and 3 want config 1: whoever learns from the other
  // fold picks wrongly.
  const Dataset dataset = table_dataset({{100, 200}, {100, 200}, {200, 100}, {200, 100}});
  EvaluateOptions options{.bootstrap_samples = 50};
  options.fold_of_problem = {0, 0, 1, 1};
  const Evaluation out = evaluate_first(dataset, options);
  EXPECT_DOUBLE_EQ(find_baseline(out, "best_single_config")->mean_efficiency.value, 0.5);
  EXPECT_DOUBLE_EQ(find_baseline(out, "nearest_problem")->mean_efficiency.value, 0.5);
  // Each has a neighbour of its own kind in the other fold.
  options.fold_of_problem = {0, 1, 1, 0};
  const Evaluation mixed = evaluate_first(dataset, options);
  EXPECT_DOUBLE_EQ(find_baseline(mixed, "nearest_problem")->mean_efficiency.value, 1);
}

TEST(Baselines, AreTheSameWhateverTheOrderOfRows) {
  Rng rng(21);
  Dataset dataset = random_dataset(30, 20, true, rng);
  const Dataset training = random_dataset(40, 20, true, rng);
  EvaluateOptions options{.bootstrap_samples = 50};
  options.training = &training;
  const Evaluation first = evaluate_first(dataset, options);
  std::vector<Dataset::Row> rows(dataset.rows().begin(), dataset.rows().end());
  rng.shuffle(std::span(rows));
  dataset.drop_rows();
  for (const Dataset::Row& row : rows) {
    dataset.add_row(row);
  }
  const Evaluation second = evaluate_first(dataset, options);
  ASSERT_EQ(first.baselines.size(), second.baselines.size());
  for (std::size_t i = 0; i < first.baselines.size(); ++i) {
    EXPECT_EQ(first.baselines[i].efficiency, second.baselines[i].efficiency);
    EXPECT_EQ(first.baselines[i].mean_efficiency.low, second.baselines[i].mean_efficiency.low);
  }
}

}  // namespace
}  // namespace foretune
