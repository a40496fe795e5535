#include "foretune/evaluate/unseen_configs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "foretune/evaluate/testing/evaluation_samples.h"
#include "foretune/model/testing/model_samples.h"
#include "foretune/report/evaluation_report.h"

namespace foretune {
namespace {

// Configs of c from 0 to 3 and d from 0 to 1, on twelve problems.
Dataset grid(double (*time_ns)(const Problem&, const Config&)) {
  Dataset dataset(sample_header());
  for (std::int64_t m = 1; m <= 12; ++m) {
    for (std::int32_t c = 0; c < 4; ++c) {
      for (std::int32_t d = 0; d < 2; ++d) {
        const Problem problem = sample_problem(m, 64, 64 * m);
        add_sample(dataset, problem, sample_config(c, d), time_ns(problem, sample_config(c, d)));
      }
    }
  }
  return dataset;
}

double by_c(const Problem& problem, const Config& config) {
  return 1000 * (1 + config.words[0]) + 10 * config.words[1] +
         static_cast<double>(problem.field(1));
}

std::set<std::string> out_of(const Dataset& dataset, const ConfigPart& part) {
  std::set<std::string> out;
  for (std::uint32_t id = 0; id < part.is_out.size(); ++id) {
    if (part.is_out[id]) {
      out.insert(to_text(dataset.header().config_schema, dataset.configs()[id]));
    }
  }
  return out;
}

TEST(ConfigParts, AreTheValuesOfAParameterOrTheirCombinations) {
  const Dataset dataset = grid(by_c);
  const auto parts = config_parts(dataset, "d", 1);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ(parts->at(1).name, "d=1");
  EXPECT_EQ(out_of(dataset, parts->at(1)),
            (std::set<std::string>{"c=0 d=1", "c=1 d=1", "c=2 d=1", "c=3 d=1"}));
  const auto one = config_parts(dataset, "c:2", 1);
  ASSERT_TRUE(one && one->size() == 1);
  EXPECT_EQ(out_of(dataset, one->front()), (std::set<std::string>{"c=2 d=0", "c=2 d=1"}));
  const auto both = config_parts(dataset, "c+d", 1);
  ASSERT_TRUE(both && both->size() == 8);
  EXPECT_EQ(both->at(1).name, "c=0 d=1");
}

TEST(ConfigParts, AreDealtAtRandomToANumberOfParts) {
  const Dataset dataset = grid(by_c);
  const auto parts = config_parts(dataset, "3", 5);
  ASSERT_TRUE(parts && parts->size() == 3);
  std::set<std::string> all;
  for (const ConfigPart& part : *parts) {
    const auto configs = out_of(dataset, part);
    EXPECT_TRUE(configs.size() == 2 || configs.size() == 3);
    all.insert(configs.begin(), configs.end());
  }
  EXPECT_EQ(all.size(), 8U);
  EXPECT_EQ(config_parts(dataset, "3", 5)->at(0).is_out, parts->at(0).is_out);
}

TEST(ConfigParts, SayWhatCannotBeLeftOut) {
  const Dataset dataset = grid(by_c);
  const auto code = [&](std::string_view what) {
    const auto parts = config_parts(dataset, what, 1);
    return parts ? ErrorCode::kInternal : parts.error().code;
  };
  EXPECT_EQ(code("e"), ErrorCode::kNotFound);
  EXPECT_EQ(code(""), ErrorCode::kNotFound);
  EXPECT_EQ(code("c:9"), ErrorCode::kNotFound);
  EXPECT_EQ(code("c+d:1"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("1"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("9"), ErrorCode::kInvalidArgument);
  Dataset alike(sample_header());
  add_sample(alike, sample_problem(1), sample_config(1), 10);
  add_sample(alike, sample_problem(1), sample_config(2), 10);
  EXPECT_EQ(config_parts(alike, "d", 1).error().code, ErrorCode::kInvalidArgument);
}

// The same model whatever it learns from; its pool is that of the data set.
Result<Model> any_model(const Dataset& dataset) {
  Rng rng(1);
  Model model = sample_model({}, rng);
  model.pool.assign(dataset.configs().begin(), dataset.configs().end());
  return model;
}

// Random times of configs of the sample models' schema.
Dataset tiles_dataset() {
  DatasetHeader header = sample_header();
  header.config_schema = sample_space().schema;
  header.space_text = sample_space().text();
  header.fingerprint = h200_fingerprint();
  Rng rng(11);
  Dataset dataset(header);
  const std::vector<Config> pool = sample_pool(header.config_schema, 12, rng);
  for (std::int64_t i = 1; i <= 8; ++i) {
    for (const Config& config : pool) {
      add_sample(dataset, sample_problem(512 * i, 512, 64 * i), config,
                 1000 * std::exp(rng.uniform()));
    }
  }
  return dataset;
}

TEST(EvaluateUnseenConfigs, TrainsWithoutThePartAndJudgesPicksAmongIt) {
  const Dataset dataset = tiles_dataset();
  const auto splits = nested_folds(dataset, 2, 7).value();
  const auto parts = config_parts(dataset, "3", 7).value();
  std::size_t trainings = 0;
  std::size_t candidates = 0;
  const CandidateRecipe recipe = [&](const Dataset& training, std::span<const Config> left_out,
                                     const OuterSplit& split) {
    ++trainings;
    candidates += left_out.size();
    for (const Dataset::Row& row : training.rows()) {
      const Config& config = training.configs()[row.config];
      EXPECT_EQ(std::count(left_out.begin(), left_out.end(), config), 0);
      EXPECT_FALSE(split.is_test[*dataset.find_problem(training.problems()[row.problem])]);
    }
    return any_model(dataset);
  };
  const auto out =
      evaluate_unseen_configs(dataset, splits, parts, recipe, {.bootstrap_samples = 20});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(trainings, 2U * (1 + 3));
  EXPECT_EQ(candidates, 2U * 12);
  ASSERT_EQ(out->parts.size(), 3U);
  double sum = 0;
  for (std::size_t p = 0; p < 3; ++p) {
    const UnseenConfigs& part = out->parts[p];
    EXPECT_EQ(part.configs, 4U);
    EXPECT_EQ(part.unseen.problems, 8U);
    // The recipe returns the same model whatever it is given, so what it saw makes no difference.
    EXPECT_EQ(part.unseen.efficiency, part.seen.efficiency);
    sum += part.unseen.mean_efficiency.value;
    // Worked out: the best-ranked config of the part beside the part's fastest.
    const Model model = any_model(dataset).value();
    const auto ranked = rank_with_model(model, dataset).value();
    std::size_t picked = 0;
    for (const RankedProblem& entry : ranked) {
      double pick_ns = 0;
      double best_ns = 1e300;
      for (const std::uint32_t config : entry.configs) {
        for (const Dataset::Row& row : dataset.rows()) {
          if (row.problem == entry.problem && row.config == config && parts[p].is_out[config]) {
            pick_ns = pick_ns > 0 ? pick_ns : static_cast<double>(row.time_ns);
            best_ns = std::min(best_ns, static_cast<double>(row.time_ns));
          }
        }
      }
      picked += parts[p].is_out[entry.configs.front()] ? 1U : 0U;
      EXPECT_NEAR(part.unseen.efficiency[entry.problem], best_ns / pick_ns, 1e-6);
    }
    EXPECT_DOUBLE_EQ(part.picked_share, static_cast<double>(picked) / 8);
    EXPECT_LE(part.of_all.mean_efficiency.value, 1);
  }
  EXPECT_NEAR(out->together.unseen.mean_efficiency.value, sum / 3, 1e-12);
  EXPECT_EQ(out->together.unseen.problems, 24U);
  const std::string text = unseen_text(*out);
  EXPECT_NE(text.find("part 3"), std::string::npos);
  EXPECT_NE(text.find("all parts"), std::string::npos);
  const auto json = nlohmann::json::parse(
      unseen_json(*out, "evaluate", "foretune evaluate", dataset.header().fingerprint));
  EXPECT_EQ(json["parts"].size(), 3U);
  EXPECT_DOUBLE_EQ(json["metrics"]["unseen_mean_efficiency"],
                   out->together.unseen.mean_efficiency.value);
}

TEST(EvaluateUnseenConfigs, NamesWhatFailed) {
  const Dataset dataset = tiles_dataset();
  const auto splits = nested_folds(dataset, 2, 7).value();
  const auto parts = config_parts(dataset, "3", 7).value();
  const CandidateRecipe fails = [](const Dataset& training, std::span<const Config> left_out,
                                   const OuterSplit&) -> Result<Model> {
    if (!left_out.empty()) {
      return fail(ErrorCode::kCancelled, "stopped");
    }
    return any_model(training);
  };
  const auto out = evaluate_unseen_configs(dataset, splits, parts, fails, {});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, ErrorCode::kCancelled);
  EXPECT_NE(out.error().message.find("fold 1 without part 1"), std::string::npos);
}

}  // namespace
}  // namespace foretune
