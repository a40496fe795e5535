// Compares predictions with LightGBM's own, bit by bit: forests that it trained, rows that it never
// saw.
#include <LightGBM/c_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/trees/lightgbm_text.h"
#include "foretune/model/forest/forest_engine.h"
#include "foretune/model/forest/testing/forest_samples.h"

namespace foretune {
namespace {

constexpr int kFeatures = 8;
constexpr std::size_t kRows = 35000;       // times 29 cases: a million
constexpr std::size_t kEngineRows = 3000;  // of them, on every instruction set

enum class Label { kReal, kPositive, kBit, kUnit, kGrade, kConstant };

struct OracleCase {
  const char* name;
  const char* parameters;
  bool nan_in_data = false;
  Label label = Label::kReal;
};

constexpr const char* kCategories =
    "categorical_feature=6,7 min_data_per_group=5 cat_smooth=1 max_cat_to_onehot=3 ";

void check(int result) { ASSERT_EQ(result, 0) << LGBM_GetLastError(); }

// Returns values like those of real features: continuous, few levels, constant, with zeros, with
// huge ones. The last two can be categories.
double training_value(int feature, bool nan_in_data, Rng& rng) {
  if (nan_in_data && rng.below(6) == 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  switch (feature) {
    case 0:
      return rng.normal();
    case 1:
      return static_cast<double>(rng.below(6)) - 2;
    case 2:
      return rng.below(3) == 0 ? 0.0 : rng.normal() * 1e6;
    case 3:
      return std::exp(4 * rng.normal());
    case 4:
      return rng.normal() * 1e-34;
    case 5:
      return 42;
    case 6:
      return static_cast<double>(rng.below(5));
    default:
      return static_cast<double>(rng.below(40) * rng.below(40));
  }
}

float label_of(Label kind, double value) {
  switch (kind) {
    case Label::kReal:
      return static_cast<float>(value);
    case Label::kPositive:
      return static_cast<float>(std::exp(0.3 * value));
    case Label::kBit:
      return value > 0 ? 1.0F : 0.0F;
    case Label::kUnit:
      return static_cast<float>(1 / (1 + std::exp(-value)));
    case Label::kGrade:
      return static_cast<float>(std::clamp(std::floor(value + 2), 0.0, 4.0));
    case Label::kConstant:
      return 2.5F;
  }
  return 0;
}

// Odd categories have an effect of their own, so that the trees have something to learn.
double effect(int feature, double value) {
  if (std::isnan(value)) {
    return 0.7;
  }
  if (feature >= 6) {
    return static_cast<int>(value) % 7 % 2 == 0 ? -0.5 : 0.9;
  }
  return std::tanh(value) * (feature % 3 - 1);
}

class Booster {
 public:
  Booster(const OracleCase& test, Rng& rng) {
    constexpr int kTrainingRows = 3000;
    std::vector<double> rows;
    std::vector<float> labels;
    for (int i = 0; i < kTrainingRows; ++i) {
      double label = 0.1 * rng.normal();
      for (int f = 0; f < kFeatures; ++f) {
        rows.push_back(training_value(f, test.nan_in_data, rng));
        label += effect(f, rows.back());
      }
      labels.push_back(label_of(test.label, label));
    }
    const std::string parameters =
        // The first value of a parameter counts.
        std::string(test.parameters) +
        " objective=regression num_leaves=31 min_data_in_leaf=3 num_threads=1 "
        "verbosity=-1 deterministic=true force_row_wise=true";
    check(LGBM_DatasetCreateFromMat(rows.data(), C_API_DTYPE_FLOAT64, kTrainingRows, kFeatures, 1,
                                    parameters.c_str(), nullptr, &dataset_));
    check(
        LGBM_DatasetSetField(dataset_, "label", labels.data(), kTrainingRows, C_API_DTYPE_FLOAT32));
    if (test.label == Label::kGrade) {
      const std::vector<std::int32_t> groups(kTrainingRows / 20, 20);
      check(LGBM_DatasetSetField(dataset_, "group", groups.data(), kTrainingRows / 20,
                                 C_API_DTYPE_INT32));
    }
    check(LGBM_BoosterCreate(dataset_, parameters.c_str(), &booster_));
    int finished = 0;
    for (int i = 0; i < 20 && finished == 0; ++i) {
      check(LGBM_BoosterUpdateOneIter(booster_, &finished));
    }
  }
  explicit Booster(const std::string& text) {
    int iterations = 0;
    check(LGBM_BoosterLoadModelFromString(text.c_str(), &iterations, &booster_));
  }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  ~Booster() {
    if (booster_ != nullptr) {
      LGBM_BoosterFree(booster_);
    }
    if (dataset_ != nullptr) {
      LGBM_DatasetFree(dataset_);
    }
  }

  std::string text() const {
    std::int64_t length = 0;
    std::vector<char> buffer(std::size_t{1} << 22U);
    check(LGBM_BoosterSaveModelToString(
        booster_, 0, -1, 0, static_cast<std::int64_t>(buffer.size()), &length, buffer.data()));
    EXPECT_LE(static_cast<std::size_t>(length), buffer.size());
    return buffer.data();
  }

  std::vector<double> predict(const std::vector<double>& rows) const {
    const auto count = static_cast<std::int32_t>(rows.size() / kFeatures);
    std::vector<double> out(static_cast<std::size_t>(count));
    std::int64_t length = 0;
    check(LGBM_BoosterPredictForMat(booster_, rows.data(), C_API_DTYPE_FLOAT64, count, kFeatures, 1,
                                    C_API_PREDICT_NORMAL, 0, -1, "num_threads=1", &length,
                                    out.data()));
    return out;
  }

 private:
  DatasetHandle dataset_ = nullptr;
  BoosterHandle booster_ = nullptr;
};

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// Returns numbers that are not valid categories, and the limits of an int.
double odd_category(Rng& rng) {
  constexpr std::array kOdd{-1.0,         -0.5,          -1e-300, 2147483647.0, 2147483648.0,
                            4294967296.0, -2147483649.0, 31.0,    32.0,         63.999};
  return rng.below(3) == 0 ? kOdd[rng.below(kOdd.size())]
                           : static_cast<double>(rng.between(-40, 2000)) / 2;
}

std::vector<double> random_rows(const Forest& forest, bool nan_in_data, Rng& rng) {
  std::vector<double> rows;
  for (std::size_t i = 0; i < kRows; ++i) {
    for (int f = 0; f < kFeatures; ++f) {
      const std::uint64_t draw = rng.below(6);
      if (draw == 0) {
        rows.push_back(sample_value({}, rng));
      } else if (draw == 1 && !forest.threshold.empty()) {
        rows.push_back(forest.threshold[rng.below(forest.threshold.size())]);
      } else if (draw == 2 && f >= 6) {
        rows.push_back(odd_category(rng));
      } else {
        rows.push_back(training_value(f, nan_in_data, rng));
      }
    }
  }
  return rows;
}

// Memory at an address that is a multiple of 64.
class Room {
 public:
  explicit Room(std::size_t bytes) : words_(bytes / 8 + 16) {}
  std::byte* get() {
    void* start = words_.data();
    std::size_t space = words_.size() * 8;
    return static_cast<std::byte*>(std::align(64, space - 64, start, space));
  }

 private:
  std::vector<std::uint64_t> words_;
};

// Features with categorical splits belong to the config, all others to problem and config.
void expect_engine_equals(const Forest& forest, const std::vector<double>& rows, CpuIsa isa) {
  std::vector<FeatureKind> kinds(kFeatures, FeatureKind::kInteraction);
  for (std::size_t node = 0; node < forest.feature.size(); ++node) {
    if (forest.is_categorical(node)) {
      kinds[forest.feature[node]] = FeatureKind::kConfig;
    }
  }
  std::vector<double> config_columns;
  for (std::size_t f = 0; f < kFeatures; ++f) {
    for (std::size_t i = 0; kinds[f] == FeatureKind::kConfig && i < kEngineRows; ++i) {
      config_columns.push_back(rows[i * kFeatures + f]);
    }
  }
  const auto engine = ForestEngine::create(forest, kinds, config_columns, kEngineRows, isa);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  Room codes((*engine)->codes_bytes());
  Room scratch((*engine)->scratch_bytes());
  (*engine)->begin(codes.get());
  for (std::size_t first = 0; first < kEngineRows; first += kEngineBlock) {
    const std::size_t count = std::min(kEngineBlock, kEngineRows - first);
    std::vector<double> columns;
    for (std::size_t f = 0; f < kFeatures; ++f) {
      for (std::size_t i = 0; kinds[f] == FeatureKind::kInteraction && i < count; ++i) {
        columns.push_back(rows[(first + i) * kFeatures + f]);
      }
    }
    (*engine)->add_chunk(codes.get(), first, count, columns.data(), count);
  }
  (*engine)->run(codes.get(), scratch.get(), {});
  std::size_t mismatches = 0;
  for (std::size_t i = 0; i < kEngineRows; ++i) {
    const std::span row = std::span(rows).subspan(i * kFeatures, kFeatures);
    mismatches +=
        same_bits((*engine)->sum(scratch.get(), i), predict_reference(forest, row)) ? 0U : 1U;
  }
  EXPECT_EQ(mismatches, 0U) << to_string(isa);
}

class LightgbmOracleTest : public testing::TestWithParam<OracleCase> {};

TEST_P(LightgbmOracleTest, PredictsWhatLightgbmPredictsToTheLastBit) {
  constexpr std::uint64_t kSeed = 77;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  const Booster booster(GetParam(), rng);
  const std::string text = booster.text();
  for (const std::string_view word : split_words(GetParam().parameters)) {
    if (word.substr(0, 10) == "objective=") {
      ASSERT_NE(text.find(concat('\n', word)), std::string::npos) << word;
    }
  }
  const auto model = parse_lightgbm_text(text);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const Forest& forest = model->forest;
  if (GetParam().label == Label::kConstant) {
    ASSERT_EQ(forest.trees.size(), 1U);
    ASSERT_EQ(forest.feature.size(), 0U);
  } else {
    ASSERT_GT(forest.feature.size(), 200U);
  }
  const bool categorical =
      std::string(GetParam().parameters).find("categorical_feature") != std::string::npos;
  EXPECT_EQ(forest.categories.size() > 0, categorical);

  const std::vector<double> rows = random_rows(forest, GetParam().nan_in_data, rng);
  const std::vector<double> expected = booster.predict(rows);
  std::size_t mismatches = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    const double actual = predict(*model, std::span(rows).subspan(i * kFeatures, kFeatures));
    mismatches += same_bits(actual, expected[i]) ? 0U : 1U;
  }
  EXPECT_EQ(mismatches, 0U);

  const auto written = to_lightgbm_text(*model);
  ASSERT_TRUE(written.has_value()) << written.error().message;
  const std::vector<double> reloaded = Booster(*written).predict(rows);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), reloaded.begin(), &same_bits));
  const auto again = parse_lightgbm_text(*written);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(*again, *model);

  for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa <= best_cpu_isa()) {
      expect_engine_equals(forest, rows, isa);
    }
  }
}

std::vector<OracleCase> oracle_cases() {
  static const std::string categories = kCategories;
  static const std::array joined{categories,
                                 categories + "zero_as_missing=true",
                                 categories + "use_missing=false",
                                 categories + "objective=poisson",
                                 categories +
                                     "boosting=rf bagging_fraction=0.6 "
                                     "bagging_freq=1",
                                 categories + "max_cat_to_onehot=100 objective=binary"};
  return {
      {"plain", ""},
      {"nan_is_missing", "", true},
      {"zero_is_missing", "zero_as_missing=true", true},
      {"nothing_is_missing", "use_missing=false", true},
      {"bagged", "bagging_fraction=0.5 bagging_freq=1"},
      {"many_bins", "max_bin=1000 num_leaves=200"},
      {"single_leaves", "", false, Label::kConstant},
      {"dart", "boosting=dart drop_rate=0.5", true},
      {"random_forest", "boosting=rf bagging_fraction=0.6 bagging_freq=1", true},
      {"root_of_the_target", "reg_sqrt=true", true},
      {"absolute_error", "objective=regression_l1", true},
      {"huber", "objective=huber", true},
      {"fair", "objective=fair", true},
      {"quantile_of_the_root", "objective=quantile alpha=0.3 reg_sqrt=true", true},
      {"mape", "objective=mape", true, Label::kPositive},
      {"gamma", "objective=gamma", true, Label::kPositive},
      {"tweedie", "objective=tweedie", true, Label::kPositive},
      {"binary", "objective=binary sigmoid=2", true, Label::kBit},
      {"cross_entropy", "objective=cross_entropy", true, Label::kUnit},
      {"cross_entropy_lambda", "objective=cross_entropy_lambda", true, Label::kUnit},
      {"lambdarank", "objective=lambdarank", true, Label::kGrade},
      {"rank_xendcg", "objective=rank_xendcg", true, Label::kGrade},
      {"categories", joined[0].c_str()},
      {"categories_and_nan", joined[0].c_str(), true},
      {"categories_and_zero_missing", joined[1].c_str(), true},
      {"categories_and_nothing_missing", joined[2].c_str(), true},
      {"categories_poisson", joined[3].c_str(), true, Label::kPositive},
      {"categories_random_forest", joined[4].c_str(), true},
      {"single_categories_binary", joined[5].c_str(), true, Label::kBit},
  };
}

INSTANTIATE_TEST_SUITE_P(Training, LightgbmOracleTest, testing::ValuesIn(oracle_cases()),
                         [](const testing::TestParamInfo<OracleCase>& test) {
                           return test.param.name;
                         });

}  // namespace
}  // namespace foretune
