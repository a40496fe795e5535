// Reads the folder that training writes as the scripts of Composable Kernel do. The test computes
// the features from their documented formulas in their documented order, without any table of ours,
// and passes them by position to the text that LightGBM loads. predict.py of 2026-03 takes its
// class's own numbers for the device; the one of 2026-06 takes those of the spec, and the class
// that the spec names.
#include <LightGBM/c_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/formats/compressed.h"
#include "foretune/interop/ck/ck_kernels.h"
#include "foretune/interop/ck/output_directory.h"
#include "foretune/interop/ck/testing/foreign_samples.h"
#include "foretune/interop/ck/testing/lightgbm_predict.h"
#include "foretune/model/model_scorer.h"
#include "foretune/model/train/testing/training_samples.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/known_spaces.h"

namespace foretune {
namespace {

using nlohmann::json;
using testing_support::TemporaryFolder;

// -- Their reader. --------------------------------------------------------------------------------

// Arguments of an engine's constructor, with its defaults.
using Engine = std::map<std::string, double>;
const Engine kDefaults{{"num_cus", 256},        {"lds_capacity", 65536}, {"max_clock_mhz", 2400},
                       {"simds_per_cu", 4},     {"shader_engines", 32},  {"max_waves_per_cu", 32},
                       {"wavefront_size", 64},  {"l1_cache_kb", 32},     {"l2_cache_kb", 4096},
                       {"l3_cache_kb", 262144}, {"num_xcd", 8}};

double code_of(const std::vector<std::string>& words, const std::string& word) {
  return static_cast<double>(std::find(words.begin(), words.end(), word) - words.begin());
}

double pipeline_code(const std::string& name) {
  return code_of({"compv3", "compv4", "compv5", "mem", "preshufflev2", "basic_v1", "compv6"}, name);
}

std::array<double, 3> sizes_of(const std::string& text) {
  std::array<double, 3> out{};
  const std::vector<std::string_view> parts = split(text, 'x');
  for (std::size_t i = 0; i < 3; ++i) {
    out.at(i) = *parse_double(parts.at(i));
  }
  return out;
}

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> out;
  for (const std::string_view word : split(name, '_')) {
    out.emplace_back(word);
  }
  return out;
}

struct Row {
  std::vector<double> values;
  void put(std::initializer_list<double> more) {
    values.insert(values.end(), more.begin(), more.end());
  }
  void put_tiles(const std::array<double, 3>& sizes, const std::array<double, 3>& tiles,
                 const Engine& engine) {
    std::array<double, 3> counts{};
    double product = 1;
    std::array<double, 3> fills{};
    for (std::size_t i = 0; i < 3; ++i) {
      counts.at(i) = std::ceil(sizes.at(i) / tiles.at(i));
      const double rest = std::fmod(sizes.at(i), tiles.at(i));
      fills.at(i) = rest > 0 ? rest / tiles.at(i) : 1;
      product *= fills.at(i);
    }
    put({counts[0], counts[1], counts[2], counts[0] * counts[1], fills[0], fills[1], fills[2],
         product, counts[0] * counts[1] / engine.at("num_cus")});
  }
  void put_hardware(const Engine& engine) {
    put({engine.at("num_cus"), engine.at("simds_per_cu"),
         engine.at("num_cus") * engine.at("simds_per_cu"), engine.at("shader_engines"),
         engine.at("max_clock_mhz"), engine.at("max_waves_per_cu"), engine.at("wavefront_size"),
         engine.at("lds_capacity"), engine.at("l1_cache_kb"), engine.at("l2_cache_kb"),
         engine.at("l3_cache_kb"), engine.at("num_xcd")});
  }
};

// gemm_universal_bf16_rcr_compv3_cshuffle_intrawave_True_True_True_False_64x64x64_2x2x1_16x16x32
std::vector<double> gemm_row(const Problem& problem, const std::string& kernel, bool has_padding,
                             const Engine& engine) {
  const std::vector<std::string> name = words_of(kernel);
  const auto field = [&](GemmField index) {
    return static_cast<double>(problem.field(static_cast<std::size_t>(index)));
  };
  const double m = field(GemmField::kM);
  const double n = field(GemmField::kN);
  const double k = field(GemmField::kK);
  const double bytes = 2;
  const std::array<double, 3> sizes{m, n, k};
  const std::array<double, 3> tile = sizes_of(name.at(11));
  const std::array<double, 3> warps = sizes_of(name.at(12));
  const std::array<double, 3> warp_tile = sizes_of(name.at(13));
  std::array<double, 3> pads{};
  for (std::size_t i = 0; i < 3; ++i) {
    pads.at(i) = name.at(7 + i) == "True" ? 1 : 0;
  }
  const double lds = (tile[0] * tile[2] + tile[1] * tile[2]) * bytes;
  Row row;
  row.put({m, n, k, 1, std::log2(m), std::log2(n), std::log2(k), std::log2(m * n * k),
           2 * m * n * k / ((m * k + k * n + m * n) * bytes), m / n, m / k, n / k,
           code_of({"rcr", "rrr", "crr", "ccr"}, name.at(3))});
  row.put({tile[0],
           tile[1],
           tile[2],
           warps[0],
           warps[1],
           warps[2],
           warp_tile[0],
           warp_tile[1],
           warp_tile[2],
           pipeline_code(name.at(4)),
           code_of({"intrawave", "interwave"}, name.at(6)),
           code_of({"default", "cshuffle"}, name.at(5)),
           pads[0],
           pads[1],
           pads[2],
           name.at(10) == "True" ? 1.0 : 0.0,
           warps[0] * warps[1] * warps[2],
           tile[0] * tile[1] * tile[2],
           tile[0] * tile[1],
           lds,
           lds / (name.at(4) == "compv4" ? 32768 : engine.at("lds_capacity"))});
  row.put_tiles(sizes, tile, engine);
  if (has_padding) {
    std::array<double, 3> small{};
    std::array<double, 3> needs{};
    std::array<double, 3> missing{};
    for (std::size_t i = 0; i < 3; ++i) {
      small.at(i) = sizes.at(i) < tile.at(i) ? 1 : 0;
      needs.at(i) = std::fmod(sizes.at(i), tile.at(i)) != 0 ? 1 : 0;
      missing.at(i) = needs.at(i) * (1 - pads.at(i));
    }
    row.put({m / tile[0], n / tile[1], k / tile[2], small[0], small[1], small[2],
             std::max({small[0], small[1], small[2]}), needs[0], needs[1], needs[2],
             needs[0] * pads[0], needs[1] * pads[1], needs[2] * pads[2], missing[0], missing[1],
             missing[2], std::max({missing[0], missing[1], missing[2]})});
  }
  row.put_hardware(engine);
  return row.values;
}

// grouped_conv_forward_bf16_2d_64x64x64_compv3_intrawave, whose first size they call block_size
std::vector<double> conv_row(const Problem& problem, const std::string& kernel,
                             const Engine& engine) {
  const std::vector<std::string> name = words_of(kernel);
  const ConvSizes sizes = ConvProblem::from(problem).value().sizes();
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double n = number(sizes.n);
  const double c = number(sizes.c);
  const double k = number(sizes.k);
  const double g = number(sizes.g);
  const double hi = number(sizes.hi);
  const double wi = number(sizes.wi);
  const double y = number(sizes.y);
  const double x = number(sizes.x);
  const double ho = number((sizes.hi + 2 * sizes.pad_h - sizes.y) / sizes.stride_h + 1);
  const double wo = number((sizes.wi + 2 * sizes.pad_w - sizes.x) / sizes.stride_w + 1);
  const double bytes = 2;
  const std::array<double, 3> named = sizes_of(name.at(5));
  const double block = named[0];
  const double per_m = named[1];
  const double per_n = named[2];
  const std::string& pipeline = name.at(6);
  const double lds = (per_m * block + per_n * block) * bytes;
  const auto flag = [](bool value) { return value ? 1.0 : 0.0; };
  Row row;
  row.put({n,
           c,
           k,
           g,
           hi,
           wi,
           y,
           x,
           number(sizes.stride_h),
           number(sizes.stride_w),
           number(sizes.pad_h),
           number(sizes.pad_w),
           ho,
           wo,
           std::log2(n),
           std::log2(c),
           std::log2(k),
           std::log2(g),
           std::log2(hi),
           std::log2(wi),
           std::log2(hi * wi),
           std::log2(y * x),
           std::log2(ho * wo),
           n * k * ho * wo * (c / g) * y * x * 2 /
               (n * c * hi * wi * bytes + k * (c / g) * y * x * bytes + n * k * ho * wo * bytes),
           y * x,
           flag(y == 1 && x == 1),
           flag(y == 3 && x == 3),
           c / g,
           hi / wi,
           y / x});
  row.put({std::log2(c / g), std::log2(k / g), flag(g == c && g == k), g / c,
           flag(c / g < 16 || k / g < 16), (c / g) * (k / g), n * g, flag(n < 8 && g > 1)});
  row.put({block, per_m, per_n, pipeline_code(pipeline), block / 4, per_m * per_n * block,
           per_m * per_n, lds, lds / (pipeline == "compv4" ? 32768 : engine.at("lds_capacity")),
           per_m / block, per_n / block, std::min(per_m, per_n) / std::max(per_m, per_n),
           flag(pipeline == "compv3"), flag(pipeline == "compv4"), flag(pipeline == "compv5")});
  const std::array<double, 3> product{n * ho * wo, k, (c / g) * y * x};
  const std::array<double, 3> tile{per_m, per_n, block};
  row.put({product[0], product[1], product[2]});
  row.put_tiles(product, tile, engine);
  row.put({product[0] / per_m, product[1] / per_n, product[2] / block, flag(product[0] < per_m),
           flag(product[1] < per_n), flag(product[2] < block)});
  row.put_hardware(engine);
  return row.values;
}

// The 97 features of a convolution in two dimensions without dilation: depth behind the first 30,
// and the ending of the kernel's name behind the last flag of a pipeline.
std::vector<double> later_conv_row(const Problem& problem, const std::string& kernel,
                                   const Engine& engine) {
  std::vector<double> row = conv_row(problem, kernel, engine);
  const std::vector<std::string> name = words_of(kernel);
  const auto has = [&](std::string_view word) {
    return std::find(name.begin() + 6, name.end(), word) != name.end() ? 1.0 : 0.0;
  };
  const std::array<double, 6> ending{1 - has("interwave"), has("dsb"),    has("si"),
                                     has("basic"),         has("compv6"), has("mem")};
  const std::array<double, 8> depth{0, 1, 1, 1, 1, 0, 1, 1};
  row.insert(row.begin() + 53, ending.begin(), ending.end());
  row.insert(row.begin() + 30, depth.begin(), depth.end());
  return row;
}

class Booster {
 public:
  explicit Booster(const std::filesystem::path& path) {
    int iterations = 0;
    check_lightgbm(LGBM_BoosterCreateFromModelfile(path.c_str(), &iterations, &handle_));
  }
  ~Booster() { LGBM_BoosterFree(handle_); }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;

  [[nodiscard]] double predict(const std::vector<double>& row) const {
    return lightgbm_prediction(handle_, row);
  }

 private:
  BoosterHandle handle_ = nullptr;
};

// -- What is read. --------------------------------------------------------------------------------

struct DirectoryCase {
  const char* table;
  const char* arch;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name.
void PrintTo(const DirectoryCase& given, std::ostream* out) {
  *out << given.table << " on " << given.arch;
}

class CkDirectory : public testing::TestWithParam<DirectoryCase> {
 protected:
  void SetUp() override {
    is_conv_ = std::string_view(GetParam().table).starts_with("grouped-conv");
    make_data();
    TrainOptions options = quick_options();
    options.gbdt.trees = 60;
    options.folds = 0;
    options.feature_table = GetParam().table;
    std::vector<TrainOptions> all;
    for (const Target target : {Target::kTflops, Target::kLatency, Target::kRelativeLog}) {
      options.target = target;
      auto result = train_gbdt(dataset_, options);
      ASSERT_TRUE(result) << result.error().message;
      all.push_back(options);
      results_.push_back(*std::move(result));
    }
    std::vector<TrainedTarget> targets;
    for (std::size_t i = 0; i < all.size(); ++i) {
      targets.push_back({file_name_of(all[i].target), &all[i], &results_[i]});
    }
    const Status written = write_training_output(dataset_, targets, folder_ / "m", true);
    ASSERT_TRUE(written) << written.error().message;
    spec_ = json::parse(read_text_file(folder_ / "m/feature_spec.json").value());
  }

  void make_data() {
    const ProblemType type = is_conv_ ? kConvProblem : kGemmProblem;
    DatasetHeader header;
    header.family = "recorded";
    header.problem_type = type;
    header.config_schema = is_conv_ ? ck_grouped_conv_schema() : ck_gemm_schema();
    header.fingerprint = known_device(GetParam().arch).value();
    if (!is_conv_) {
      header.space_text = known_space(concat("ck-gemm-", GetParam().arch))->text();
    }
    dataset_ = Dataset(header);
    Rng rng(5);
    kernels_ = sample_kernels(type);
    for (int i = 0; i < 60; ++i) {
      const Problem problem = sample_foreign_problem(type, rng);
      const double size = static_cast<double>(problem.field(1)) * (1 + rng.uniform());
      for (std::size_t at = 0; at < kernels_.size(); ++at) {
        add(dataset_, problem, config_of(kernels_[at]),
            2000 + size * (1 + static_cast<double>((at * 7) % 11)));
      }
    }
  }

  [[nodiscard]] Config config_of(const std::string& kernel) const {
    return is_conv_ ? parse_ck_conv_name(kernel)->config : parse_ck_gemm_name(kernel)->config;
  }

  [[nodiscard]] std::vector<double> row_of(const Problem& problem, const std::string& kernel,
                                           const Engine& engine) const {
    if (std::string_view(GetParam().table).ends_with("97")) {
      return later_conv_row(problem, kernel, engine);
    }
    return is_conv_ ? conv_row(problem, kernel, engine)
                    : gemm_row(problem, kernel, std::string_view(GetParam().table).ends_with("72"),
                               engine);
  }

  // Compares the predictions of a script that takes `engine` with the scores of our model file.
  void expect_same_predictions(const Engine& engine) {
    Rng rng(77);
    const ProblemType type = is_conv_ ? kConvProblem : kGemmProblem;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const std::string target(file_name_of(results_[i].target));
      SCOPED_TRACE(target);
      const Booster booster(folder_ / concat("m/model_", target, ".lgbm"));
      const Model model = read_model(folder_ / concat("m/model_", target, ".ftm")).value();
      std::vector<Config> configs;
      for (const std::string& kernel : kernels_) {
        configs.push_back(config_of(kernel));
      }
      double least = 1e300;
      double most = -1e300;
      for (int p = 0; p < 40; ++p) {
        const Problem problem = sample_foreign_problem(type, rng);
        const std::vector<double> scores = score_configs(model, problem, configs).value();
        for (std::size_t at = 0; at < kernels_.size(); ++at) {
          const std::vector<double> row = row_of(problem, kernels_[at], engine);
          ASSERT_EQ(row.size(), spec_["feature_names"].size());
          const double raw = booster.predict(row);
          const double expected = scores[at] / results_[i].score_factor;
          ASSERT_NEAR(raw, expected, 1e-11 * (1 + std::abs(expected)))
              << problem.text() << ' ' << kernels_[at];
          least = std::min(least, raw);
          most = std::max(most, raw);
        }
      }
      EXPECT_GT(most, least) << "the model says the same of everything";
    }
  }

  bool is_conv_ = false;
  TemporaryFolder folder_;
  Dataset dataset_{DatasetHeader()};
  std::vector<std::string> kernels_;
  std::vector<TrainResult> results_;
  json spec_;
};

TEST_P(CkDirectory, SpecHasTheWordsOfTheirReaders) {
  EXPECT_EQ(spec_["op_type"], is_conv_ ? "grouped_conv" : "gemm_universal");
  EXPECT_EQ(spec_.value("direction", ""), is_conv_ ? "forward" : "");
  EXPECT_EQ(spec_["dtype"], "bf16");
  EXPECT_EQ(spec_["arch"], GetParam().arch);
  EXPECT_EQ(spec_["targets"], json({"tflops", "latency", "time"}));
  EXPECT_EQ(spec_["log_targets"], json({"tflops", "latency"}));
  EXPECT_EQ(spec_["categorical_features"],
            is_conv_ ? json({"pipeline"}) : json({"layout", "pipeline", "scheduler", "epilogue"}));
  EXPECT_EQ(spec_["feature_engine"],
            is_conv_ ? "GroupedConvFeatureEngine" : "GemmUniversalFeatureEngine");
  // Without the key they take 0, which is their version.
  EXPECT_FALSE(spec_.contains("feature_encoding_version"));
  for (const auto& [name, value] : spec_["hardware"].items()) {
    EXPECT_TRUE(kDefaults.contains(name)) << name << " is no argument of their constructor";
    EXPECT_TRUE(value.is_number_integer()) << name;
  }
}

// The published specs are not part of the project; this test checks their order of features.
TEST_P(CkDirectory, FeaturesStandAsInThePublishedSpecs) {
  const std::map<std::string, const char*> published{
      {"gemm-ck-55", "gemm_fp8_gfx950_v55"},
      {"gemm-ck-72", "gemm_fp16_gfx950_v72"},
      {"grouped-conv-ck-83", "conv_fwd_bf16_gfx950_shipped_v83"},
      {"grouped-conv-ck-97", "conv_fwd_2d3d_suffix_bf16_gfx950_v97"}};
  const auto text = read_text_file(concat(FORETUNE_SHARED_DATA_DIR "/ck/models/",
                                          published.at(GetParam().table), ".feature_spec.json"));
  if (!text) {
    GTEST_SKIP() << "the shared test data is absent";
  }
  const json theirs = json::parse(*text);
  for (const char* key : {"op_type", "feature_names", "categorical_features"}) {
    EXPECT_EQ(spec_[key], theirs[key]) << key;
  }
}

TEST_P(CkDirectory, PredictsThroughTheNumbersOfTheSpec) {
  Engine engine = kDefaults;
  for (const auto& [name, value] : spec_["hardware"].items()) {
    engine[name] = value.get<double>();
  }
  // So the first readers, which ignore the spec's numbers, predict the same for a gfx950.
  EXPECT_EQ(engine == kDefaults, std::string_view(GetParam().arch) == "gfx950");
  expect_same_predictions(engine);
}

// Training uses the engine's numbers, too. The rules still have the device's own.
TEST_P(CkDirectory, TreesLearnFromWhatTheEngineTakesForTheDevice) {
  const FeatureTable& table = *find_feature_table(GetParam().table).value();
  const Fingerprint engine = known_device(concat("ck-", GetParam().arch)).value();
  const Model& model = results_[0].model;
  EXPECT_EQ(model.fingerprint, engine);
  std::size_t found = 0;
  for (std::size_t i = 0; i < model.problem_range.size(); ++i) {
    const std::string_view name = table.columns()[i].name;
    if (name == "hw_lds_capacity" || name == "hw_num_cus") {
      const double seen = engine.hardware.get(
          name == "hw_num_cus" ? HardwareValue::kCores : HardwareValue::kSharedBytesPerBlock);
      EXPECT_EQ(model.problem_range[i], std::pair(seen, seen)) << name;
      ++found;
    }
  }
  EXPECT_EQ(found, 2U);
  EXPECT_EQ(model.space_text.find("hw."), std::string::npos) << model.space_text;
  const auto bytes = static_cast<std::int64_t>(
      dataset_.header().fingerprint.hardware.get(HardwareValue::kSharedBytesPerBlock));
  EXPECT_EQ(model.space_text.find(concat(bytes)) != std::string::npos, !is_conv_);
}

TEST_P(CkDirectory, TheZippedTextIsThePlainOne) {
  for (const char* target : {"tflops", "latency", "time"}) {
    const std::string plain = concat("m/model_", target, ".lgbm");
    const auto zipped = formats::read_maybe_compressed(folder_ / concat(plain, ".gz"));
    ASSERT_TRUE(zipped) << zipped.error().message;
    EXPECT_EQ(*zipped, read_file(folder_ / plain).value());
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, CkDirectory,
                         testing::Values(DirectoryCase{"gemm-ck-55", "gfx950"},
                                         DirectoryCase{"gemm-ck-72", "gfx942"},
                                         DirectoryCase{"grouped-conv-ck-83", "gfx950"},
                                         DirectoryCase{"grouped-conv-ck-83", "gfx90a"},
                                         DirectoryCase{"grouped-conv-ck-97", "gfx950"}));

}  // namespace
}  // namespace foretune
