// Imports models of torch-diode, and compares the scores of the model file with those of PyTorch's
// layers on features computed here.
#include "foretune/interop/diode/import_diode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "foretune/features/testing/foreign_row.h"
#include "foretune/interop/diode/testing/diode_samples.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/train/testing/training_samples.h"

namespace foretune {
namespace {

using testing::HasSubstr;

DiodeCheckpoint checkpoint_of(const SampleDiode& sample) {
  return parse_diode_checkpoint(sample_diode_file(sample)).value();
}

const SampleDiode kV1{.kind = DiodeKind::kV1, .widths = {16, 16, 8}};
const SampleDiode kBase{.kind = DiodeKind::kBase, .widths = {16, 8}};
const SampleDiode kDeep{.kind = DiodeKind::kDeep, .widths = {8, 8, 8, 8, 8}};

Dataset tile_data() { return dataset_of(12, 3, formula_ns); }

// The 12 features of V1 with `bits` bits.
std::array<double, 12> v1_features(const Problem& problem, const Config& config, double bits) {
  const GemmSizes sizes = GemmProblem::from(problem).value().sizes();
  const auto m = static_cast<double>(sizes.m);
  const auto n = static_cast<double>(sizes.n);
  const auto k = static_cast<double>(sizes.k);
  const double gigabytes = (m * k + k * n + m * n) * bits / 8 / 1e9;
  const double gflop = 2 * m * n * k / 1e9;
  const auto word = [&](std::size_t i) { return static_cast<double>(config.words[i]); };
  return {bits,    m,       n,       k,       gigabytes, gflop, gflop / gigabytes,
          word(2), word(0), word(1), word(4), word(5)};
}

// Predicts ln(ns) like ModelWrapper.encode() and MatmulModelV1.forward().
double v1_prediction(const DiodeCheckpoint& checkpoint, std::array<double, 12> row, bool raw) {
  constexpr std::array kMeans{2.78275084,  8.23996746, 7.27791873, 7.92035942,
                              -2.39558163, 3.40679233, 5.80237395, 3.95781827,
                              4.19478321,  4.19098234, 0.9045909,  1.28331208};
  constexpr std::array kStds{0.08322756, 2.31893439, 1.65605574, 2.15447078, 2.19682881, 2.99600806,
                             1.24328795, 0.92352521, 0.93849802, 0.93872011, 0.57455891, 0.5837217};
  for (std::size_t i = 0; i < row.size() && !raw; ++i) {
    row[i] = (std::log(row[i]) - kMeans[i]) / kStds[i];
  }
  const double output = evaluate_layers(checkpoint.layers, row).front();
  const double least = std::log(0.00541);
  const double larger = std::max(output, least);
  return larger + std::log(std::exp(output - larger) + std::exp(least - larger)) + std::log(1e6);
}

// Returns the scores of the model after a round trip through its file.
std::vector<double> scores_of(const Model& model, const Problem& problem) {
  const Model read = parse_model(model_bytes(model)).value();
  return score_configs(read, problem, read.pool).value();
}

TEST(ImportDiode, V1ScoresAsItsClassPredicts) {
  const DiodeCheckpoint checkpoint = checkpoint_of(kV1);
  const Dataset data = tile_data();
  const auto model = import_diode(checkpoint, data, {});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->kind, "network");
  EXPECT_EQ(model->target, "log");
  EXPECT_EQ(model->feature_table, "gemm-diode-v1");
  EXPECT_EQ(model->pool.size(), tiles().size());
  EXPECT_EQ(model->data_fingerprint, Digest());
  for (const Problem& problem : data.problems()) {
    const std::vector<double> scores = scores_of(*model, problem);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double expected =
          v1_prediction(checkpoint, v1_features(problem, model->pool[i], 16), false);
      ASSERT_NEAR(scores[i], expected, 1e-4) << problem.text();
    }
  }
}

TEST(ImportDiode, NothingIsFasterThanV1sOverhead) {
  DiodeCheckpoint checkpoint = checkpoint_of(kV1);
  checkpoint.layers.back().bias[0] -= 1000;
  const Dataset data = tile_data();
  const auto model = import_diode(checkpoint, data, {});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_NEAR(scores_of(*model, data.problems()[0])[0], std::log(5410), 1e-5);
}

// The shipped integration takes no logarithms, standardises nothing and counts bf16 as 32 bits.
TEST(ImportDiode, RawScoresAsV1IsServed) {
  const DiodeCheckpoint checkpoint = checkpoint_of(kV1);
  const Dataset data = tile_data();
  const auto model = import_diode(checkpoint, data, {.raw = true});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->feature_table, "gemm-diode");
  EXPECT_EQ(networks_of(*model)[0].inputs.size(), 12U);
  const Problem& problem = data.problems()[1];
  const std::vector<double> scores = scores_of(*model, problem);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double expected =
        v1_prediction(checkpoint, v1_features(problem, model->pool[i], 32), true);
    ASSERT_NEAR(scores[i], expected, 1e-5 * std::max(1000.0, std::abs(expected)));
  }
}

TEST(ImportDiode, OthersSeeTheirFeaturesAsTheyAre) {
  const Dataset data = tile_data();
  for (const SampleDiode& sample : {kBase, kDeep}) {
    const DiodeCheckpoint checkpoint = checkpoint_of(sample);
    const auto model = import_diode(checkpoint, data, {});
    ASSERT_TRUE(model) << model.error().message;
    const FeatureTable& table = **find_feature_table("gemm-diode");
    const Problem& problem = data.problems()[2];
    const std::vector<double> scores = scores_of(*model, problem);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      std::vector<double> row(table.columns().size());
      foreign_row(table, problem, Hardware(), model->pool[i], row);
      const double expected = evaluate_layers(checkpoint.layers, row).front() + std::log(1e6);
      ASSERT_NEAR(scores[i], expected, 1e-5 * std::abs(expected)) << to_string(sample.kind);
    }
    // These kinds get the inputs that they learned from.
    EXPECT_EQ(model_bytes(import_diode(checkpoint, data, {.raw = true}).value()),
              model_bytes(*model));
  }
}

Config with_template(std::int32_t number, const Config& config, const ConfigSchema& schema) {
  Config out{.schema = schema.id(), .words = {number}};
  for (const std::int32_t word : config.words) {
    out.words.push_back(number == 0 ? 0 : word);
  }
  return out;
}

Dataset template_data() {
  DatasetHeader header = tile_header();
  header.config_schema.parameters.insert(header.config_schema.parameters.begin(),
                                         {.name = "template", .labels = {}});
  Dataset data(header);
  for (const std::int64_t size : {512, 1024, 4096}) {
    const Problem problem = shape(size, size, size);
    add(data, problem, with_template(0, tile(16, 16), header.config_schema), 10);
    for (const Config& config : tiles()) {
      for (const std::int32_t number : {1, 2}) {
        add(data, problem, with_template(number, config, header.config_schema),
            formula_ns(problem, config) / number);
      }
    }
  }
  return data;
}

TEST(ImportDiode, RanksInductorsTemplateAlone) {
  const auto model = import_diode(checkpoint_of(kV1), template_data(), {.portfolio_size = 4});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->pool.size(), tiles().size());
  for (const Config& config : model->pool) {
    EXPECT_EQ(config.words[0], 1);
  }
  EXPECT_FALSE(model->portfolio.empty());
  // The scores equal those without the parameter for the template.
  const auto plain = import_diode(checkpoint_of(kV1), tile_data(), {});
  const Problem problem = shape(512, 512, 512);
  EXPECT_EQ(scores_of(*model, problem), scores_of(*plain, problem));
}

// Uses the schema that torch-diode's documents are imported into.
TEST(ImportDiode, RanksWhatDiodesCollectorMeasured) {
  DatasetHeader header = tile_header();
  for (const char* flag : {"even_k", "allow_tf32", "use_fast_accum", "acc_type"}) {
    header.config_schema.parameters.push_back({.name = flag, .labels = {}});
  }
  const auto with_flags = [&](const Config& config, std::int32_t allow_tf32) {
    Config out{.schema = header.config_schema.id(), .words = config.words};
    for (const std::int32_t word : {0, allow_tf32, 0, 0}) {
      out.words.push_back(word);
    }
    return out;
  };
  const Problem problem = shape(512, 512, 512);
  Dataset data(header);
  for (const Config& config : tiles()) {
    add(data, problem, with_flags(config, 0), formula_ns(problem, config));
  }
  for (const SampleDiode& sample : {kV1, kDeep}) {
    const DiodeCheckpoint checkpoint = checkpoint_of(sample);
    const auto model = import_diode(checkpoint, data, {});
    ASSERT_TRUE(model) << model.error().message;
    const Model plain = import_diode(checkpoint, tile_data(), {}).value();
    EXPECT_EQ(scores_of(*model, problem), score_configs(plain, problem, plain.pool).value());
  }
  // V1 sees no flags.
  add(data, problem, with_flags(tile(16, 16), 1), 10);
  const Model v1 = import_diode(checkpoint_of(kV1), data, {}).value();
  EXPECT_EQ(v1.pool.size(), tiles().size() + 1);
  EXPECT_EQ(scores_of(v1, problem)[0], scores_of(v1, problem)[1]);
}

TEST(ImportDiode, CardSaysWhereItIsFrom) {
  const auto model = import_diode(checkpoint_of(kDeep), tile_data(), {});
  ASSERT_TRUE(model) << model.error().message;
  const auto card = nlohmann::json::parse(model->card_json);
  EXPECT_EQ(card["imported"]["from"], "torch-diode");
  EXPECT_EQ(card["imported"]["model"], "deep");
  EXPECT_EQ(card["imported"]["raw"], false);
  EXPECT_EQ(card["pool_data"], tile_data().fingerprint().hex());
  EXPECT_EQ(networks_of(*model)[0].architecture, "diode-deep");
}

TEST(ImportDiode, SaysWhatDiffers) {
  const DiodeCheckpoint checkpoint = checkpoint_of(kV1);
  const auto expect_refused = [](const Result<Model>& model, ErrorCode code, const char* reason) {
    ASSERT_FALSE(model) << reason;
    EXPECT_EQ(model.error().code, code) << model.error().message;
    EXPECT_THAT(model.error().message, HasSubstr(reason));
  };
  Dataset data = tile_data();
  data.mutable_header().role = DatasetRole::kValidation;
  expect_refused(import_diode(checkpoint, data, {}), ErrorCode::kMismatch, "validation set");
  data = tile_data();
  data.mutable_header().config_schema.parameters[0].name = "mr";
  expect_refused(import_diode(checkpoint, data, {}), ErrorCode::kMismatch,
                 "gemm-diode-v1 describes configs of the parameters");
  expect_refused(import_diode(checkpoint, Dataset(tile_header()), {}), ErrorCode::kInvalidArgument,
                 "no successful measurement");
  DiodeCheckpoint damaged = checkpoint;
  damaged.layers[0].weight[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(import_diode(damaged, tile_data(), {}).error().code, ErrorCode::kCorrupt);
  damaged.layers.clear();
  EXPECT_EQ(import_diode(damaged, tile_data(), {}).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace foretune
