#include "foretune/models/infer/model_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "foretune/models/infer/kinds/ensemble/ensemble_body.h"
#include "foretune/models/infer/kinds/network/network_body.h"
#include "foretune/models/infer/metric_model_samples.h"
#include "foretune/models/infer/model_samples.h"
#include "foretune/models/infer/model_scorer.h"
#include "foretune/models/infer/network_samples.h"

namespace foretune {
namespace {

using testing::HasSubstr;

// A model of every kind of this build.
std::vector<Model> samples() {
  Rng rng(8);
  std::vector<Model> out{sample_model({.candidates = 24}, rng)};
  const FeatureTable& table = **find_feature_table(out[0].feature_table);
  const std::vector<Network> networks{random_chain(table, {8, 8}, rng)};
  out.push_back(out[0]);
  set_networks(out.back(), networks);
  out.push_back(out[0]);
  set_ensemble(out.back(), {forests_of(out[0]), networks, 0.25});
  out.push_back(sample_metrics_model({.candidates = 24}, rng));
  return out;
}

TEST(ModelKinds, EveryKindKeepsItsBodyInAFileAndReadsItWhenItIsNeeded) {
  const std::vector<Model> models = samples();
  ASSERT_EQ(models.size(), model_kinds().size()) << "a kind without a sample";
  for (const Model& model : models) {
    SCOPED_TRACE(model.kind);
    const std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) / concat("kind-", model.kind, ".ftm");
    ASSERT_TRUE(write_model(model, path)) << write_model(model, path).error().message;
    auto parts = read_model_parts(path);
    ASSERT_TRUE(parts) << parts.error().message;
    EXPECT_FALSE(parts->model.body);
    EXPECT_FALSE(parts->body.empty());
    ASSERT_TRUE(read_body(*parts));
    EXPECT_EQ(parts->model, model);
    EXPECT_TRUE(check_body(parts->model, true));
    std::filesystem::remove(path);
  }
}

TEST(ModelKinds, EveryKindSaysWhatItIsAndScoresToTheBit) {
  Rng rng(9);
  for (const Model& model : samples()) {
    SCOPED_TRACE(model.kind);
    const ModelFacts facts = describe_model(model);
    EXPECT_FALSE(facts.lines.empty());
    EXPECT_FALSE(facts.figures.empty());
    const Problem problem = sample_gemm(rng);
    const auto scores = score_configs(model, problem, model.pool);
    ASSERT_TRUE(scores) << scores.error().message;
    for (std::size_t i = 0; i < model.pool.size(); ++i) {
      ASSERT_EQ((*scores)[i], *score_config(model, problem, model.pool[i]));
    }
  }
}

TEST(ModelKinds, NoTwoKindsPredictTheSame) {
  const std::vector<Model> models = samples();
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (std::size_t j = 0; j < models.size(); ++j) {
      EXPECT_EQ(models[i].body == models[j].body, i == j);
    }
  }
}

TEST(ModelKinds, ABodyOfAnotherKindIsRefused) {
  for (Model model : samples()) {
    for (const ModelKind* const kind : model_kinds()) {
      if (kind->name != model.kind) {
        Model wrong = model;
        wrong.kind = kind->name;
        EXPECT_FALSE(check_model(wrong)) << model.kind << " as " << kind->name;
      }
    }
    model.body = {};
    EXPECT_FALSE(check_model(model)) << model.kind;
  }
}

TEST(ModelKinds, UnknownOnesAreRefusedWhileTheFileIsRead) {
  Rng rng(10);
  Model model = sample_model({.candidates = 8}, rng);
  model.kind = "oracle";
  const auto read = parse_model(model_bytes(model));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(read.error().message, HasSubstr("'oracle' are not known"));
}

TEST(ModelKinds, RowsThatLackSomethingAreNotAdded) {
  const ModelKind whole = **find_model_kind("gbdt");
  EXPECT_FALSE(register_model_kind(whole)) << "its name is taken";
  ModelKind kind = whole;
  kind.name = "kind-test";
  kind.read = nullptr;
  EXPECT_FALSE(register_model_kind(kind));
  kind = whole;
  kind.name = "kind-test";
  kind.sections[0].id = section_id("CARD");
  const Status taken = register_model_kind(kind);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("that all models have"));
  kind.sections[0].id = section_id("XKND");
  EXPECT_TRUE(register_model_kind(kind));
  EXPECT_EQ((*find_model_kind("kind-test"))->name, "kind-test");
}

}  // namespace
}  // namespace foretune
