// How close the cpu-gemm family comes to the hardware, and how much there is to gain by choosing:
// measures every legal config (or a sample of them) of a few shapes, re-measures the best ones in
// turn, and prints their share of the measured multiply-add peak, how many configs are legal, and
// what the best single config would lose against the best of each shape. The peak is the best short
// burst of multiply-adds; what the clock sustains is lower, so the rate of a micro-kernel on
// operands in the L1 cache, for as long as a product takes, is measured beside it.
//
//   gemm_peak [--threads 1|2] [--configs 400] [--shapes 512x512x512,1x4096x4096] [--json FILE]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/families/cpu_gemm/cpu_gemm.h"
#include "foretune/hardware/cpu.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/problem/gemm.h"

namespace foretune {
namespace {

constexpr std::string_view kDefaultShapes =
    "1x4096x4096,8x8x8,8x3000x1000,32x4096x512,64x64x64,100x100x100,256x256x256,512x512x512,"
    "768x768x768,1024x1024x1024,1000x7x3000,2048x64x64,1024x1024x8,4096x4096x4";
constexpr std::size_t kFinalists = 12;
constexpr std::size_t kFinalRounds = 7;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Timed {
  Config config;
  double seconds = 0;
};

struct ShapeResult {
  GemmProblem problem;
  std::size_t legal = 0;
  std::vector<Timed> configs;  // best first
};

// GFLOP/s of a two-vector micro-kernel that finds its operands in the L1 cache: median of windows
// of a few milliseconds.
double kernel_gflops() {
  const KernelSet& kernels = *kernel_set(best_cpu_isa());
  constexpr int kVectors = 2;
  constexpr std::ptrdiff_t kDepth = 256;
  const int rows = std::min(12, max_kernel_rows(kernels.isa, kVectors));
  const std::ptrdiff_t columns = kVectors * kernels.lanes;
  const MicroKernel kernel =
      kernels.find({.rows = rows, .vectors = kVectors, .a_by_columns = true, .tail = false});
  std::vector<float> values(static_cast<std::size_t>((rows + columns) * kDepth + rows * columns),
                            0.5F);
  const MicroKernelCall call{.a = values.data(),
                             .a_stride = rows,
                             .b = values.data() + rows * kDepth,
                             .b_stride = columns,
                             .c = values.data() + (rows + columns) * kDepth,
                             .c_stride = columns,
                             .k = kDepth};
  constexpr int kCalls = 4000;
  std::vector<double> rates;
  for (int window = 0; window < 15; ++window) {
    const double start = seconds_now();
    for (int i = 0; i < kCalls; ++i) {
      kernel(call);
    }
    rates.push_back(2.0 * rows * static_cast<double>(columns * kDepth) * kCalls /
                    (seconds_now() - start) / 1e9);
  }
  return median(rates);
}

// The shortest of a few windows of at least `window` seconds; gives up after the first run when it
// is over `limit`.
double best_time(Run& run, double window, int windows, double limit) {
  double start = seconds_now();
  run.run();
  double best = seconds_now() - start;
  if (best > limit) {
    return best;
  }
  const int repeats = std::max(1, static_cast<int>(window / std::max(best, 1e-9)));
  for (int w = 0; w < windows; ++w) {
    start = seconds_now();
    for (int i = 0; i < repeats; ++i) {
      run.run();
    }
    best = std::min(best, (seconds_now() - start) / repeats);
  }
  return best;
}

Result<ShapeResult> measure_shape(const Family& family, const GemmProblem& gemm,
                                  std::size_t max_configs, Rng& rng) {
  const Problem problem = gemm.to_problem();
  FORETUNE_TRY(const std::unique_ptr<Space> space, family.space(problem));
  const EnumerableSpace& listed = *space->enumerable();
  ShapeResult result{.problem = gemm, .legal = static_cast<std::size_t>(listed.count())};
  std::vector<std::uint64_t> ranks(result.legal);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i] = i;
  }
  rng.shuffle(std::span(ranks));
  ranks.resize(std::min(ranks.size(), max_configs));

  FORETUNE_TRY(const std::unique_ptr<ProblemData> data, family.make_data(problem, 1));
  std::vector<std::unique_ptr<Run>> runs;
  std::vector<std::size_t> order;
  double best = 1e9;
  for (const std::uint64_t rank : ranks) {
    const Config config = listed.unrank(rank);
    FORETUNE_TRY(const auto artifact, family.prepare(problem, config));
    FORETUNE_TRY(auto run, artifact->bind(problem, *data));
    const double seconds = best_time(*run, 5e-4, 2, 3 * best);
    best = std::min(best, seconds);
    order.push_back(result.configs.size());
    result.configs.push_back({config, seconds});
    runs.push_back(seconds < 1.5 * best ? std::move(run) : nullptr);
  }
  // The finalists take turns, so that a busy moment of the machine hits them alike.
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return result.configs[a].seconds < result.configs[b].seconds;
  });
  order.resize(std::min(order.size(), kFinalists));
  for (std::size_t round = 0; round < kFinalRounds; ++round) {
    for (const std::size_t i : order) {
      if (runs[i] != nullptr) {
        Timed& timed = result.configs[i];
        timed.seconds = std::min(timed.seconds, best_time(*runs[i], 2e-3, 1, 1e9));
      }
    }
  }
  std::sort(result.configs.begin(), result.configs.end(),
            [](const Timed& a, const Timed& b) { return a.seconds < b.seconds; });
  return result;
}

// The config whose efficiency (best time / its time), averaged over the shapes, is highest. A
// config is the same config for every shape: its canonical form there is looked up or measured.
Result<double> best_single_config(const Family& family, const std::vector<ShapeResult>& results,
                                  std::string& text) {
  std::vector<Config> candidates;
  for (const ShapeResult& result : results) {
    for (std::size_t i = 0; i < std::min<std::size_t>(3, result.configs.size()); ++i) {
      candidates.push_back(result.configs[i].config);
    }
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::map<Config, double> sums;
  for (const ShapeResult& result : results) {
    const Problem problem = result.problem.to_problem();
    FORETUNE_TRY(const auto space, family.space(problem));
    FORETUNE_TRY(const auto data, family.make_data(problem, 1));
    std::map<Config, double> known;
    for (const Timed& timed : result.configs) {
      known[timed.config] = timed.seconds;
    }
    for (const Config& candidate : candidates) {
      if (!space->why_not(candidate)) {
        continue;
      }
      const Config config = space->canonical(candidate);
      if (!known.contains(config)) {
        FORETUNE_TRY(const auto artifact, family.prepare(problem, config));
        FORETUNE_TRY(const auto run, artifact->bind(problem, *data));
        known[config] = best_time(*run, 2e-3, 3, 1e9);
      }
      sums.try_emplace(candidate, 0.0);
      sums[candidate] += std::min(1.0, result.configs.front().seconds / known[config]);
    }
  }
  double best = 0;
  for (const auto& [config, sum] : sums) {
    const double mean_efficiency = sum / static_cast<double>(results.size());
    if (mean_efficiency > best) {
      best = mean_efficiency;
      text = to_text(family.info().config_schema, config);
    }
  }
  return best;
}

Result<std::vector<GemmProblem>> parse_shapes(std::string_view text) {
  std::vector<GemmProblem> out;
  for (const std::string_view shape : split(text, ',')) {
    const auto sizes = split(shape, 'x');
    if (sizes.size() != 3 || !parse_int(sizes[0]) || !parse_int(sizes[1]) || !parse_int(sizes[2])) {
      return fail(ErrorCode::kInvalidArgument, "'", shape, "' is not a shape like 64x128x256");
    }
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::create({.m = *parse_int(sizes[0]),
                                                              .n = *parse_int(sizes[1]),
                                                              .k = *parse_int(sizes[2])}));
    out.push_back(gemm);
  }
  return out;
}

Status run(int argc, char** argv, Figures& figures) {
  const auto threads = parse_int(bench::argument(argc, argv, "threads", "1"));
  const auto configs = parse_uint(bench::argument(argc, argv, "configs", "2000"));
  if (!threads || *threads < 1 || !configs) {
    return fail(ErrorCode::kInvalidArgument, "--threads and --configs take a number");
  }
  FORETUNE_TRY(const auto shapes,
               parse_shapes(bench::argument(argc, argv, "shapes", kDefaultShapes)));
  const CpuPeaks peaks = measure_cpu_peaks(0.5);
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(read_cpu_facts(), peaks);
  options.fingerprint.hardware.set(HardwareValue::kCores, static_cast<double>(*threads));
  FORETUNE_TRY(const auto family, make_cpu_gemm(options));

  Rng rng(1);
  std::vector<ShapeResult> results;
  std::vector<double> shares;
  double sustained = 0;
  std::printf("%-16s %6s %9s %7s  %s\n", "m x n x k", "legal", "GFLOP/s", "peak %", "best config");
  for (const GemmProblem& gemm : shapes) {
    sustained = std::max(sustained, kernel_gflops());
    FORETUNE_TRY(ShapeResult result, measure_shape(*family, gemm, *configs, rng));
    const double gflops = gemm.flops() / result.configs.front().seconds / 1e9;
    const double share =
        100 * gflops /
        (peaks.fma_gflops * static_cast<double>(std::min<std::int64_t>(*threads, 2)));
    const std::string name = concat(gemm.m(), "x", gemm.n(), "x", gemm.k());
    std::printf("%-16s %6zu %9.1f %7.1f  %s\n", name.c_str(), result.legal, gflops, share,
                to_text(family->info().config_schema, result.configs.front().config).c_str());
    std::fflush(stdout);
    figures.add(concat("legal_configs_", name), static_cast<double>(result.legal));
    figures.add(concat("gflops_", name), gflops);
    figures.add(concat("peak_percent_", name), share);
    shares.push_back(share);
    results.push_back(std::move(result));
  }
  std::string single;
  FORETUNE_TRY(const double efficiency, best_single_config(*family, results, single));
  std::printf("peak of one core: %.1f GFLOP/s, sustained by a micro-kernel: %.1f GFLOP/s\n",
              peaks.fma_gflops, sustained);
  std::printf("best single config: %.1f %% of the best of each shape: %s\n", 100 * efficiency,
              single.c_str());
  figures.add("kernel_gflops", sustained);
  figures.add("fma_gflops", peaks.fma_gflops);
  figures.add("best_peak_percent", *std::max_element(shares.begin(), shares.end()));
  figures.add("best_single_config_efficiency", efficiency);
  figures.add("threads", static_cast<double>(*threads));
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  foretune::Figures figures = foretune::bench::make_figures("gemm_peak", argc, argv);
  if (const foretune::Status status = foretune::run(argc, argv, figures); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return foretune::bench::finish(figures, argc, argv);
}
