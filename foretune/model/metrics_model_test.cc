// Models of several metrics: files, checks and scores.
#include <gtest/gtest.h>

#include <algorithm>

#include "foretune/model/forest/forest_body.h"
#include "foretune/model/metrics/metrics_body.h"
#include "foretune/model/model_file.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/testing/metric_model_samples.h"

namespace foretune {
namespace {

Model metrics_model() {
  Rng rng(31);
  return sample_metrics_model(
      {.forests = 2, .candidates = 24, .forest = {.trees = 3, .max_leaves = 7}}, rng);
}

// With one metric changed by `change`.
template <class Change>
Model changed(const Change& change) {
  Model model = metrics_model();
  Model part = *metrics_of(model)[1].model;
  change(model, part);
  edit_metrics(model, [&](std::vector<MetricModel>& metrics) {
    metrics[1].model = std::make_shared<const Model>(std::move(part));
  });
  return model;
}

TEST(MetricsModel, ReturnsTheSameFromItsFile) {
  const Model model = metrics_model();
  ASSERT_TRUE(check_model(model)) << check_model(model).error().message;
  const std::vector<std::byte> bytes = model_bytes(model);
  const auto read = parse_model(bytes);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, model);
  EXPECT_EQ(model_bytes(*read), bytes);
}

TEST(MetricsModel, WritesWhatPartsShareOnce) {
  const Model model = metrics_model();
  const Model apart = changed([](Model&, Model& part) { part.pool.pop_back(); });
  std::size_t sum = 0;
  for (const MetricModel& part : metrics_of(model)) {
    sum += model_bytes(*part.model).size();
  }
  EXPECT_LT(model_bytes(model).size(), sum * 8 / 10);
  EXPECT_GT(model_bytes(apart).size(), model_bytes(model).size());
  EXPECT_EQ(*parse_model(model_bytes(apart)), apart);
}

TEST(MetricsModel, EveryTruncationAndEveryFlippedByteIsNoticed) {
  const Model model = metrics_model();
  const std::vector<std::byte> bytes = model_bytes(model);
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_FALSE(parse_model(std::span(bytes).first(size)).has_value()) << size;
  }
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::vector<std::byte> damaged = bytes;
    damaged[i] ^= std::byte{0x41};
    const auto read = parse_model(damaged);
    if (read) {
      EXPECT_EQ(*read, model) << i;
    }
  }
}

TEST(MetricsModel, IsRefusedWhereItsPartsDoNotFit) {
  const auto refused = [](const Model& model, std::string_view reason) {
    const Status status = check_model(model);
    ASSERT_FALSE(status) << reason;
    EXPECT_NE(status.error().message.find(reason), std::string::npos) << status.error().message;
  };
  refused(changed([](Model&, Model& part) { part.family = "another"; }), "other problems");
  refused(changed([](Model&, Model& part) { part.target = "relative-log"; }), "no model");
  refused(changed([](Model&, Model& part) { set_forests(part, {}); }), "the model of pack_ns");
  refused(changed([](Model&, Model& part) { part = metrics_model(); }), "no model");
  refused(changed([](Model& model, Model&) {
            edit_metrics(model, [](auto& metrics) { metrics[2].metric.name = "time_ns"; });
          }),
          "twice");
  refused(changed([](Model& model, Model&) {
            edit_metrics(model, [](auto& metrics) { metrics[0].metric.name = "no name"; });
          }),
          "name");
  refused(changed([](Model& model, Model&) {
            edit_metrics(model, [](auto& metrics) { metrics[1].scale.offset = 0; });
          }),
          "scale");
  Model other = metrics_model();
  other.kind = "gbdt";
  refused(other, "no forest");
  Model none = metrics_model();
  set_metrics(none, {});
  refused(none, "0 metrics");
}

TEST(MetricsModel, ColumnsAreTheScoresOfItsPartsToTheBit) {
  const Model model = metrics_model();
  const auto scorer = make_scorer(model);
  ASSERT_TRUE(scorer.has_value()) << scorer.error().message;
  ASSERT_EQ((*scorer)->columns().size(), 3U);
  EXPECT_EQ((*scorer)->columns()[2].metric.name, "qos_tune");
  EXPECT_TRUE((*scorer)->columns()[2].is_absolute);
  const ConfigList configs(model.pool);
  const std::size_t size = model.pool.size();
  const auto pool = (*scorer)->prepare(configs, model.fingerprint.hardware);
  const auto checked = prepare_checked(model, configs);
  ASSERT_TRUE(pool.has_value() && checked.has_value());
  std::vector<std::byte> workspace((*pool)->workspace_bytes());
  Rng rng(5);
  for (int i = 0; i < 5; ++i) {
    const Problem problem = sample_gemm(rng);
    std::vector<double> scores(3 * size);
    std::vector<double> uncertainty(3 * size);
    std::vector<double> again(3 * size);
    (*pool)->score_columns(problem, workspace, scores, uncertainty);
    (*checked)->score_columns(problem, workspace, again, {});
    EXPECT_EQ(scores, again);
    for (std::size_t c = 0; c < 3; ++c) {
      const auto own = make_scorer(*metrics_of(model)[c].model);
      const auto own_pool = (*own)->prepare(configs, model.fingerprint.hardware);
      std::vector<std::byte> space((*own_pool)->workspace_bytes());
      std::vector<double> expected(size);
      std::vector<double> spread(size);
      (*own_pool)->score(problem, space, expected, spread);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), scores.begin() + c * size));
      EXPECT_TRUE(std::equal(spread.begin(), spread.end(), uncertainty.begin() + c * size));
    }
    EXPECT_EQ(*score_config(model, problem, model.pool[3]), scores[3]);
  }
}

TEST(MetricsModel, OtherModelsHaveOneColumnOfTime) {
  Rng rng(6);
  Model model = sample_model({.candidates = 8, .forest = {.trees = 2, .max_leaves = 4}}, rng);
  EXPECT_EQ(columns_of(model), std::vector{ScoreColumn{}});
  model.target = "log";
  EXPECT_TRUE(columns_of(model)[0].is_absolute);
  EXPECT_TRUE((*make_scorer(model))->columns()[0].is_absolute);
}

}  // namespace
}  // namespace foretune
