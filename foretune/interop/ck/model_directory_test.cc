#include "foretune/interop/ck/model_directory.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/interop/trees/lightgbm_text.h"

namespace foretune {
namespace {

// Splits on "tile" at a threshold, and on "pipeline" by the categories 1 and 3.
TreeModel sample_model(double left_value) {
  TreeModel model;
  model.feature_names = {"M", "tile", "pipeline"};
  Forest& forest = model.forest;
  forest.feature_count = 3;
  forest.trees = {{0, 2, 0, 3}};
  forest.feature = {1, 2};
  forest.threshold = {64.5, 0};
  forest.left = {~0, ~1};
  forest.right = {1, ~2};
  forest.default_left = {0, 0};
  forest.missing = {Forest::Missing::kNone, Forest::Missing::kCategorical};
  forest.leaf_value = {left_value, 2, 3};
  forest.categories = {.end = {1}, .words = {0b1010}};
  return model;
}

ModelDirectory sample_directory() {
  ModelDirectory models;
  models.op_type = "gemm_universal";
  models.dtype = "fp8";
  models.arch = "gfx950";
  models.feature_names = {"M", "tile", "pipeline"};
  models.categorical_features = {"pipeline"};
  models.targets = {{"tflops", sample_model(1), true}, {"latency", sample_model(0.25), false}};
  models.feature_engine = "GemmUniversalFeatureEngine";
  models.encoding_version_json = "2";
  models.hardware_json = R"({"num_cus":256})";
  models.params_json = R"({"num_leaves":127,"objective":"regression"})";
  models.manifest_json = R"({"data_rows":1526040,"timestamp":"2026-03-02"})";
  return models;
}

class ModelDirectoryTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return folder_ / "models"; }
  void write(const ModelDirectory& models = sample_directory(),
             ModelCompression compression = ModelCompression::kNone) {
    const Status status = write_model_directory(models, path(), compression);
    ASSERT_TRUE(status) << status.error().message;
  }
  // Replaces the first occurrence of `from` in a file.
  void edit(const std::string& file, std::string_view from, std::string_view to) {
    std::string text = read_text_file(path() / file).value();
    const std::size_t position = text.find(from);
    ASSERT_NE(position, std::string::npos) << from;
    text.replace(position, from.size(), to);
    ASSERT_TRUE(write_text_file_atomically(path() / file, text));
  }
  void expect_refused(ErrorCode code, std::string_view reason) {
    const auto models = read_model_directory(path());
    ASSERT_FALSE(models.has_value()) << reason;
    EXPECT_EQ(models.error().code, code) << models.error().message;
    EXPECT_NE(models.error().message.find(reason), std::string::npos)
        << models.error().message << " lacks " << reason;
    EXPECT_EQ(models.error().message.find('\n'), std::string::npos);
  }
  void spec(const std::string& text) {
    ASSERT_TRUE(write_text_file_atomically(path() / "feature_spec.json", text));
  }

 private:
  testing_support::TemporaryFolder folder_;
};

TEST_F(ModelDirectoryTest, IsReadBackEqualPlainAndZipped) {
  ModelDirectory sample = sample_directory();
  sample.direction = "bwd_data";
  for (const ModelCompression compression :
       {ModelCompression::kNone, ModelCompression::kGzip, ModelCompression::kBoth}) {
    write(sample, compression);
    const auto models = read_model_directory(path());
    ASSERT_TRUE(models.has_value()) << models.error().message;
    EXPECT_EQ(*models, sample);
    // The file of the other form is removed.
    EXPECT_EQ(std::filesystem::exists(path() / "model_tflops.lgbm"),
              compression != ModelCompression::kGzip);
    EXPECT_EQ(std::filesystem::exists(path() / "model_tflops.lgbm.gz"),
              compression != ModelCompression::kNone);
  }
}

TEST_F(ModelDirectoryTest, DocumentsAloneAreThoseOfTheWholeAndLeaveNoModel) {
  write();
  const std::string spec = read_text_file(path() / "feature_spec.json").value();
  const std::string manifest = read_text_file(path() / "train_manifest.json").value();
  const Status status = write_model_documents(sample_directory(), path());
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(read_text_file(path() / "feature_spec.json").value(), spec);
  EXPECT_EQ(read_text_file(path() / "train_manifest.json").value(), manifest);
  expect_refused(ErrorCode::kNotFound, "model_tflops.lgbm");
  ModelDirectory without_targets = sample_directory();
  without_targets.targets.clear();
  EXPECT_EQ(write_model_documents(without_targets, path()).error().code,
            ErrorCode::kInvalidArgument);
}

TEST_F(ModelDirectoryTest, TheDirectionMayStandInTheOperationOrTheFoldersName) {
  ModelDirectory sample = sample_directory();
  sample.direction.clear();
  struct Case {
    const char* operation;
    const char* folder;
    const char* direction;
  };
  for (const Case& given : {Case{"grouped_conv", "grouped_conv_bwd_data_bf16_gfx950", "bwd_data"},
                            Case{"grouped_conv", "grouped_conv_bwd_weight", "bwd_weight"},
                            Case{"grouped_conv_forward", "grouped_conv_bwd_data_x", "forward"},
                            Case{"grouped_conv", "grouped_conv_sideways", ""},
                            Case{"gemm_universal", "grouped_conv_bwd_data_bf16_gfx950", ""}}) {
    sample.op_type = given.operation;
    const std::filesystem::path folder = path() / given.folder;
    ASSERT_TRUE(write_model_directory(sample, folder));
    for (const std::filesystem::path& named : {folder, folder / ""}) {
      EXPECT_EQ(read_model_directory(named)->direction, given.direction) << named;
      EXPECT_EQ(read_model_documents(named)->direction, given.direction) << named;
    }
  }
}

TEST_F(ModelDirectoryTest, DocumentsAreReadWhereTheModelsAreMissing) {
  write();
  ASSERT_TRUE(write_model_documents(sample_directory(), path()));
  EXPECT_FALSE(read_model_directory(path()));
  const auto documents = read_model_documents(path());
  ASSERT_TRUE(documents) << documents.error().message;
  EXPECT_TRUE(documents->targets.empty());
  EXPECT_EQ(documents->feature_names, sample_directory().feature_names);
  EXPECT_EQ(documents->dtype, sample_directory().dtype);
}

TEST_F(ModelDirectoryTest, TakesTheLogarithmBack) {
  write();
  const auto models = read_model_directory(path());
  ASSERT_TRUE(models.has_value());
  const std::array row{1.0, 128.0, 3.0};
  EXPECT_EQ(predict(models->targets[0], row), std::expm1(2.0));
  EXPECT_EQ(predict(models->targets[1], row), 2.0);
}

TEST_F(ModelDirectoryTest, ReadsSpecsOfFirstVersions) {
  write();
  spec(R"({"op_type": "conv", "dtype": "bf16", "arch": "gfx950",
           "feature_names": ["M", "tile", "pipeline"]})");
  std::filesystem::remove(path() / "train_manifest.json");
  const auto models = read_model_directory(path());
  ASSERT_TRUE(models.has_value()) << models.error().message;
  ASSERT_EQ(models->targets.size(), 2U);
  EXPECT_EQ(models->targets[0].name, "latency");
  EXPECT_EQ(models->targets[1].name, "tflops");
  EXPECT_FALSE(models->targets[1].log1p);
  EXPECT_FALSE(models->lists_log_targets);
  EXPECT_EQ(models->manifest_json, "");
}

TEST_F(ModelDirectoryTest, AcceptsModelsWithoutNames) {
  ModelDirectory models = sample_directory();
  models.targets[0].model.feature_names.clear();
  write(models);
  const auto read = read_model_directory(path());
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, models);
}

TEST_F(ModelDirectoryTest, RefusesWhatDoesNotFitTogether) {
  expect_refused(ErrorCode::kNotFound, "feature_spec.json");
  write();
  edit("feature_spec.json", "\"tile\"", "\"tile_m\"");
  expect_refused(ErrorCode::kMismatch,
                 "feature 1 is 'tile' in model_tflops.lgbm and 'tile_m' in feature_spec.json");
  write();
  edit("feature_spec.json", "\"tile\",", "");
  expect_refused(ErrorCode::kMismatch, "model_tflops.lgbm has 3 features, feature_spec.json 2");
  write();
  edit("feature_spec.json", "\"tile\"", "\"M\"");
  expect_refused(ErrorCode::kCorrupt, "feature 'M' twice");
  write();
  edit("feature_spec.json", "\"categorical_features\": [\n    \"pipeline\"",
       "\"categorical_features\": [\n    \"M\"");
  expect_refused(ErrorCode::kMismatch, "splits 'pipeline' by category");
  write();
  edit("feature_spec.json", "\"categorical_features\": [\n    \"pipeline\"",
       "\"categorical_features\": [\n    \"other\"");
  expect_refused(ErrorCode::kMismatch, "'other' is not among feature_names");
  write();
  edit("feature_spec.json", "\"log_targets\": [\n    \"tflops\"",
       "\"log_targets\": [\n    \"bandwidth\"");
  expect_refused(ErrorCode::kMismatch, "log target 'bandwidth'");
  write();
  std::filesystem::remove(path() / "model_latency.lgbm");
  expect_refused(ErrorCode::kNotFound, "neither model_latency.lgbm nor model_latency.lgbm.gz");
}

TEST_F(ModelDirectoryTest, RefusesDamagedFiles) {
  write();
  spec("[1, 2]");
  expect_refused(ErrorCode::kCorrupt, "feature_spec.json is not a JSON object");
  spec("{\"feature_names\": \"M\"}");
  expect_refused(ErrorCode::kCorrupt, "'feature_names' is not a list of texts");
  spec("{\"feature_names\": [\"M\", 2]}");
  expect_refused(ErrorCode::kCorrupt, "'feature_names' is not a list of texts");
  spec("{}");
  expect_refused(ErrorCode::kCorrupt, "no feature_names");
  spec(R"({"feature_names": ["M"], "targets": ["../tflops"]})");
  expect_refused(ErrorCode::kCorrupt, "'../tflops' is not the name of a target");
  spec(R"({"feature_names": ["M"], "targets": []})");
  expect_refused(ErrorCode::kNotFound, "there is no model");
  write();
  ASSERT_TRUE(write_text_file_atomically(path() / "train_manifest.json", "{\"data_rows\": "));
  expect_refused(ErrorCode::kCorrupt, "train_manifest.json");
}

TEST_F(ModelDirectoryTest, RefusesEveryTruncation) {
  for (const ModelCompression compression : {ModelCompression::kNone, ModelCompression::kGzip}) {
    write(sample_directory(), compression);
    for (const std::string file :
         {"feature_spec.json", compression == ModelCompression::kGzip ? "model_latency.lgbm.gz"
                                                                      : "model_latency.lgbm"}) {
      const std::string whole = read_text_file(path() / file).value();
      // Truncation after the last relevant line goes unnoticed, and does no harm.
      const std::size_t end =
          std::min({whole.size(), whole.find("end of trees"), whole.find_last_of('}')});
      for (std::size_t size = 0; size < end; size += 1 + size / 40) {
        ASSERT_TRUE(write_text_file_atomically(path() / file, whole.substr(0, size)));
        EXPECT_FALSE(read_model_directory(path()).has_value()) << file << ", " << size;
      }
      ASSERT_TRUE(write_text_file_atomically(path() / file, whole));
    }
    EXPECT_TRUE(read_model_directory(path()).has_value());
  }
}

struct Damage {
  const char* what;
  std::function<void(ModelDirectory&)> apply;
};

TEST_F(ModelDirectoryTest, WritesNothingThatItWouldNotRead) {
  const std::array damages{
      Damage{"no target", [](ModelDirectory& m) { m.targets.clear(); }},
      Damage{"no names", [](ModelDirectory& m) { m.feature_names.clear(); }},
      Damage{"path as target", [](ModelDirectory& m) { m.targets[0].name = "../x"; }},
      Damage{"target twice", [](ModelDirectory& m) { m.targets[1].name = "tflops"; }},
      Damage{"other names", [](ModelDirectory& m) { m.feature_names[0] = "N"; }},
      Damage{"unlisted category", [](ModelDirectory& m) { m.categorical_features.clear(); }},
      Damage{"hidden logarithm", [](ModelDirectory& m) { m.lists_log_targets = false; }},
      Damage{"no JSON", [](ModelDirectory& m) { m.params_json = "{"; }},
      Damage{"no manifest", [](ModelDirectory& m) { m.manifest_json = "["; }},
      Damage{"invalid forest", [](ModelDirectory& m) { m.targets[1].model.forest.left[0] = 0; }}};
  for (const Damage& damage : damages) {
    ModelDirectory models = sample_directory();
    damage.apply(models);
    EXPECT_FALSE(write_model_directory(models, path())) << damage.what;
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace foretune
