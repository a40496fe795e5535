#include "foretune/model/model_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "foretune/model/ensemble/ensemble_body.h"
#include "foretune/model/function/function_body.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/network/testing/network_samples.h"
#include "foretune/model/policy/policy_body.h"
#include "foretune/model/testing/metric_model_samples.h"
#include "foretune/model/testing/model_samples.h"

namespace foretune {
namespace {

using testing::HasSubstr;

// The sum of a row's inputs; fails when told to.
class Sum final : public RowFunction {
 public:
  explicit Sum(bool fails = false) : fails_(fails) {}
  Status predict(std::span<const float> inputs, std::span<double> out) const noexcept override {
    const std::size_t width = inputs.size() / out.size();
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = 0;
      for (const float value : inputs.subspan(i * width, width)) {
        out[i] += static_cast<double>(value);
      }
    }
    return fails_ ? fail(ErrorCode::kInternal, "told to") : Status();
  }

 private:
  bool fails_;
};

// Its inputs are columns of the problem, the config and both.
FunctionBody sum_of_columns(const FeatureTable& table, bool fails = false) {
  FunctionBody out;
  out.name = "sum";
  const auto last = static_cast<std::uint16_t>(table.columns().size() - 1);
  const auto config = static_cast<std::uint16_t>(feature_count(table, FeatureKind::kProblem));
  for (const std::uint16_t column : {std::uint16_t{0}, config, last}) {
    out.inputs.push_back({.column = column, .mean = 0.5, .inverse_std = 0.25});
  }
  out.function = std::make_shared<const Sum>(fails);
  return out;
}

bool is_transient(const Model& model) { return (*find_model_kind(model.kind))->is_transient; }

PolicyBody sample_policy(const std::vector<Network>& networks) {
  PolicyBody body;
  body.policy = PolicyNetwork::of_width(8);
  body.policy.heads.bias.front() = 1;
  body.networks = networks;
  return body;
}

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
  out.push_back(out[0]);
  set_policy(out.back(), sample_policy(networks));
  out.push_back(out[0]);
  set_function(out.back(), sum_of_columns(table));
  return out;
}

TEST(ModelKinds, EveryKindKeepsItsBodyInAFileAndReadsItWhenItIsNeeded) {
  const std::vector<Model> models = samples();
  ASSERT_EQ(models.size(), model_kinds().size()) << "a kind without a sample";
  for (const Model& model : models) {
    if (is_transient(model)) {
      continue;
    }
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

TEST(ModelKinds, ATransientOneIsNeitherWrittenNorRead) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "transient.ftm";
  Model model = samples().back();
  ASSERT_TRUE(is_transient(model));
  EXPECT_TRUE(check_model(model));
  const Status written = write_model(model, path);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(written.error().message,
            "models of kind 'function' call back into the program that trained them: they can be "
            "evaluated, but neither stored nor selected with");
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto read = parse_model(model_bytes(model));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(read.error().message, HasSubstr("no file holds one"));
}

TEST(ModelKinds, OneOfSeveralMetricsLastsAsLongAsItsParts) {
  Rng rng(11);
  Model model = sample_metrics_model({.candidates = 8}, rng);
  EXPECT_TRUE(check_lasting(model));
  std::vector<MetricModel> parts = metrics_of(model);
  Model part = *parts.back().model;
  set_function(part, sum_of_columns(**find_feature_table(part.feature_table)));
  parts.back().model = std::make_shared<const Model>(std::move(part));
  set_metrics(model, std::move(parts));
  EXPECT_TRUE(check_model(model)) << check_model(model).error().message;
  EXPECT_FALSE(check_lasting(model));
}

TEST(ModelKinds, AFunctionThatFailsPicksNothing) {
  Rng rng(12);
  Model model = sample_model({.candidates = 8}, rng);
  set_function(model, sum_of_columns(**find_feature_table(model.feature_table), true));
  const auto scores = score_configs(model, sample_gemm(rng), model.pool);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_THAT(*scores, testing::Each(std::numeric_limits<double>::infinity()));
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
  kind.is_transient = true;
  EXPECT_FALSE(register_model_kind(kind)) << "it has sections";
  kind.is_transient = false;
  EXPECT_TRUE(register_model_kind(kind));
  EXPECT_EQ((*find_model_kind("kind-test"))->name, "kind-test");
}

}  // namespace
}  // namespace foretune
