#include "foretune/interop/ck/output_directory.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/interop/ck/model_directory.h"
#include "foretune/model/train/testing/training_samples.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"

namespace foretune {
namespace {

using nlohmann::json;
using testing_support::TemporaryFolder;

class OutputDirectory : public testing::Test {
 protected:
  OutputDirectory() : dataset_(dataset_of(15, 31, formula_ns)) {
    const SpaceDefinition space{
        .schema = tile_schema(),
        .problem_type = kGemmProblem,
        .domains = {{16, 32, 64, 128, 256}, {16, 32, 64, 128, 256}, {32}, {8}, {3}, {4}},
        .constraints = {},
        .canonical = {}};
    dataset_.mutable_header().space_text = space.text();
    options_ = quick_options();
    options_.gbdt.trees = 30;
    options_.folds = 3;
  }
  // Trains and writes the targets, each with `options_`.
  void write(const std::filesystem::path& folder, const std::vector<Target>& targets,
             bool write_lightgbm) {
    results_.clear();
    std::vector<TrainOptions> options(targets.size(), options_);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      options[i].target = targets[i];
      auto result = train_gbdt(dataset_, options[i]);
      ASSERT_TRUE(result) << result.error().message;
      results_.push_back(std::move(*result));
    }
    std::vector<TrainedTarget> trained;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      trained.push_back({file_name_of(targets[i]), &options[i], &results_[i]});
    }
    const Status status = write_training_output(dataset_, trained, folder, write_lightgbm);
    ASSERT_TRUE(status) << status.error().message;
  }
  static json read_json(const std::filesystem::path& path) {
    return json::parse(read_text_file(path).value());
  }
  static std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
    std::map<std::string, std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      out[entry.path().filename().string()] = read_text_file(entry.path()).value();
    }
    return out;
  }
  Dataset dataset_;
  TrainOptions options_;
  std::vector<TrainResult> results_;
};

TEST_F(OutputDirectory, IsReadBackAsAModelDirectory) {
  const TemporaryFolder folder;
  options_.forests = 2;
  write(folder / "a", {Target::kRelativeLog, Target::kTflops, Target::kLatency}, true);
  const auto models = read_model_directory(folder / "a");
  ASSERT_TRUE(models) << models.error().message;
  EXPECT_EQ(models->op_type, "gemm");
  EXPECT_EQ(models->dtype, "bf16");
  EXPECT_EQ(models->arch, "NVIDIA H200");
  EXPECT_EQ(models->feature_engine, "gemm-triton");
  EXPECT_TRUE(models->categorical_features.empty());
  ASSERT_EQ(models->targets.size(), 3U);
  EXPECT_EQ(models->targets[0].name, "time");
  EXPECT_FALSE(models->targets[0].log1p);
  EXPECT_EQ(models->targets[1].name, "tflops");
  EXPECT_TRUE(models->targets[1].log1p);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(models->targets[i].model.forest, results_[i].predictor.forest);
  }
  // In the unit of the target: the rates are of the size that was measured.
  const FeatureTable& table = *find_feature_table("gemm-triton").value();
  std::vector<double> row(table.columns().size());
  const Problem problem = shape(512, 512, 1024);
  feature_row(table, problem, h200_fingerprint().hardware, tile(64, 64), row);
  const double tflops = 2.0 * 512 * 512 * 1024 / formula_ns(problem, tile(64, 64)) * 1e-3;
  EXPECT_NEAR(predict(models->targets[1], row) / tflops, 1, 0.6);
}

TEST_F(OutputDirectory, FilesSayWhatTheResultSays) {
  const TemporaryFolder folder;
  write(folder / "a", {Target::kTflops}, false);
  const auto model = read_model(folder / "a/model_tflops.ftm");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(*model, results_[0].model);
  const json metrics = read_json(folder / "a/cv_metrics_tflops.json");
  EXPECT_EQ(metrics["target"], "tflops");
  EXPECT_EQ(metrics["log1p"], true);
  ASSERT_EQ(metrics["folds"].size(), 3U);
  EXPECT_EQ(metrics["folds"][1]["fold"], 1);
  double efficiency = 0;
  std::size_t rows = 0;
  for (const json& fold : metrics["folds"]) {
    efficiency += fold["mean_efficiency"].get<double>() / 3;
    rows += fold["val_size"].get<std::size_t>();
    EXPECT_EQ(fold["val_groups"].get<int>() + fold["train_groups"].get<int>(), 15);
    EXPECT_TRUE(fold["ours"].contains("top5_measured_efficiency"));
  }
  EXPECT_EQ(rows, dataset_.size());
  EXPECT_NEAR(metrics["mean"]["mean_efficiency"].get<double>(), efficiency, 1e-12);
  EXPECT_TRUE(metrics["pooled"].contains("ndcg_at_1"));
  const json importances = read_json(folder / "a/feature_importances_tflops.json");
  EXPECT_EQ(importances.size(), find_feature_table("gemm-triton").value()->columns().size());
  std::size_t splits = 0;
  double gain = 0;
  for (const json& importance : importances) {
    splits += importance["splits"].get<std::size_t>();
    gain += importance["gain"].get<double>();
  }
  EXPECT_EQ(splits, results_[0].predictor.forest.feature.size());
  EXPECT_GT(gain, 0);
  const json manifest = read_json(folder / "a/train_manifest.json");
  EXPECT_EQ(manifest["data"]["fingerprint"], dataset_.fingerprint().hex());
  EXPECT_EQ(manifest["seed"], 42);
  EXPECT_TRUE(manifest.contains("foretune"));
  EXPECT_EQ(manifest["models"]["tflops"]["target"], "tflops");
  const json spec = read_json(folder / "a/feature_spec.json");
  EXPECT_EQ(spec["targets"], json({"tflops"}));
  EXPECT_EQ(spec["log_targets"], json({"tflops"}));
}

TEST_F(OutputDirectory, SameSeedSameBytes) {
  const TemporaryFolder folder;
  for (const TrainObjective objective :
       {TrainObjective::kRegression, TrainObjective::kLambdaRank, TrainObjective::kRegret}) {
    SCOPED_TRACE(to_string(objective));
    options_.objective = objective;
    options_.seed = 42;
    options_.mining.rounds = 1;
    write(folder / "a", {Target::kRelativeLog}, true);
    write(folder / "b", {Target::kRelativeLog}, true);
    EXPECT_EQ(contents(folder / "a").size(), 7U);
    EXPECT_EQ(contents(folder / "a"), contents(folder / "b"));
    options_.seed = 7;
    write(folder / "b", {Target::kRelativeLog}, true);
    EXPECT_NE(contents(folder / "a")["model_time.ftm"], contents(folder / "b")["model_time.ftm"]);
  }
}

TEST_F(OutputDirectory, ModelsOfAnotherTrainingDoNotStay) {
  const TemporaryFolder folder;
  write(folder / "a", {Target::kLog}, true);
  for (const char* name : {"a/model_time.lgbm", "a/model_time.lgbm.gz"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  }
  write(folder / "a", {Target::kLog}, false);
  for (const char* name : {"a/model_time.lgbm", "a/model_time.lgbm.gz"}) {
    EXPECT_FALSE(std::filesystem::exists(folder / name)) << name;
  }
  EXPECT_EQ(read_model_directory(folder / "a").error().code, ErrorCode::kNotFound);
}

TEST_F(OutputDirectory, WithoutFoldsThereAreNoFigures) {
  const TemporaryFolder folder;
  options_.folds = 0;
  write(folder / "a", {Target::kRelativeLog}, false);
  const json metrics = read_json(folder / "a/cv_metrics_time.json");
  EXPECT_EQ(metrics["folds"], json::array());
  EXPECT_EQ(metrics["mean"], json::object());
  EXPECT_EQ(metrics["pooled"], json::object());
}

TEST_F(OutputDirectory, RefusesNoTargetTwoOfANameAndAFileInItsPlace) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_training_output(dataset_, {}, folder / "a", false).error().code,
            ErrorCode::kInvalidArgument);
  write(folder / "a", {Target::kLog}, false);
  const TrainedTarget target{"time", &options_, &results_[0]};
  EXPECT_EQ(write_training_output(dataset_, std::vector{target, target}, folder / "b", false)
                .error()
                .code,
            ErrorCode::kInvalidArgument);
  ASSERT_TRUE(write_text_file_atomically(folder / "file", "x"));
  EXPECT_EQ(
      write_training_output(dataset_, std::vector{target}, folder / "file", false).error().code,
      ErrorCode::kIo);
}

}  // namespace
}  // namespace foretune
