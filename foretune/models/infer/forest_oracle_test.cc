// Predictions against LightGBM itself: forests it trained, rows it never saw, every bit.
#include <LightGBM/c_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "foretune/models/infer/forest.h"
#include "foretune/models/infer/forest_engine.h"
#include "foretune/models/infer/forest_samples.h"

namespace foretune {
namespace {

constexpr int kFeatures = 8;

struct OracleCase {
  const char* name;
  const char* parameters;
  bool nan_in_data;
};

// Values as features have them: continuous, few levels, constant, with zeros, with huge ones.
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
    default:
      return rng.uniform();
  }
}

class Booster {
 public:
  Booster(const OracleCase& test, Rng& rng) {
    constexpr int kRows = 3000;
    std::vector<double> rows;
    std::vector<float> labels;
    for (int i = 0; i < kRows; ++i) {
      double label = 0.1 * rng.normal();
      for (int f = 0; f < kFeatures; ++f) {
        rows.push_back(training_value(f, test.nan_in_data, rng));
        label += std::isnan(rows.back()) ? 0.7 : std::tanh(rows.back()) * (f % 3 - 1);
      }
      labels.push_back(static_cast<float>(label));
    }
    const std::string parameters =
        std::string(
            "objective=regression num_leaves=40 min_data_in_leaf=3 num_threads=1 "
            "verbosity=-1 deterministic=true force_row_wise=true ") +
        test.parameters;
    check(LGBM_DatasetCreateFromMat(rows.data(), C_API_DTYPE_FLOAT64, kRows, kFeatures, 1,
                                    parameters.c_str(), nullptr, &dataset_));
    check(LGBM_DatasetSetField(dataset_, "label", labels.data(), kRows, C_API_DTYPE_FLOAT32));
    check(LGBM_BoosterCreate(dataset_, parameters.c_str(), &booster_));
    for (int i = 0; i < 60; ++i) {
      int finished = 0;
      check(LGBM_BoosterUpdateOneIter(booster_, &finished));
    }
  }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  ~Booster() {
    LGBM_BoosterFree(booster_);
    LGBM_DatasetFree(dataset_);
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
  static void check(int result) { ASSERT_EQ(result, 0) << LGBM_GetLastError(); }
  DatasetHandle dataset_ = nullptr;
  BoosterHandle booster_ = nullptr;
};

class ForestOracleTest : public testing::TestWithParam<OracleCase> {};

TEST_P(ForestOracleTest, PredictsWhatLightgbmPredictsToTheLastBit) {
  constexpr std::uint64_t kSeed = 77;
  Rng rng(kSeed);
  const Booster booster(GetParam(), rng);
  const auto forest = parse_lightgbm_text(booster.text());
  ASSERT_TRUE(forest.has_value()) << forest.error().message;
  std::size_t splits = forest->feature.size();
  ASSERT_GT(splits, 500U);

  constexpr std::size_t kRows = 4000;
  std::vector<double> rows;
  for (std::size_t i = 0; i < kRows; ++i) {
    for (int f = 0; f < kFeatures; ++f) {
      const std::uint64_t draw = rng.below(4);
      // A threshold of this very forest now and then, or something hard.
      rows.push_back(draw == 0   ? sample_value({}, rng)
                     : draw == 1 ? forest->threshold[rng.below(splits)]
                                 : training_value(f, GetParam().nan_in_data, rng));
    }
  }
  const std::vector<double> expected = booster.predict(rows);
  const std::vector<FeatureKind> kinds(kFeatures, FeatureKind::kInteraction);
  for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa > best_cpu_isa()) {
      continue;
    }
    const auto engine = ForestEngine::create(*forest, kinds, {}, kRows, isa);
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    std::vector<std::uint64_t> codes((*engine)->codes_bytes() / 8 + 16);
    std::vector<std::uint64_t> scratch((*engine)->scratch_bytes() / 8 + 16);
    const auto aligned = [](std::vector<std::uint64_t>& words) {
      void* start = words.data();
      std::size_t space = words.size() * 8;
      return static_cast<std::byte*>(std::align(64, space - 64, start, space));
    };
    std::byte* codes_at = aligned(codes);
    std::byte* scratch_at = aligned(scratch);
    (*engine)->begin(codes_at);
    for (std::size_t first = 0; first < kRows; first += kEngineBlock) {
      const std::size_t count = std::min(kEngineBlock, kRows - first);
      std::vector<double> columns;
      for (std::size_t f = 0; f < kFeatures; ++f) {
        for (std::size_t i = 0; i < count; ++i) {
          columns.push_back(rows[(first + i) * kFeatures + f]);
        }
      }
      (*engine)->add_chunk(codes_at, first, count, columns.data(), count);
    }
    (*engine)->run(codes_at, scratch_at, {});
    std::size_t mismatches = 0;
    for (std::size_t i = 0; i < kRows; ++i) {
      const double reference =
          predict_reference(*forest, std::span(rows).subspan(i * kFeatures, kFeatures));
      mismatches +=
          std::bit_cast<std::uint64_t>(reference) != std::bit_cast<std::uint64_t>(expected[i]) ||
                  std::bit_cast<std::uint64_t>((*engine)->sum(scratch_at, i)) !=
                      std::bit_cast<std::uint64_t>(expected[i])
              ? 1U
              : 0U;
    }
    EXPECT_EQ(mismatches, 0U) << to_string(isa) << ", seed " << kSeed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Training, ForestOracleTest,
    testing::Values(OracleCase{"plain", "", false}, OracleCase{"nan_is_missing", "", true},
                    OracleCase{"zero_is_missing", "zero_as_missing=true", true},
                    OracleCase{"nothing_is_missing", "use_missing=false", true},
                    OracleCase{"bagged", "bagging_fraction=0.5 bagging_freq=1", false},
                    OracleCase{"absolute_error", "objective=regression_l1", true},
                    OracleCase{"many_bins", "max_bin=1000 num_leaves=200", false}),
    [](const testing::TestParamInfo<OracleCase>& test) { return test.param.name; });

}  // namespace
}  // namespace foretune
