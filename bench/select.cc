// The selector beside LightGBM: 500 trees of 127 leaves over 4,608 candidates, on one thread.
//
//   bench/select --data triton_mm_bf16.csv.gz [--forest FILE] [--runs 5] [--json FILE]
//
// The forest is trained on the measurements given (columns m, n, k, dtype, block_m, block_n,
// block_k, group_m, num_stages, num_warps, time_us), or on times by formula without them. FILE
// keeps its text between runs. Our times include computing the features from problem and config;
// LightGBM gets the finished rows.
#include "foretune/select/select.h"

#include <LightGBM/c_api.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/features/feature_table.h"
#include "foretune/models/infer/forest_engine.h"
#include "foretune/models/infer/forest_scorer.h"
#include "foretune/problem/gemm.h"
#include "foretune/select/foretune.h"
#include "foretune/space/parametric_space.h"

namespace foretune::bench {
namespace {

constexpr int kTrees = 500;
constexpr int kLeaves = 127;
constexpr std::size_t kProblems = 64;
constexpr std::size_t kWidth = 6;
constexpr std::size_t kRandomRows = 100'000;
// Every third measurement is plenty for trees of this size.
constexpr std::size_t kRowStep = 3;

[[noreturn]] void stop(std::string_view message) {
  std::fprintf(stderr, "bench/select: %.*s\n", static_cast<int>(message.size()), message.data());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): no other thread runs
}

template <class T>
T must(Result<T> result) {
  if (!result) {
    stop(result.error().message);
  }
  return *std::move(result);
}

void must_lightgbm(int result) {
  if (result != 0) {
    stop(LGBM_GetLastError());
  }
}

template <class Work>
double milliseconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
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

// ---- LightGBM -----------------------------------------------------------------------------------

class Booster {
 public:
  explicit Booster(const std::string& text) {
    int iterations = 0;
    must_lightgbm(LGBM_BoosterLoadModelFromString(text.c_str(), &iterations, &handle_));
  }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  ~Booster() {
    if (fast_ != nullptr) {
      LGBM_FastConfigFree(fast_);
    }
    LGBM_BoosterFree(handle_);
  }

  void predict(const std::vector<double>& rows, std::size_t features,
               std::vector<double>& out) const {
    std::int64_t length = 0;
    must_lightgbm(LGBM_BoosterPredictForMat(
        handle_, rows.data(), C_API_DTYPE_FLOAT64, static_cast<std::int32_t>(out.size()),
        static_cast<std::int32_t>(features), 1, C_API_PREDICT_NORMAL, 0, -1, "num_threads=1",
        &length, out.data()));
  }
  void predict_rows_singly(const std::vector<double>& rows, std::size_t features,
                           std::vector<double>& out) {
    if (fast_ == nullptr) {
      must_lightgbm(LGBM_BoosterPredictForMatSingleRowFastInit(
          handle_, C_API_PREDICT_NORMAL, 0, -1, C_API_DTYPE_FLOAT64,
          static_cast<std::int32_t>(features), "num_threads=1", &fast_));
    }
    std::int64_t length = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      must_lightgbm(LGBM_BoosterPredictForMatSingleRowFast(fast_, rows.data() + i * features,
                                                           &length, &out[i]));
    }
  }

 private:
  BoosterHandle handle_ = nullptr;
  FastConfigHandle fast_ = nullptr;
};

std::string train(const std::vector<Sample>& samples, const FeatureTable& table,
                  const Hardware& hardware) {
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
      "objective=regression num_leaves=", kLeaves,
      " learning_rate=0.05 min_data_in_leaf=20 feature_fraction=0.8 bagging_fraction=0.8 "
      "bagging_freq=1 max_bin=255 num_threads=1 deterministic=true force_row_wise=true seed=1 "
      "verbosity=-1");
  DatasetHandle dataset = nullptr;
  BoosterHandle booster = nullptr;
  must_lightgbm(LGBM_DatasetCreateFromMat(rows.data(), C_API_DTYPE_FLOAT64, count,
                                          static_cast<std::int32_t>(features), 1,
                                          parameters.c_str(), nullptr, &dataset));
  must_lightgbm(LGBM_DatasetSetField(dataset, "label", labels.data(), count, C_API_DTYPE_FLOAT32));
  must_lightgbm(LGBM_BoosterCreate(dataset, parameters.c_str(), &booster));
  for (int tree = 0; tree < kTrees; ++tree) {
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

// ---- what is compared ---------------------------------------------------------------------------

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

struct Setup {
  const FeatureTable* table = nullptr;
  Hardware hardware;
  Forest forest;
  std::string text;
  std::vector<Config> pool;
  std::vector<std::int32_t> words;
  std::vector<Problem> problems;

  [[nodiscard]] std::size_t features() const { return table->columns().size(); }
  // All rows of a problem, for LightGBM.
  void fill_rows(const Problem& problem, std::vector<double>& rows) const {
    rows.resize(pool.size() * features());
    for (std::size_t i = 0; i < pool.size(); ++i) {
      feature_row(*table, problem, hardware, pool[i],
                  std::span(rows).subspan(i * features(), features()));
    }
  }
};

class ScoredPool {
 public:
  ScoredPool(const Setup& setup, CpuIsa isa) {
    const auto scorer = must(ForestScorer::create({setup.forest}, *setup.table, 0, isa));
    pool_ = must(scorer->prepare(setup.words, kWidth, setup.hardware));
    workspace_.resize(pool_->workspace_bytes());
    scores_.resize(pool_->size());
  }
  const std::vector<double>& score(const Problem& problem) {
    pool_->score(problem, workspace_, scores_, {});
    return scores_;
  }
  double mean_ms(const std::vector<Problem>& problems) {
    return milliseconds([&] {
             for (const Problem& problem : problems) {
               score(problem);
             }
           }) /
           static_cast<double>(problems.size());
  }

 private:
  std::unique_ptr<PreparedPool> pool_;
  std::vector<std::byte> workspace_;
  std::vector<double> scores_;
};

std::uint64_t count_different(const std::vector<double>& a, const std::vector<double>& b) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    count += std::bit_cast<std::uint64_t>(a[i]) == std::bit_cast<std::uint64_t>(b[i]) ? 0U : 1U;
  }
  return count;
}

std::uint64_t mismatches_of_pool(const Setup& setup, const Booster& booster, ScoredPool& ours) {
  std::uint64_t count = 0;
  std::vector<double> rows;
  std::vector<double> theirs(setup.pool.size());
  for (const Problem& problem : setup.problems) {
    setup.fill_rows(problem, rows);
    booster.predict(rows, setup.features(), theirs);
    count += count_different(ours.score(problem), theirs);
  }
  return count;
}

double random_value(const Forest& forest, std::size_t node, Rng& rng) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kHard{
      0.0,       -0.0,       1e-36, -1e-35,
      kInfinity, -kInfinity, 1e300, std::numeric_limits<double>::quiet_NaN()};
  const double threshold = forest.threshold[node];
  switch (rng.below(5)) {
    case 0:
      return kHard[rng.below(kHard.size())];
    case 1:
      return threshold;
    case 2:
      return std::nextafter(threshold, kInfinity);
    default:
      return threshold + rng.normal();
  }
}

// Rows that no problem has: every feature on its own, around thresholds and at the edges.
std::uint64_t mismatches_of_random_rows(const Setup& setup, const Booster& booster) {
  const std::size_t features = setup.features();
  std::vector<std::vector<std::size_t>> nodes(features);
  for (std::size_t i = 0; i < setup.forest.feature.size(); ++i) {
    nodes[setup.forest.feature[i]].push_back(i);
  }
  const std::vector<FeatureKind> kinds(features, FeatureKind::kInteraction);
  const auto engine =
      must(ForestEngine::create(setup.forest, kinds, {}, kEngineBlock, best_cpu_isa()));
  const std::align_val_t alignment{64};
  const auto free_aligned = [&](std::byte* bytes) { ::operator delete(bytes, alignment); };
  const auto allocate = [&](std::size_t bytes) {
    return std::unique_ptr<std::byte, decltype(free_aligned)>(
        static_cast<std::byte*>(::operator new(bytes + 64, alignment)), free_aligned);
  };
  const auto codes = allocate(engine->codes_bytes());
  const auto scratch = allocate(engine->scratch_bytes());
  Rng rng(99);
  std::uint64_t count = 0;
  std::vector<double> rows(kEngineBlock * features);
  std::vector<double> columns(kEngineBlock * features);
  std::vector<double> ours(kEngineBlock);
  std::vector<double> theirs(kEngineBlock);
  for (std::size_t done = 0; done < kRandomRows; done += kEngineBlock) {
    for (std::size_t i = 0; i < kEngineBlock; ++i) {
      for (std::size_t f = 0; f < features; ++f) {
        const double value =
            nodes[f].empty()
                ? rng.normal()
                : random_value(setup.forest, nodes[f][rng.below(nodes[f].size())], rng);
        rows[i * features + f] = value;
        columns[f * kEngineBlock + i] = value;
      }
    }
    engine->begin(codes.get());
    engine->add_chunk(codes.get(), 0, kEngineBlock, columns.data(), kEngineBlock);
    engine->run(codes.get(), scratch.get(), {});
    for (std::size_t i = 0; i < kEngineBlock; ++i) {
      ours[i] = engine->sum(scratch.get(), i);
    }
    booster.predict(rows, features, theirs);
    count += count_different(ours, theirs);
  }
  return count;
}

// Legality by problem only, so that all candidates are scored.
SpaceDefinition make_space() {
  SpaceDefinition space;
  space.schema = {.name = "triton-gemm",
                  .parameters = {{"block_m", {}},
                                 {"block_n", {}},
                                 {"block_k", {}},
                                 {"group_m", {}},
                                 {"num_stages", {}},
                                 {"num_warps", {}}}};
  space.constraints = {
      {"block_m < 4 * max(m, 16)", "the tile is at least four times the matrix's height"},
      {"block_n < 4 * max(n, 16)", "the tile is at least four times the matrix's width"}};
  return space;
}

Model make_model(const Setup& setup, const SpaceDefinition& space) {
  Model model;
  model.kind = "gbdt";
  model.family = "recorded";
  model.problem_schema = find_problem_schema(ProblemType::kGemm)->id();
  model.config_schema = space.schema;
  model.space_text = space.text();
  model.feature_table = std::string(setup.table->name());
  model.feature_table_id = feature_table_id(*setup.table);
  model.fingerprint = h200_fingerprint();
  model.pool = setup.pool;
  model.portfolio = {0};
  model.forests = {setup.forest};
  model.target = "log";
  model.problem_range.assign(feature_count(*setup.table, FeatureKind::kProblem), {-1e300, 1e300});
  return model;
}

Setup make_setup(int argc, char** argv, const SpaceDefinition& space) {
  Setup setup;
  setup.table = must(find_feature_table("gemm-triton"));
  setup.hardware = h200_fingerprint().hardware;
  const std::string data = argument(argc, argv, "data");
  const std::vector<Sample> samples =
      data.empty() ? synthetic_samples(*setup.table, setup.hardware) : read_samples(data);
  const std::string kept = argument(argc, argv, "forest");
  if (const auto text = read_text_file(kept); !kept.empty() && text) {
    setup.text = *text;
  } else {
    std::printf("training %d trees on %zu of %zu measurements ...\n", kTrees,
                samples.size() / kRowStep, samples.size());
    setup.text = train(samples, *setup.table, setup.hardware);
    if (!kept.empty() && !write_text_file_atomically(kept, setup.text)) {
      stop(concat("cannot write ", kept));
    }
  }
  setup.forest = must(parse_lightgbm_text(setup.text));
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

// ---- figures ------------------------------------------------------------------------------------

void report(Figures& figures, const char* name, double value, const char* text) {
  figures.add(name, value);
  std::printf("%-34s %12.4g  %s\n", name, value, text);
}

void report_forest(Figures& figures, const Setup& setup, const Model& model) {
  std::vector<double> share(3, 0);
  for (const std::uint32_t feature : setup.forest.feature) {
    share[static_cast<std::size_t>(setup.table->columns()[feature].kind)] += 1;
  }
  const auto splits = static_cast<double>(setup.forest.feature.size());
  report(figures, "problem_splits", share[0] / splits, "share of splits on problem features");
  report(figures, "config_splits", share[1] / splits, "... on config features");
  report(figures, "interaction_splits", share[2] / splits, "... on both");
  report(figures, "lightgbm_text_bytes", static_cast<double>(setup.text.size()),
         "the forest as LightGBM writes it");
  report(figures, "model_file_bytes", static_cast<double>(model_bytes(model).size()),
         "our whole model file");
}

// Ours and theirs take turns, so that both see the same machine.
void report_forest_times(Figures& figures, const Setup& setup, Booster& booster, int runs) {
  std::vector<double> batch;
  std::vector<double> single;
  std::vector<double> rows;
  std::vector<double> out(setup.pool.size());
  const std::array isas{CpuIsa::kAvx512, CpuIsa::kAvx2, CpuIsa::kGeneric};
  std::array<std::vector<double>, 3> ours;
  std::vector<std::unique_ptr<ScoredPool>> pools;
  for (const CpuIsa isa : isas) {
    if (isa <= best_cpu_isa()) {
      pools.push_back(std::make_unique<ScoredPool>(setup, isa));
    }
  }
  const std::size_t skipped = isas.size() - pools.size();
  for (int run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < pools.size(); ++i) {
      ours[skipped + i].push_back(pools[i]->mean_ms(setup.problems));
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t problem = (static_cast<std::size_t>(run) * 4 + i) % kProblems;
      setup.fill_rows(setup.problems[problem], rows);
      batch.push_back(milliseconds([&] { booster.predict(rows, setup.features(), out); }));
    }
    single.push_back(
        milliseconds([&] { booster.predict_rows_singly(rows, setup.features(), out); }));
  }
  const double best = median(ours[skipped]);
  const double theirs = median(batch);
  report(figures, "forest_500x127_4608_ms", best, "ours, features included");
  if (skipped == 0) {
    report(figures, "forest_avx512_ms", median(ours[0]), "... with AVX-512");
  }
  if (skipped <= 1) {
    report(figures, "forest_avx2_ms", median(ours[1]), "... with AVX2");
  }
  report(figures, "forest_generic_ms", median(ours[2]), "... with neither");
  report(figures, "lightgbm_500x127_4608_ms", theirs, "LightGBM's C API, one batch, rows given");
  report(figures, "lightgbm_single_row_4608_ms", median(single),
         "LightGBM's C API, row by row (fast)");
  report(figures, "times_faster_than_lightgbm", theirs / best, "than the batch");
}

void report_selector_times(Figures& figures, const Setup& setup, const Model& model, int runs) {
  const auto selector = must(Selector::create(model));
  std::vector<double> uncached;
  std::vector<double> cached;
  std::uint64_t picks = 0;
  for (const Problem& problem : setup.problems) {
    picks += selector->select(problem).candidate;
  }
  constexpr int kRepeats = 2000;
  for (int run = 0; run < runs; ++run) {
    uncached.push_back(milliseconds([&] {
                         for (const Problem& problem : setup.problems) {
                           picks += selector->select_uncached(problem).candidate;
                         }
                       }) /
                       kProblems);
    cached.push_back(milliseconds([&] {
                       for (int i = 0; i < kRepeats; ++i) {
                         for (const Problem& problem : setup.problems) {
                           picks += selector->select(problem).candidate;
                         }
                       }
                     }) *
                     1e6 / (kRepeats * static_cast<double>(kProblems)));
  }
  report(figures, "select_uncached_ms", median(uncached), "a new problem, legality included");
  report(figures, "cached_ns", median(cached), "a repeated problem");
  std::printf("(sum of picks %llu)\n", static_cast<unsigned long long>(picks));
}

// The same through the C interface, from a file.
void report_c_interface(Figures& figures, const Setup& setup, const Model& model, int runs) {
  const std::string path = concat("select_bench_", setup.text.size(), ".ftm");
  if (const Status written = write_model(model, path); !written) {
    stop(written.error().message);
  }
  foretune_selector* selector = nullptr;
  std::array<char, 400> message{};
  const double open_ms = milliseconds([&] {
    if (foretune_selector_open(path.c_str(), &selector, message.data(), message.size()) != 0) {
      stop(message.data());
    }
  });
  std::remove(path.c_str());
  report(figures, "open_ms", open_ms, "opening the model file");
  std::vector<double> cached;
  foretune_choice choice;
  for (int run = 0; run <= runs; ++run) {
    constexpr int kRepeats = 2000;
    const double ms = milliseconds([&] {
      for (int i = 0; i < (run == 0 ? 1 : kRepeats); ++i) {
        for (const Problem& problem : setup.problems) {
          const foretune_gemm gemm{.m = problem.field(1),
                                   .n = problem.field(2),
                                   .k = problem.field(3),
                                   .batch = 1,
                                   .op = FORETUNE_MM,
                                   .dtype = static_cast<std::int32_t>(problem.field(5)),
                                   .layout = static_cast<std::int32_t>(problem.field(6))};
          if (foretune_select_gemm(selector, &gemm, &choice) != FORETUNE_OK) {
            stop("the C interface failed");
          }
        }
      }
    });
    if (run > 0) {  // the first fills the cache
      cached.push_back(ms * 1e6 / (kRepeats * static_cast<double>(kProblems)));
    }
  }
  report(figures, "cached_c_interface_ns", median(cached), "a repeated problem, through C");
  foretune_selector_close(selector);
}

int run(int argc, char** argv) {
  const auto runs = parse_int(argument(argc, argv, "runs", "5"));
  if (!runs || *runs < 1 || *runs > 1000) {
    stop("--runs is a number from 1 to 1000");
  }
  const SpaceDefinition space = make_space();
  const Setup setup = make_setup(argc, argv, space);
  const Model model = make_model(setup, space);
  Figures figures = make_figures("select", argc, argv);
  std::printf("%zu trees, %zu candidates, %zu problems\n", setup.forest.trees.size(),
              setup.pool.size(), setup.problems.size());
  report_forest(figures, setup, model);
  Booster booster(setup.text);
  report_forest_times(figures, setup, booster, static_cast<int>(*runs));
  ScoredPool ours(setup, best_cpu_isa());
  report(figures, "mismatched_predictions",
         static_cast<double>(mismatches_of_pool(setup, booster, ours) +
                             mismatches_of_random_rows(setup, booster)),
         concat("in ", setup.problems.size() * setup.pool.size() + kRandomRows, " rows").c_str());
  report_selector_times(figures, setup, model, static_cast<int>(*runs));
  report_c_interface(figures, setup, model, static_cast<int>(*runs));
  return finish(figures, argc, argv);
}

}  // namespace
}  // namespace foretune::bench

int main(int argc, char** argv) { return foretune::bench::run(argc, argv); }
