#include "foretune/interop/ck/foreign_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/ck/testing/foreign_samples.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

// One split of `feature` at `threshold`: 1 on the left, 2 on the right.
TreeModel one_split(const ModelDirectory& directory, std::string_view feature, double threshold) {
  TreeModel model;
  model.feature_names = directory.feature_names;
  const auto found =
      std::find(directory.feature_names.begin(), directory.feature_names.end(), feature);
  Forest& forest = model.forest;
  forest.feature_count = static_cast<std::uint32_t>(directory.feature_names.size());
  forest.trees = {{0, 1, 0, 2}};
  forest.feature = {static_cast<std::uint32_t>(found - directory.feature_names.begin())};
  forest.threshold = {threshold};
  forest.left = {~0};
  forest.right = {~1};
  forest.default_left = {0};
  forest.missing = {Forest::Missing::kNone};
  forest.leaf_value = {1, 2};
  return model;
}

ModelDirectory gemm_directory() {
  ModelDirectory out = sample_foreign_spec(**find_feature_table("gemm-ck-55"), kGemmProblem);
  out.targets = {{"tflops", one_split(out, "tile_m", 100), true},
                 {"latency", one_split(out, "num_tiles_m", 3.5), false}};
  return out;
}

void expect_refused(const ModelDirectory& directory, ErrorCode code, std::string_view reason) {
  const auto models = ForeignModels::create(directory);
  ASSERT_FALSE(models) << reason;
  EXPECT_EQ(models.error().code, code) << models.error().message;
  EXPECT_NE(models.error().message.find(reason), std::string::npos) << models.error().message;
}

TEST(ForeignModels, PredictsInTheUnitOfTheTarget) {
  const auto models = ForeignModels::create(gemm_directory());
  ASSERT_TRUE(models) << models.error().message;
  EXPECT_EQ(models->table().name(), "gemm-ck-55");
  EXPECT_EQ(models->fingerprint().hardware, known_device("ck-gfx950")->hardware);
  const Problem problem = Problem::parse("gemm m=256 n=128 k=64 dtype=bf16").value();
  const auto small = models->parse_kernel(sample_kernels(kGemmProblem)[0]);  // 32 rows
  const auto large = models->parse_kernel(sample_kernels(kGemmProblem)[6]);  // 256 rows
  ASSERT_TRUE(small && large);
  const ModelDirectory::Target* tflops = models->find_target("tflops").value();
  EXPECT_DOUBLE_EQ(models->predict(*tflops, problem, *small).value(), std::expm1(1.0));
  EXPECT_DOUBLE_EQ(models->predict(*tflops, problem, *large).value(), std::expm1(2.0));
  const ModelDirectory::Target* latency = models->find_target("latency").value();
  EXPECT_EQ(models->predict(*latency, problem, *small).value(), 2.0);  // 8 tiles
  EXPECT_EQ(models->predict(*latency, problem, *large).value(), 1.0);  // 1 tile
}

TEST(ForeignModels, TakesTheFirstTableThatHasAllNames) {
  for (const auto& [name, type] : {std::pair{"gemm-ck-55", kGemmProblem},
                                   {"gemm-ck-72", kGemmProblem},
                                   {"grouped-conv-ck-83", kConvProblem},
                                   {"grouped-conv-ck-91", kConvProblem},
                                   {"grouped-conv-ck-97", kConvProblem}}) {
    const auto models =
        ForeignModels::create(sample_foreign_spec(**find_feature_table(name), type));
    ASSERT_TRUE(models) << models.error().message;
    EXPECT_EQ(models->table().name(), name);
    EXPECT_EQ(models->problem_type(), type);
  }
}

// The directory that train --write-lightgbm writes names our table.
TEST(ForeignModels, TakesATableOfOursWhenTheSpecNamesIt) {
  ModelDirectory directory;
  directory.op_type = "gemm";
  directory.arch = "AMD Instinct MI355X";
  directory.feature_engine = "gemm-ck";
  for (const FeatureInfo& column : (*find_feature_table("gemm-ck"))->columns()) {
    directory.feature_names.emplace_back(column.name);
  }
  const auto models = ForeignModels::create(directory);
  ASSERT_TRUE(models) << models.error().message;
  EXPECT_EQ(models->table().name(), "gemm-ck");
  EXPECT_EQ(models->fingerprint().device, "AMD Instinct MI355X");
  directory.feature_engine.clear();
  expect_refused(directory, ErrorCode::kUnsupported, "has no column");
}

TEST(ForeignModels, NumbersOfTheSpecReplaceThoseOfTheProfile) {
  ModelDirectory directory = gemm_directory();
  directory.targets = {{"tflops", one_split(directory, "cu_utilization", 0.5), false}};
  const Problem problem = Problem::parse("gemm m=2048 n=512 k=64 dtype=bf16").value();
  const auto predicted = [&]() -> double {
    const auto models = ForeignModels::create(directory);
    const Config config = models->parse_kernel(sample_kernels(kGemmProblem)[6]).value();
    return models->predict(models->directory().targets[0], problem, config).value();
  };
  // 8 x 8 tiles on 256 units, on 64 units, and on those of an unknown device.
  EXPECT_EQ(predicted(), 1);
  directory.hardware_json = R"({"num_cus": 64})";
  EXPECT_EQ(predicted(), 2);
  directory.arch = "gfx0";
  EXPECT_EQ(predicted(), 2);
  EXPECT_EQ(ForeignModels::create(directory)->fingerprint().isa, "gfx0");
  directory.hardware_json = R"({"num_cus": "64"})";
  expect_refused(directory, ErrorCode::kCorrupt, "num_cus");
}

// They do not take the numbers that an engine of others assumes for the architecture.
TEST(ForeignModels, OurFeaturesTakeTheDeviceThatTheSpecDescribes) {
  ModelDirectory directory;
  directory.op_type = "gemm_universal";
  directory.arch = "gfx950";
  directory.feature_engine = "gemm-ck";
  for (const FeatureInfo& column : (*find_feature_table("gemm-ck"))->columns()) {
    directory.feature_names.emplace_back(column.name);
  }
  EXPECT_EQ(ForeignModels::create(directory)->fingerprint(), known_device("gfx950").value());
  directory.hardware_json =
      R"({"device": "AMD Instinct MI355X", "facts": "cores=128 shared_bytes_per_block=163840"})";
  const Fingerprint described = ForeignModels::create(directory)->fingerprint();
  EXPECT_EQ(described.device, "AMD Instinct MI355X");
  EXPECT_EQ(described.isa, "gfx950");
  EXPECT_EQ(described.hardware.get(HardwareValue::kCores), 128);
}

TEST(ForeignModels, SaysWhatDoesNotMatchByName) {
  ModelDirectory directory = gemm_directory();
  directory.feature_names[3] = "phase_of_the_moon";
  expect_refused(directory, ErrorCode::kUnsupported, "'phase_of_the_moon'");
  directory = gemm_directory();
  directory.arch = "gfx0";
  expect_refused(directory, ErrorCode::kNotFound, "gfx0");

  const auto models = ForeignModels::create(gemm_directory());
  ASSERT_TRUE(models);
  EXPECT_NE(models->find_target("energy").error().message.find("tflops, latency"),
            std::string::npos);
  EXPECT_NE(models->parse_kernel("gemm_universal_x").error().message.find("'gemm_universal_x'"),
            std::string::npos);
  std::string fp8 = sample_kernels(kGemmProblem)[0];
  fp8.replace(fp8.find("bf16"), 4, "fp8");
  EXPECT_NE(models->parse_kernel(fp8).error().message.find("is of fp8, the models are for bf16"),
            std::string::npos);
  const ModelDirectory::Target* tflops = models->find_target("tflops").value();
  const Config kernel = models->parse_kernel(sample_kernels(kGemmProblem)[0]).value();
  Rng rng(1);
  EXPECT_EQ(
      models->predict(*tflops, sample_foreign_problem(kConvProblem, rng), kernel).error().code,
      ErrorCode::kMismatch);
  const Problem problem = sample_foreign_problem(kGemmProblem, rng);
  EXPECT_EQ(models->predict(*tflops, problem, Config()).error().code, ErrorCode::kMismatch);
}

TEST(ForeignModels, RenumbersTheFeaturesOfTheForest) {
  const auto models = ForeignModels::create(gemm_directory());
  ASSERT_TRUE(models);
  const Forest forest = models->forest_of(models->directory().targets[0]);
  ASSERT_TRUE(forest.validate());
  EXPECT_EQ(forest.feature_count, 55U);
  EXPECT_EQ(models->table().columns()[forest.feature[0]].name, "tile_m");
}

}  // namespace
}  // namespace foretune
