// The selector beside LightGBM: 500 trees of 127 leaves over 4,608 candidates, on one thread.
//
//   bench/select --data triton_mm_bf16.csv.gz [--forest FILE] [--runs 5] [--json FILE]
//
// The forest is trained on the measurements given (columns m, n, k, dtype, block_m, block_n,
// block_k, group_m, num_stages, num_warps, time_us), or on times by formula without them. FILE
// keeps its text between runs. Our times include computing the features from problem and config;
// LightGBM gets the finished rows. On measurements the fast mode follows, as bench/fast_mode has
// it.
#include "foretune/select/select.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "bench/bench_json.h"
#include "bench/fast_mode.h"
#include "bench/select_figures.h"
#include "bench/select_setup.h"
#include "bench/training_data.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/features/feature_table.h"
#include "foretune/model/forest/forest_body.h"
#include "foretune/model/forest/forest_engine.h"
#include "foretune/model/forest/forest_scorer.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/select/foretune.h"
#include "foretune/space/parametric_space.h"

namespace foretune::bench {
namespace {

constexpr std::size_t kRandomRows = 100'000;

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

Model make_model(const Setup& setup, const SpaceDefinition& space) {
  Model model;
  model.family = "recorded";
  model.problem_schema = find_problem_schema(kGemmProblem)->id();
  model.config_schema = space.schema;
  model.space_text = space.text();
  model.feature_table = std::string(setup.table->name());
  model.feature_table_id = feature_table_id(*setup.table);
  model.fingerprint = h200_fingerprint();
  model.pool = setup.pool;
  model.portfolio = {0};
  set_forests(model, {setup.forest});
  model.target = "log";
  model.problem_range.assign(feature_count(*setup.table, FeatureKind::kProblem), {-1e300, 1e300});
  return model;
}

// ---- figures ------------------------------------------------------------------------------------

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
  report(figures, "model_bytes", static_cast<double>(model_bytes(model).size()),
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
  if (foretune_selector_open(path.c_str(), &selector, message.data(), message.size()) != 0) {
    stop(message.data());
  }
  std::remove(path.c_str());
  std::vector<double> cached;
  foretune_choice choice;
  for (int run = 0; run <= runs; ++run) {
    constexpr int kRepeats = 2000;
    const double ms = milliseconds([&] {
      for (int i = 0; i < (run == 0 ? 1 : kRepeats); ++i) {
        for (const Problem& problem : setup.problems) {
          const foretune_gemm gemm = to_c(problem);
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
  if (!argument(argc, argv, "cold-start").empty()) {
    return run_cold_start(argc, argv);
  }
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
  report_cold_start(figures, argv[0], setup, model, static_cast<int>(*runs));
  report_early_stop(figures, setup);
  report_large_forest(figures, argc, argv, space, static_cast<int>(*runs));
  if (const std::string data = argument(argc, argv, "data"); !data.empty()) {
    const Dataset dataset = must(read_h200(data));
    if (const Status status = report_fast_mode(figures, dataset, recorded_timer(dataset), {});
        !status) {
      stop(status.error().message);
    }
  }
  return finish(figures, argc, argv);
}

}  // namespace
}  // namespace foretune::bench

int main(int argc, char** argv) { return foretune::bench::run(argc, argv); }
