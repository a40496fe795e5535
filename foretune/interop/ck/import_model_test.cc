// Models that LightGBM itself trained on the features of the tables that reproduce foreign engines.
// Compares our predictions with LightGBM's on thousands of rows.
#include "foretune/interop/ck/import_model.h"

#include <LightGBM/c_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/features/testing/foreign_row.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/ck/testing/foreign_samples.h"
#include "foretune/interop/ck/testing/lightgbm_predict.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/train/trainer.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/known_spaces.h"

namespace foretune {
namespace {

struct ForeignCase {
  const char* table;
  ProblemType type;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name.
void PrintTo(const ForeignCase& given, std::ostream* out) { *out << given.table; }

double flops_of(const Problem& problem) {
  return problem.type() == kConvProblem ? ConvProblem::from(problem)->flops()
                                        : GemmProblem::from(problem)->flops();
}

// Takes 0.2 us for each wave, scaled by the root of the tile's work.
double sample_ns(const Problem& problem, const Config& config) {
  const double tile = 2.0 * config.words[0] * config.words[1] * config.words[2];
  const double waves = std::ceil(flops_of(problem) / tile / 256 / 40);
  return 2000 + 200 * waves * std::sqrt(tile / 1e5) + config.words[0];
}

// A data set, a LightGBM model of its rates, and the directory that holds it.
class ForeignModel : public testing::TestWithParam<ForeignCase> {
 protected:
  static constexpr int kProblems = 150;

  void SetUp() override {
    const ForeignCase& given = GetParam();
    table_ = find_feature_table(given.table).value();
    spec_ = sample_foreign_spec(*table_, given.type);
    make_data(given.type);
    train();
    write();
  }
  void TearDown() override {
    LGBM_BoosterFree(booster_);
    LGBM_DatasetFree(data_);
  }

  void make_data(ProblemType type) {
    DatasetHeader header;
    header.family = "recorded";
    header.problem_type = type;
    header.config_schema = type == kConvProblem ? ck_grouped_conv_schema() : ck_gemm_schema();
    header.fingerprint = known_device("gfx950").value();
    header.space_text = type == kConvProblem ? "" : known_space("ck-gemm-gfx950")->text();
    dataset_ = std::make_unique<Dataset>(header);
    Rng rng(11);
    for (int i = 0; i < kProblems; ++i) {
      const Problem problem = sample_foreign_problem(type, rng);
      for (const std::string& name : sample_kernels(type)) {
        const Config config = type == kConvProblem ? parse_ck_conv_name(name)->config
                                                   : parse_ck_gemm_name(name)->config;
        Measurement measurement{.problem = problem, .config = config, .context = {}, .metrics = {}};
        measurement.metrics.emplace_back(kTimeNs, sample_ns(problem, config), 0.0, 1U);
        dataset_->add(measurement);
        add_row(problem, config);
      }
    }
  }

  void add_row(const Problem& problem, const Config& config) {
    std::vector<double> row(table_->columns().size());
    foreign_row(*table_, problem, known_device("ck-gfx950")->hardware, config, row);
    rows_.insert(rows_.end(), row.begin(), row.end());
    const double tflops = flops_of(problem) / sample_ns(problem, config) * 1e-3;
    labels_.push_back(static_cast<float>(std::log1p(tflops)));
  }

  void train() {
    std::string parameters =
        "objective=regression num_leaves=31 min_data_in_leaf=5 num_threads=1 verbosity=-1 "
        "deterministic=true force_row_wise=true";
    std::string categories;
    std::vector<const char*> names;
    for (std::size_t i = 0; i < spec_.feature_names.size(); ++i) {
      names.push_back(spec_.feature_names[i].c_str());
      const auto& listed = spec_.categorical_features;
      if (std::find(listed.begin(), listed.end(), spec_.feature_names[i]) != listed.end()) {
        categories += concat(categories.empty() ? " categorical_feature=" : ",", i);
      }
    }
    parameters += categories;
    check_lightgbm(LGBM_DatasetCreateFromMat(
        rows_.data(), C_API_DTYPE_FLOAT64, static_cast<std::int32_t>(labels_.size()),
        static_cast<std::int32_t>(names.size()), 1, parameters.c_str(), nullptr, &data_));
    check_lightgbm(
        LGBM_DatasetSetFeatureNames(data_, names.data(), static_cast<int>(names.size())));
    check_lightgbm(LGBM_DatasetSetField(data_, "label", labels_.data(),
                                        static_cast<int>(labels_.size()), C_API_DTYPE_FLOAT32));
    check_lightgbm(LGBM_BoosterCreate(data_, parameters.c_str(), &booster_));
    int finished = 0;
    for (int i = 0; i < 40 && finished == 0; ++i) {
      check_lightgbm(LGBM_BoosterUpdateOneIter(booster_, &finished));
    }
  }

  void write() {
    ASSERT_TRUE(std::filesystem::create_directories(folder()));
    check_lightgbm(
        LGBM_BoosterSaveModel(booster_, 0, -1, 0, (folder() / "model_tflops.lgbm").c_str()));
    const nlohmann::json spec = {{"op_type", spec_.op_type},
                                 {"dtype", spec_.dtype},
                                 {"arch", spec_.arch},
                                 {"feature_names", spec_.feature_names},
                                 {"categorical_features", spec_.categorical_features},
                                 {"targets", {"tflops"}},
                                 {"log_targets", {"tflops"}}};
    ASSERT_TRUE(write_text_file_atomically(folder() / "feature_spec.json", spec.dump()));
  }

  [[nodiscard]] std::filesystem::path folder() const { return folder_ / "models"; }

  // LightGBM's own prediction, before expm1.
  [[nodiscard]] double raw(const Problem& problem, const Config& config) const {
    std::vector<double> row(table_->columns().size());
    foreign_row(*table_, problem, known_device("ck-gfx950")->hardware, config, row);
    return lightgbm_prediction(booster_, row);
  }

  const FeatureTable* table_ = nullptr;
  ModelDirectory spec_;
  std::unique_ptr<Dataset> dataset_;
  std::vector<double> rows_;
  std::vector<float> labels_;
  DatasetHandle data_ = nullptr;
  BoosterHandle booster_ = nullptr;
  testing_support::TemporaryFolder folder_;
};

TEST_P(ForeignModel, PredictsWhatLightGbmPredicts) {
  const auto models = ForeignModels::open(folder());
  ASSERT_TRUE(models) << models.error().message;
  // The 55 features of the first version are among the 72 of the second.
  ASSERT_EQ(models->table().name(), GetParam().table);
  const ModelDirectory::Target* target = models->find_target("tflops").value();
  Rng rng(5);
  std::size_t rows = 0;
  for (int i = 0; i < 200; ++i) {
    const Problem problem = sample_foreign_problem(GetParam().type, rng);
    for (const std::string& name : sample_kernels(GetParam().type)) {
      const Config config = models->parse_kernel(name).value();
      ASSERT_EQ(models->predict(*target, problem, config).value(), std::expm1(raw(problem, config)))
          << problem.text() << " " << name;
      ++rows;
    }
  }
  EXPECT_EQ(rows, 4800U);
}

TEST_P(ForeignModel, ScoresAndPicksAsLightGbmOrders) {
  const auto models = ForeignModels::open(folder());
  ASSERT_TRUE(models) << models.error().message;
  const auto model = import_model(*models, *dataset_, {});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->pool.size(), sample_kernels(GetParam().type).size());
  EXPECT_EQ(model->target, "tflops");
  const double factor = nlohmann::json::parse(model->card_json)["score_factor"];
  // Within a problem ln(time) falls by about 1 when ln(1 + TFLOPS) grows by 1.
  EXPECT_LT(factor, -0.5);
  EXPECT_GT(factor, -4);
  // The model file as a selector reads it.
  const auto read = parse_model(model_bytes(*model));
  ASSERT_TRUE(read) << read.error().message;
  const auto scorer = make_scorer(*read);
  ASSERT_TRUE(scorer) << scorer.error().message;
  const auto pool = (*scorer)->prepare(ConfigList(read->pool), read->fingerprint.hardware);
  ASSERT_TRUE(pool) << pool.error().message;
  std::vector<std::byte> workspace((*pool)->workspace_bytes());
  std::vector<double> scores(read->pool.size());
  Rng rng(6);
  for (int i = 0; i < 200; ++i) {
    const Problem problem = sample_foreign_problem(GetParam().type, rng);
    (*pool)->score(problem, workspace, scores, {});
    for (std::size_t candidate = 0; candidate < scores.size(); ++candidate) {
      const double expected = factor * raw(problem, read->pool[candidate]);
      ASSERT_NEAR(scores[candidate], expected, 1e-12 * (1 + std::abs(expected)));
    }
  }
}

TEST_P(ForeignModel, NeedsNoDataWhenKernelsAreNamed) {
  const auto models = ForeignModels::open(folder());
  ASSERT_TRUE(models) << models.error().message;
  std::vector<std::string> kernels = sample_kernels(GetParam().type);
  kernels.push_back(kernels.front());
  const auto model = import_model(*models, kernels, "ours", {});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->pool.size(), kernels.size() - 1);
  EXPECT_EQ(model->family, "ours");
  // The rules are known for the architecture, under any name of the directory for it.
  EXPECT_EQ(model->space_text.find("matrix instruction") != std::string::npos,
            GetParam().type == kGemmProblem);
  ModelDirectory by_name = models->directory();
  by_name.arch = "AMD Instinct MI355X";
  EXPECT_EQ(import_model(*ForeignModels::create(by_name), kernels, "ours", {})->space_text,
            model->space_text);
  EXPECT_TRUE(model->portfolio.empty());
  EXPECT_EQ(model->problem_range.front().second, std::numeric_limits<double>::max());
  EXPECT_TRUE(parse_model(model_bytes(*model)));
  EXPECT_EQ(import_model(*models, std::vector<std::string>(), "ours", {}).error().code,
            ErrorCode::kInvalidArgument);
  kernels.push_back("no_kernel");
  EXPECT_NE(import_model(*models, kernels, "ours", {}).error().message.find("'no_kernel'"),
            std::string::npos);
}

// Our training continues from the trees that were grown elsewhere.
TEST_P(ForeignModel, CanBeContinued) {
  const auto models = ForeignModels::open(folder());
  ASSERT_TRUE(models) << models.error().message;
  const auto model = import_model(*models, *dataset_, {});
  ASSERT_TRUE(model) << model.error().message;
  TrainOptions options;
  options.feature_table = GetParam().table;
  options.target = Target::kTflops;
  options.folds = 0;
  options.gbdt.threads = 1;
  options.warm_start = &*model;
  options.warm_start_trees = 5;
  Dataset data = *dataset_;
  data.mutable_header().fingerprint = models->fingerprint();
  const auto continued = train_gbdt(data, options);
  ASSERT_TRUE(continued) << continued.error().message;
  EXPECT_EQ(forests_of(continued->model)[0].trees.size(), forests_of(*model)[0].trees.size() + 5);
}

TEST_P(ForeignModel, SaysWhatDiffersFromTheData) {
  const auto models = ForeignModels::open(folder());
  ASSERT_TRUE(models) << models.error().message;
  const auto expect_refused = [&](const Dataset& dataset, const ImportOptions& options,
                                  ErrorCode code, std::string_view reason) {
    const auto model = import_model(*models, dataset, options);
    ASSERT_FALSE(model) << reason;
    EXPECT_EQ(model.error().code, code) << model.error().message;
    EXPECT_NE(model.error().message.find(reason), std::string::npos) << model.error().message;
  };
  expect_refused(*dataset_, {.target = "latency"}, ErrorCode::kNotFound, "there are tflops");
  Dataset other = *dataset_;
  other.mutable_header().role = DatasetRole::kValidation;
  expect_refused(other, {}, ErrorCode::kMismatch, "validation set");
  other = *dataset_;
  other.mutable_header().fingerprint = known_device("gfx90a").value();
  expect_refused(other, {}, ErrorCode::kMismatch, "measured on gfx90a");
  other = *dataset_;
  other.mutable_header().config_schema.name = "another";
  expect_refused(other, {}, ErrorCode::kMismatch, "configs of another");
  other = *dataset_;
  other.mutable_header().problem_type =
      GetParam().type == kConvProblem ? kGemmProblem : kConvProblem;
  expect_refused(other, {}, ErrorCode::kMismatch, "problems");

  ModelDirectory directory = models->directory();
  directory.dtype = "fp8";
  auto fp8 = ForeignModels::create(directory);
  ASSERT_TRUE(fp8);
  EXPECT_NE(import_model(*fp8, *dataset_, {}).error().message.find("for fp8, of which"),
            std::string::npos);
  directory = models->directory();
  directory.targets[0].name = "time";
  auto time = ForeignModels::create(directory);
  ASSERT_TRUE(time);
  EXPECT_EQ(import_model(*time, *dataset_, {.target = "time"}).error().code,
            ErrorCode::kUnsupported);
}

// The rules use the device's numbers, the features those that the engine assumed for it.
TEST_P(ForeignModel, RulesSpeakOfTheDevice) {
  const auto models = ForeignModels::open(folder());
  ASSERT_TRUE(models) << models.error().message;
  const auto model = import_model(*models, *dataset_, {});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->space_text.find("hw."), std::string::npos);
  EXPECT_NE(model->space_text.find("163840"), std::string::npos);
  EXPECT_EQ(model->fingerprint.hardware.get(HardwareValue::kSharedBytesPerBlock), 65536);
}

INSTANTIATE_TEST_SUITE_P(Tables, ForeignModel,
                         testing::Values(ForeignCase{"gemm-ck-55", kGemmProblem},
                                         ForeignCase{"gemm-ck-72", kGemmProblem},
                                         ForeignCase{"grouped-conv-ck-83", kConvProblem},
                                         ForeignCase{"grouped-conv-ck-91", kConvProblem},
                                         ForeignCase{"grouped-conv-ck-97", kConvProblem}),
                         [](const auto& given) {
                           std::string name = given.param.table;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace foretune
