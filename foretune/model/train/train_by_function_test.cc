#include "foretune/model/train/train_by_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/train/files/testing/neural_samples.h"
#include "foretune/model/train/testing/training_samples.h"
#include "foretune/model/train/train_ensemble.h"
#include "foretune/model/train/train_metrics.h"

namespace foretune {
namespace {

using testing::HasSubstr;
using testing_support::sample_deep;

const Dataset& data() {
  static const Dataset dataset = dataset_of(9, 3, formula_ns);
  return dataset;
}

TrainOptions fold_options() {
  TrainOptions options;
  options.folds = 3;
  return options;
}

// A deep network with residual blocks, batch normalisation and weights of chance.
Fitted chance_layers(const FitRows& rows) {
  Rng rng(rows.seed);
  Fitted out;
  out.layers = sample_deep(static_cast<std::uint32_t>(rows.columns.size()), 8, 2, rng);
  return out;
}

std::vector<float> said_by(const std::vector<TorchLayer>& layers, const FitRows& rows) {
  const std::size_t width = rows.columns.size();
  std::vector<float> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<double> row(
        rows.inputs.begin() + static_cast<std::ptrdiff_t>(i * width),
        rows.inputs.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    out.push_back(static_cast<float>(evaluate_layers(layers, row).front()));
  }
  return out;
}

// Remembers which inputs had which target: a row that it saw is predicted perfectly.
class Memory final : public RowFunction {
 public:
  explicit Memory(const FitRows& rows, double otherwise = 3) : otherwise_(otherwise) {
    const std::size_t width = rows.columns.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto first = rows.inputs.begin() + static_cast<std::ptrdiff_t>(i * width);
      known_[{first, first + static_cast<std::ptrdiff_t>(width)}] =
          static_cast<double>(rows.target[i]);
    }
  }
  Status predict(std::span<const float> inputs, std::span<double> out) const noexcept override {
    const std::size_t width = inputs.size() / out.size();
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto row = inputs.subspan(i * width, width);
      const auto found = known_.find({row.begin(), row.end()});
      out[i] = found == known_.end() ? otherwise_ : found->second;
    }
    return {};
  }

 private:
  std::map<std::vector<float>, double> known_;
  double otherwise_;
};

std::string refusal(const FitFunction& fit, const TrainOptions& options = fold_options()) {
  const auto result = train_by_function(data(), options, "mine", fit);
  return result ? std::string() : result.error().message;
}

TEST(TrainByFunction, LayersBecomeANetworkThatIsStoredAndSaysWhatTheySay) {
  std::vector<FitRows> seen;
  std::vector<TorchLayer> last;
  const auto result =
      train_by_function(data(), fold_options(), "mine", [&](const FitRows& rows) -> Result<Fitted> {
        seen.push_back(rows);
        Fitted out = chance_layers(rows);
        last = out.layers;
        return out;
      });
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0].stage, "fold 1 of 3");
  EXPECT_EQ(seen[3].stage, "all data");
  EXPECT_EQ(result->model.kind, "network");
  EXPECT_EQ(networks_of(result->model).front().architecture, "mine");
  const auto read = parse_model(model_bytes(result->model));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, result->model);
  EXPECT_THAT(result->model.card_json, HasSubstr("\"architecture\": \"mine\""));
  EXPECT_EQ(result->model.card_json.find("num_epochs"), std::string::npos);
  for (const double score : result->held_out_scores) {
    EXPECT_TRUE(std::isfinite(score));
  }
  // The rows of all data stand in the order of problems, as data() has them.
  const std::vector<float> wanted = said_by(last, seen[3]);
  for (std::size_t i = 0; i < data().size(); i += 3) {
    const Dataset::Row& row = data().rows()[i];
    const auto score =
        score_config(result->model, data().problems()[row.problem], data().configs()[row.config]);
    ASSERT_TRUE(score) << score.error().message;
    EXPECT_NEAR(*score, static_cast<double>(wanted[i]), 1e-4 * std::max(1.0, std::fabs(*score)));
  }
}

TEST(TrainByFunction, OnlyTrainingRowsAreShownAndTheyAreStandardised) {
  std::vector<FitRows> seen;
  const auto result =
      train_by_function(data(), fold_options(), "mine", [&](const FitRows& rows) -> Result<Fitted> {
        seen.push_back(rows);
        return Fitted{.function = std::make_shared<Memory>(rows)};
      });
  ASSERT_TRUE(result) << result.error().message;
  for (std::uint32_t fold = 0; fold < 3; ++fold) {
    std::size_t rows = 0;
    std::set<std::uint32_t> problems;
    for (std::size_t i = 0; i < data().size(); ++i) {
      const std::uint32_t problem = data().rows()[i].problem;
      const bool is_held_out = result->fold_of_problem[problem] == fold;
      rows += is_held_out ? 0 : 1;
      if (is_held_out) {
        // The function predicts rows perfectly that it saw, and it saw none of these.
        EXPECT_EQ(result->held_out_scores[i], 3);
      } else {
        problems.insert(problem);
      }
    }
    ASSERT_EQ(seen[fold].size(), rows);
    EXPECT_EQ(seen[fold].problem.back() + 1, problems.size());
  }
  for (const FitRows& rows : seen) {
    ASSERT_EQ(rows.inputs.size(), rows.size() * rows.columns.size());
    for (std::size_t c = 0; c < rows.columns.size(); ++c) {
      double sum = 0;
      double squares = 0;
      bool is_plain = true;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto value = static_cast<double>(rows.inputs[i * rows.columns.size() + c]);
        sum += value;
        squares += value * value;
        is_plain = is_plain && (value == 0 || value == 1);
      }
      const auto count = static_cast<double>(rows.size());
      if (rows.columns[c].find('=') != std::string::npos) {
        EXPECT_TRUE(is_plain) << rows.columns[c];
      } else {
        EXPECT_NEAR(sum / count, 0, 1e-4) << rows.columns[c];
        EXPECT_NEAR(squares / count, 1, 1e-3) << rows.columns[c];
      }
    }
  }
  EXPECT_THAT(seen[3].columns, testing::Contains("ln(tile_elements)"));
  EXPECT_THAT(seen[3].columns, testing::Contains("block_m=64"));
}

TEST(TrainByFunction, AFunctionBecomesAModelThatIsEvaluatedAndNotStored) {
  const auto result =
      train_by_function(data(), fold_options(), "mine", [](const FitRows& rows) -> Result<Fitted> {
        return Fitted{.function = std::make_shared<Memory>(rows)};
      });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->model.kind, "function");
  EXPECT_TRUE(check_model(result->model));
  EXPECT_FALSE(check_lasting(result->model));
  const Dataset::Row& row = data().rows()[7];
  const auto scores = score_configs(result->model, data().problems()[row.problem],
                                    std::vector<Config>{data().configs()[row.config]});
  ASSERT_TRUE(scores);
  EXPECT_TRUE(std::isfinite(scores->front()));
}

TEST(TrainByFunction, ItsTargetIsTheLogarithmOfTimeWhereThatIsLearned) {
  TrainOptions options;
  options.folds = 0;
  options.target = Target::kLog;
  std::vector<float> target;
  const auto result =
      train_by_function(data(), options, "mine", [&](const FitRows& rows) -> Result<Fitted> {
        target = rows.target;
        return chance_layers(rows);
      });
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(target.size(), data().size());
  for (std::size_t i = 0; i < target.size(); ++i) {
    EXPECT_FLOAT_EQ(target[i], std::log(data().rows()[i].time_ns));
  }
}

TEST(TrainByFunction, WhatMakesNoSenseIsRefusedInASentence) {
  const FitFunction none = [](const FitRows&) -> Result<Fitted> { return Fitted(); };
  EXPECT_THAT(refusal(none), HasSubstr("make no network: there is no linear layer"));
  EXPECT_THAT(refusal([](const FitRows& rows) -> Result<Fitted> {
                Rng rng(1);
                const auto width = static_cast<std::uint32_t>(rows.columns.size());
                return Fitted{.layers = sample_deep(width + 1, 8, 1, rng)};
              }),
              HasSubstr("inputs and wants 1"));
  EXPECT_THAT(refusal([](const FitRows& rows) -> Result<Fitted> {
                Fitted out = chance_layers(rows);
                out.predictions = said_by(out.layers, rows);
                out.predictions[0] += 0.5F;
                return out;
              }),
              HasSubstr("otherwise than it does itself, by up to"));
  EXPECT_THAT(refusal([](const FitRows&) -> Result<Fitted> {
                return fail(ErrorCode::kInternal, "no more memory");
              }),
              HasSubstr("no more memory"));
  EXPECT_THAT(refusal([](const FitRows& rows) -> Result<Fitted> {
                return Fitted{.function = std::make_shared<Memory>(rows, NAN)};
              }),
              HasSubstr("no number"));
  TrainOptions options = fold_options();
  options.choose_target = true;
  EXPECT_THAT(refusal(none, options), HasSubstr("for boosted trees"));
  options = fold_options();
  options.objective = TrainObjective::kLambdaRank;
  EXPECT_THAT(refusal(none, options), HasSubstr("for boosted trees"));
  options = fold_options();
  options.network.networks = 2;
  EXPECT_THAT(refusal(
                  [](const FitRows& rows) -> Result<Fitted> {
                    return Fitted{.function = std::make_shared<Memory>(rows)};
                  },
                  options),
              HasSubstr("neither several"));
}

TEST(TrainByFunction, WhatLayersSayOfTheirRowsIsComparedWithTheNetwork) {
  const auto result =
      train_by_function(data(), fold_options(), "mine", [](const FitRows& rows) -> Result<Fitted> {
        Fitted out = chance_layers(rows);
        out.predictions = said_by(out.layers, rows);
        out.predictions.back() = NAN;  // not asked
        return out;
      });
  ASSERT_TRUE(result) << result.error().message;
  double difference = -1;
  for (const auto& [name, value] : result->metrics) {
    difference = name == "max_difference_to_module" ? value : difference;
  }
  EXPECT_GE(difference, 0);
  EXPECT_LT(difference, 1e-4);
}

TEST(TrainByFunction, ARegisteredTypeIsTrainedByItsNameAlsoForSeveralMetrics) {
  ASSERT_TRUE(register_fitted_type("mine", "layers of chance", chance_layers));
  const Status again = register_fitted_type("mine", "", chance_layers);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("'mine' already"));
  EXPECT_FALSE(register_fitted_type("deep", "", chance_layers));
  EXPECT_FALSE(register_fitted_type("", "", chance_layers));
  const ModelTypeEntry& type = *model_types().back();
  EXPECT_EQ(type.name, "mine");
  const std::vector<std::string> metrics{"time_ns"};
  const auto trained = train_metrics(data(), type, fold_options(), metrics, nullptr);
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_TRUE(check_lasting(trained->model));
}

TEST(TrainByFunction, AFunctionIsNoPartnerOfTrees) {
  ASSERT_TRUE(register_fitted_type("memory", "", [](const FitRows& rows) -> Result<Fitted> {
    return Fitted{.function = std::make_shared<Memory>(rows)};
  }));
  TrainOptions options = quick_options();
  options.folds = 3;
  options.network.partner = "memory";
  const auto result = train_ensemble(data(), options);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("memory gives a model of kind 'function'"));
}

TEST(TrainByFunction, TheHookIsAskedBeforeEveryFitAndMayStopIt) {
  std::vector<std::string> stages;
  const auto result = train_by_function(
      data(), fold_options(), "mine",
      [](const FitRows& rows) -> Result<Fitted> { return chance_layers(rows); },
      [&](const TrainProgress& progress) {
        stages.push_back(progress.stage);
        return stages.size() < 2;
      });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(stages, testing::ElementsAre("fold 1 of 3", "fold 2 of 3"));
}

}  // namespace
}  // namespace foretune
