#include "bench/select_setup.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "bench/bench_json.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/interop/trees/lightgbm_text.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/schemas/triton.h"

namespace foretune::bench {
namespace {

// Every third measurement is plenty for trees of this size.
constexpr std::size_t kRowStep = 3;

void must_lightgbm(int result) {
  if (result != 0) {
    stop(LGBM_GetLastError());
  }
}

// ---- data ---------------------------------------------------------------------------------------

struct Sample {
  Problem problem;
  std::array<std::int32_t, kWidth> words{};
  double time_us = 0;
};

Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return must(GemmProblem::create({.m = m, .n = n, .k = k, .dtype = DataType::kBf16})).to_problem();
}

Sample parse_sample(std::string_view line) {
  const std::vector<std::string_view> cells = split(line, ',');
  if (cells.size() != 11) {
    stop(concat("a line of the data has ", cells.size(), " columns instead of 11"));
  }
  const auto integer = [&](std::size_t column) {
    const auto value = parse_int(cells[column]);
    if (!value) {
      stop(concat("'", cells[column], "' is not a number"));
    }
    return *value;
  };
  Sample sample{.problem = gemm(integer(0), integer(1), integer(2))};
  for (std::size_t i = 0; i < kWidth; ++i) {
    sample.words[i] = static_cast<std::int32_t>(integer(4 + i));
  }
  sample.time_us = parse_double(cells[10]).value_or(0);
  return sample;
}

// gzread passes files through that are not compressed.
std::vector<Sample> read_samples(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (file == nullptr) {
    stop(concat("cannot open ", path));
  }
  std::vector<Sample> samples;
  std::array<char, 512> buffer{};
  for (std::size_t line = 0; gzgets(file.get(), buffer.data(), buffer.size()) != nullptr; ++line) {
    const std::string_view text = trim(buffer.data());
    // The first line has the names; the vendor's library has no config.
    if (line > 0 && text.find("cublas") == std::string_view::npos) {
      samples.push_back(parse_sample(text));
    }
  }
  return samples;
}

std::vector<Sample> synthetic_samples(const FeatureTable& table, const Hardware& hardware) {
  Rng rng(1);
  std::vector<Sample> samples;
  std::vector<double> row(table.columns().size());
  const ConfigSchema schema;
  for (int p = 0; p < 230; ++p) {
    const auto size = [&] {
      return 8 * (1 + static_cast<std::int64_t>(std::exp(6 * rng.uniform())));
    };
    const Problem problem = gemm(size(), size(), size());
    for (int c = 0; c < 550; ++c) {
      Sample sample{.problem = problem,
                    .words = {16 << rng.below(5), 16 << rng.below(5), 32 << rng.below(3), 8,
                              static_cast<std::int32_t>(rng.between(2, 5)), 2 << rng.below(3)}};
      const Config config{.schema = schema.id(),
                          .words = Config::Words(std::span<const std::int32_t>(sample.words))};
      feature_row(table, problem, hardware, config, row);
      // Smooth in every feature, so that the splits spread over all of them.
      double log_time = 0.02 * rng.normal();
      for (std::size_t f = 0; f < row.size(); ++f) {
        log_time += std::sin(row[f] * (1 + static_cast<double>(f % 7) / 8)) / 8 + row[f] / 64;
      }
      sample.time_us = std::exp(std::clamp(log_time, -20.0, 20.0));
      samples.push_back(sample);
    }
  }
  return samples;
}

std::string train(const std::vector<Sample>& samples, const FeatureTable& table,
                  const Hardware& hardware, const ForestSize& size) {
  const std::size_t features = table.columns().size();
  std::vector<double> rows;
  std::vector<float> labels;
  std::vector<double> row(features);
  for (std::size_t i = 0; i < samples.size(); i += kRowStep) {
    const Config config{.words = Config::Words(std::span<const std::int32_t>(samples[i].words))};
    feature_row(table, samples[i].problem, hardware, config, row);
    rows.insert(rows.end(), row.begin(), row.end());
    labels.push_back(static_cast<float>(std::log(samples[i].time_us)));
  }
  const auto count = static_cast<std::int32_t>(labels.size());
  const std::string parameters = concat(
      "objective=regression num_leaves=", size.leaves,
      " learning_rate=0.05 min_data_in_leaf=20 feature_fraction=0.4 bagging_fraction=0.8 "
      "bagging_freq=1 max_bin=255 num_threads=1 deterministic=true force_row_wise=true seed=1 "
      "verbosity=-1");
  DatasetHandle dataset = nullptr;
  BoosterHandle booster = nullptr;
  must_lightgbm(LGBM_DatasetCreateFromMat(rows.data(), C_API_DTYPE_FLOAT64, count,
                                          static_cast<std::int32_t>(features), 1,
                                          parameters.c_str(), nullptr, &dataset));
  must_lightgbm(LGBM_DatasetSetField(dataset, "label", labels.data(), count, C_API_DTYPE_FLOAT32));
  must_lightgbm(LGBM_BoosterCreate(dataset, parameters.c_str(), &booster));
  for (int tree = 0; tree < size.trees; ++tree) {
    int finished = 0;
    must_lightgbm(LGBM_BoosterUpdateOneIter(booster, &finished));
  }
  std::int64_t length = 0;
  std::vector<char> text(std::size_t{1} << 26U);
  must_lightgbm(LGBM_BoosterSaveModelToString(
      booster, 0, -1, 0, static_cast<std::int64_t>(text.size()), &length, text.data()));
  LGBM_BoosterFree(booster);
  LGBM_DatasetFree(dataset);
  return text.data();
}

std::vector<Config> make_pool(const ConfigSchema& schema) {
  std::vector<Config> pool;
  const std::array blocks{16, 32, 48, 64, 96, 128, 192, 256};
  for (const int block_m : blocks) {
    for (const int block_n : blocks) {
      for (const int block_k : {32, 64, 128}) {
        for (const int group : {4, 8}) {
          for (const int stages : {2, 3, 4, 5}) {
            for (const int warps : {2, 4, 8}) {
              pool.push_back({.schema = schema.id(),
                              .words = {block_m, block_n, block_k, group, stages, warps}});
            }
          }
        }
      }
    }
  }
  return pool;
}

}  // namespace

[[noreturn]] void stop(std::string_view message) {
  std::fprintf(stderr, "bench/select: %.*s\n", static_cast<int>(message.size()), message.data());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): no other thread runs
}

Booster::Booster(const std::string& text) {
  int iterations = 0;
  must_lightgbm(LGBM_BoosterLoadModelFromString(text.c_str(), &iterations, &handle_));
}

Booster::~Booster() {
  if (fast_ != nullptr) {
    LGBM_FastConfigFree(fast_);
  }
  LGBM_BoosterFree(handle_);
}

void Booster::predict(const std::vector<double>& rows, std::size_t features,
                      std::vector<double>& out) const {
  std::int64_t length = 0;
  must_lightgbm(LGBM_BoosterPredictForMat(
      handle_, rows.data(), C_API_DTYPE_FLOAT64, static_cast<std::int32_t>(out.size()),
      static_cast<std::int32_t>(features), 1, C_API_PREDICT_NORMAL, 0, -1, "num_threads=1", &length,
      out.data()));
}

void Booster::predict_rows_singly(const std::vector<double>& rows, std::size_t features,
                                  std::vector<double>& out) {
  if (fast_ == nullptr) {
    must_lightgbm(LGBM_BoosterPredictForMatSingleRowFastInit(
        handle_, C_API_PREDICT_NORMAL, 0, -1, C_API_DTYPE_FLOAT64,
        static_cast<std::int32_t>(features), "num_threads=1", &fast_));
  }
  std::int64_t length = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    must_lightgbm(LGBM_BoosterPredictForMatSingleRowFast(fast_, rows.data() + i * features, &length,
                                                         &out[i]));
  }
}

void Setup::fill_rows(const Problem& problem, std::vector<double>& rows) const {
  rows.resize(pool.size() * features());
  for (std::size_t i = 0; i < pool.size(); ++i) {
    feature_row(*table, problem, hardware, pool[i],
                std::span(rows).subspan(i * features(), features()));
  }
}

SpaceDefinition make_space() {
  SpaceDefinition space;
  space.schema = triton_gemm_schema();
  space.constraints = {
      {"block_m < 4 * max(m, 16)", "the tile is at least four times the matrix's height"},
      {"block_n < 4 * max(n, 16)", "the tile is at least four times the matrix's width"}};
  return space;
}

Setup make_setup(int argc, char** argv, const SpaceDefinition& space, const ForestSize& size) {
  Setup setup;
  setup.table = must(find_feature_table("gemm-triton"));
  setup.hardware = h200_fingerprint().hardware;
  const std::string data = argument(argc, argv, "data");
  const std::vector<Sample> samples =
      data.empty() ? synthetic_samples(*setup.table, setup.hardware) : read_samples(data);
  const std::string kept = argument(argc, argv, size.kept_by);
  if (const auto text = read_text_file(kept); !kept.empty() && text) {
    setup.text = *text;
  } else {
    std::printf("training %d trees on %zu of %zu measurements ...\n", size.trees,
                samples.size() / kRowStep, samples.size());
    setup.text = train(samples, *setup.table, setup.hardware, size);
    if (!kept.empty() && !write_text_file_atomically(kept, setup.text)) {
      stop(concat("cannot write ", kept));
    }
  }
  setup.forest = must(parse_lightgbm_text(setup.text)).forest;
  setup.pool = make_pool(space.schema);
  for (const Config& config : setup.pool) {
    setup.words.insert(setup.words.end(), config.words.begin(), config.words.end());
  }
  std::vector<Problem> distinct;
  for (const Sample& sample : samples) {
    if (distinct.empty() || distinct.back() != sample.problem) {
      distinct.push_back(sample.problem);
    }
  }
  for (std::size_t i = 0; i < kProblems; ++i) {
    setup.problems.push_back(distinct[i * distinct.size() / kProblems]);
  }
  return setup;
}

}  // namespace foretune::bench
