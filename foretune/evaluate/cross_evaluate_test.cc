#include "foretune/evaluate/cross_evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "foretune/evaluate/testing/evaluation_samples.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/report/evaluation_report.h"

namespace foretune {
namespace {

DatasetHeader triton_header() {
  DatasetHeader header = sample_header();
  header.family = "sample";
  header.config_schema = sample_space().schema;
  header.space_text = sample_space().text();
  header.fingerprint = h200_fingerprint();
  return header;
}

// Problems with several layouts and sizes, each with the same measured configs.
Dataset dataset_of(const std::vector<GemmSizes>& sizes, std::size_t configs = 8) {
  Rng rng(11);
  const std::vector<Config> pool = sample_pool(sample_space().schema, configs, rng);
  Dataset dataset(triton_header());
  for (const GemmSizes& size : sizes) {
    const Problem problem = GemmProblem::create(size)->to_problem();
    for (const Config& config : pool) {
      add_sample(dataset, problem, config, 1000 * std::exp(rng.uniform()));
    }
  }
  return dataset;
}

std::vector<GemmSizes> many_sizes() {
  std::vector<GemmSizes> out;
  for (std::int64_t i = 0; i < 6; ++i) {
    for (const GemmLayout layout : {GemmLayout::kRcr, GemmLayout::kRrr}) {
      out.push_back({.m = 512 + i, .n = 512, .k = 64 << i, .layout = layout});
    }
  }
  return out;
}

// A model that remembers what it was trained on; it ranks at random.
Result<Model> remembering(const Dataset& training, std::set<std::string>& seen) {
  for (const Dataset::Row& row : training.rows()) {
    seen.insert(training.problems()[row.problem].text());
  }
  Rng rng(1);
  Model model = sample_model({}, rng);
  model.pool.assign(training.configs().begin(), training.configs().end());
  return model;
}

std::set<std::string> tested(const Dataset& dataset, const OuterSplit& split) {
  std::set<std::string> out;
  for (std::size_t id = 0; id < split.is_test.size(); ++id) {
    if (split.is_test[id]) {
      out.insert(dataset.problems()[id].text());
    }
  }
  return out;
}

TEST(NestedFolds, TestEveryProblemOnceAndKeepGroupsTogether) {
  const Dataset dataset = dataset_of(many_sizes());
  const auto splits = nested_folds(dataset, 3, 42);
  ASSERT_TRUE(splits.has_value());
  ASSERT_EQ(splits->size(), 3U);
  for (std::size_t id = 0; id < dataset.problems().size(); ++id) {
    std::size_t tests = 0;
    for (const OuterSplit& split : *splits) {
      tests += split.is_test[id] ? 1U : 0U;
      for (std::size_t other = 0; other < id; ++other) {
        if (dataset.problems()[other].group() == dataset.problems()[id].group()) {
          EXPECT_EQ(split.is_test[other], split.is_test[id]);
        }
      }
    }
    EXPECT_EQ(tests, 1U);
  }
  EXPECT_EQ(nested_folds(dataset, 3, 42)->at(0).is_test, splits->at(0).is_test);
}

TEST(NestedFolds, KeepProblemsOfTheSameWeightsTogether) {
  std::vector<GemmSizes> sizes;
  for (std::int64_t i = 0; i < 12; ++i) {
    sizes.push_back({.m = 16 << i, .n = 512, .k = 64 + 64 * (i % 4)});
  }
  const Dataset dataset = dataset_of(sizes);
  const auto splits = nested_folds(dataset, 4, 42, GroupKey::kWeights);
  ASSERT_TRUE(splits.has_value()) << splits.error().message;
  for (const OuterSplit& split : *splits) {
    EXPECT_EQ(tested(dataset, split).size(), 3U);
    for (std::size_t id = 0; id < split.is_test.size(); ++id) {
      EXPECT_EQ(split.is_test[id], split.is_test[id % 4]) << "ids of equal k are 4 apart";
    }
  }
  EXPECT_FALSE(nested_folds(dataset, 5, 42, GroupKey::kWeights)) << "four kinds of weights";
  EXPECT_TRUE(nested_folds(dataset, 5, 42));
}

TEST(NestedFolds, NeedGroupsWithTimes) {
  const Dataset dataset = dataset_of(many_sizes());
  for (const std::uint32_t folds : {0U, 1U, 7U}) {
    const auto splits = nested_folds(dataset, folds, 42);
    ASSERT_FALSE(splits.has_value()) << folds;
    EXPECT_EQ(splits.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(nested_folds(Dataset(triton_header()), 2, 42).has_value());
}

TEST(LeaveOut, SizesLeaveOutAThird) {
  const Dataset dataset = dataset_of(many_sizes());
  std::size_t together = 0;
  for (const std::string which : {"k", "k:smallest", "k:middle"}) {
    const auto splits = leave_out(dataset, which);
    ASSERT_TRUE(splits.has_value()) << splits.error().message;
    ASSERT_EQ(splits->size(), 1U);
    const auto test = tested(dataset, splits->front());
    EXPECT_EQ(test.size(), 4U) << which;
    together += test.size();
  }
  EXPECT_EQ(together, dataset.problems().size());
  const auto largest = leave_out(dataset, "k:largest");
  EXPECT_EQ(largest->front().is_test, leave_out(dataset, "k")->front().is_test);
  for (std::size_t id = 0; id < dataset.problems().size(); ++id) {
    EXPECT_EQ(largest->front().is_test[id], GemmProblem::from(dataset.problems()[id])->k() >= 1024);
  }
  EXPECT_EQ(largest->front().name, "k 1024 to 2048");
}

TEST(LeaveOut, LabelsTakeTurnsOrOneIsNamed) {
  const Dataset dataset = dataset_of(many_sizes());
  const auto splits = leave_out(dataset, "layout");
  ASSERT_TRUE(splits.has_value());
  ASSERT_EQ(splits->size(), 2U);
  EXPECT_EQ(splits->at(0).name, "layout rcr");
  EXPECT_EQ(tested(dataset, splits->at(0)).size(), 6U);
  const auto one = leave_out(dataset, "layout:rrr");
  ASSERT_TRUE(one.has_value());
  ASSERT_EQ(one->size(), 1U);
  EXPECT_EQ(one->front().is_test, splits->at(1).is_test);
}

TEST(LeaveOut, SaysWhatCannotBeLeftOut) {
  const Dataset dataset = dataset_of(many_sizes());
  const auto code = [&](std::string_view what) {
    const auto splits = leave_out(dataset, what);
    return splits ? ErrorCode::kInternal : splits.error().code;
  };
  EXPECT_EQ(code("depth"), ErrorCode::kNotFound);
  EXPECT_EQ(code(""), ErrorCode::kNotFound);
  EXPECT_EQ(code("k:largest:really"), ErrorCode::kNotFound);
  EXPECT_EQ(code("k:huge"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("n"), ErrorCode::kInvalidArgument) << "all alike";
  EXPECT_EQ(code("dtype"), ErrorCode::kInvalidArgument) << "all alike";
  EXPECT_EQ(code("layout:ccr"), ErrorCode::kNotFound);
  EXPECT_FALSE(leave_out(Dataset(triton_header()), "k").has_value());
}

TEST(CrossEvaluate, TrainsWithoutWhatItTestsAndPutsAllTogether) {
  const Dataset dataset = dataset_of(many_sizes());
  const auto splits = nested_folds(dataset, 3, 7);
  const auto result = cross_evaluate(dataset, *splits,
                                     [&](const Dataset& training, const OuterSplit& split) {
                                       std::set<std::string> seen;
                                       auto model = remembering(training, seen);
                                       for (const std::string& test : tested(dataset, split)) {
                                         EXPECT_FALSE(seen.contains(test)) << test;
                                       }
                                       EXPECT_EQ(seen.size() + tested(dataset, split).size(),
                                                 dataset.problems().size());
                                       return model;
                                     },
                                     {.bootstrap_samples = 20});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->evaluation.model.problems, dataset.problems().size());
  double sum = 0;
  std::size_t problems = 0;
  for (const SplitResult& split : result->splits) {
    EXPECT_EQ(split.shared_groups, 0U);
    EXPECT_EQ(split.training_problems + split.test_problems, dataset.problems().size());
    sum += split.mean_efficiency * static_cast<double>(split.test_problems);
    problems += split.test_problems;
    EXPECT_LE(split.min_efficiency, split.p10_efficiency);
    EXPECT_GE(split.top5_measured_efficiency, split.mean_efficiency);
  }
  EXPECT_NEAR(result->evaluation.model.mean_efficiency.value, sum / static_cast<double>(problems),
              1e-12);
  EXPECT_NE(splits_text(*result).find("fold 3"), std::string::npos);
  const auto json = nlohmann::json::parse(
      cross_report_json(*result, "evaluate", "foretune evaluate", dataset.header().fingerprint));
  EXPECT_EQ(json["splits"].size(), 3U);
  EXPECT_TRUE(json["metrics"].contains("ndcg_at_1"));
}

TEST(CrossEvaluate, OnlyWhatIsLeftOutIsJudgedAndSharedSizesAreCounted) {
  const Dataset dataset = dataset_of(many_sizes());
  const auto splits = leave_out(dataset, "layout:rrr");
  const auto result = cross_evaluate(dataset, *splits,
                                     [](const Dataset& training, const OuterSplit&) {
                                       std::set<std::string> seen;
                                       return remembering(training, seen);
                                     },
                                     {.bootstrap_samples = 20});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->evaluation.model.problems, 6U);
  EXPECT_EQ(result->splits.front().shared_groups, 6U);
  for (const std::string& warning : result->evaluation.warnings) {
    EXPECT_EQ(warning.find("left out"), std::string::npos) << "they are left out on purpose";
  }
  EXPECT_NE(splits_text(*result).find("6 of the problems have the same sizes"), std::string::npos);
}

TEST(CrossEvaluate, PassesErrorsOnWithTheSplit) {
  const Dataset dataset = dataset_of(many_sizes());
  auto splits = *nested_folds(dataset, 2, 7);
  const TrainRecipe fails = [](const Dataset&, const OuterSplit&) -> Result<Model> {
    return fail(ErrorCode::kCancelled, "stopped");
  };
  const auto stopped = cross_evaluate(dataset, splits, fails, {});
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_NE(stopped.error().message.find("fold 1"), std::string::npos);
  splits[1] = splits[0];
  EXPECT_EQ(cross_evaluate(dataset, splits, fails, {}).error().code, ErrorCode::kInvalidArgument);
  splits[0].is_test.pop_back();
  EXPECT_EQ(cross_evaluate(dataset, splits, fails, {}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretune
