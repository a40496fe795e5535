// Loop nests compiled from schedules: how close the best schedule that a short search finds comes
// to the multiply-add peak, beside the libraries that one would use instead.
//
//   loop_nest --shapes bench/shapes/loop_test.csv [--isa avx512 | avx2] [--rounds 41]
//             [--search 2.0] [--peers yes] [--threads 1] [--json FILE]
//   loop_nest --convolutions yes [...]
//   loop_nest --fuzz 100000 [--seed 1] [--json FILE]
//
// The first two: of every product or convolution, the schedules of the textbook, compiled, verified
// and timed for --search seconds at most; then the first of them (nothing measured), the fastest of
// the first 16, the fastest of all and the libraries in turns, with probes of the peak between
// them. A share of the peak is between the fastest window of each. With more threads schedules that
// they share take part, too, as shares of one core's peak, and multiply-adds on all threads at
// once; the peers have one. The last form compiles random schedules of random computations for AVX2
// and AVX-512 and compares results with the interpreter's.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/conv_peer.h"
#include "bench/gemm_peers.h"
#include "foretune/base/check.h"
#include "foretune/base/file.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/base/thread_pool.h"
#include "foretune/dataset/exchange.h"
#include "foretune/environment/workbench.h"
#include "foretune/hardware/cpu.h"
#include "foretune/hardware/peak_probes.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/loop/machine/interpreter.h"
#include "foretune/loop/machine/jit.h"
#include "foretune/loop/machine/loop_samples.h"
#include "foretune/loop/register_tiles.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using environment::Workbench;
using loop::Computation;
using loop::Jit;
using loop::Kernel;
using loop::Nest;
using loop::VectorUnit;

constexpr double kWindowSeconds = 200e-6;
constexpr double kSearchWindowSeconds = 50e-6;
constexpr std::size_t kFinalists = 12;
// After every window: the clock of a core changes within milliseconds.
constexpr int kProbes = 8;
// No result may lie above this share of the peak: one of the two would be measured wrongly.
constexpr double kMostShare = 1.02;

struct Contender {
  std::string name;
  std::function<void()> run;
  double best_s = 1e9;

  void window(double seconds) {
    const double start_s = bench::seconds_now();
    run();
    const double once_s = bench::seconds_now() - start_s;
    best_s = std::min(best_s, once_s);
    const int repeats = static_cast<int>(seconds / once_s);
    if (repeats < 2) {
      return;
    }
    const double begin_s = bench::seconds_now();
    for (int i = 0; i < repeats; ++i) {
      run();
    }
    best_s = std::min(best_s, (bench::seconds_now() - begin_s) / repeats);
  }
};

// GFLOP/s of multiply-adds that wait for nothing, of the width that is compared with.
double probe_gflops(CpuIsa isa) {
  // Some 40 us: a tenth of that reads several percent less, starting and adding up the sums
  // included.
  constexpr std::size_t kProbeRounds = 12000;
  const hardware_internal::FmaProbe probe = hardware_internal::fma_probe_of(isa);
  const double begin_s = bench::seconds_now();
  const double sum = probe.run(kProbeRounds);
  const double taken_s = bench::seconds_now() - begin_s;
  const double flops = static_cast<double>(kProbeRounds) * probe.flops_per_round;
  return std::isfinite(sum) ? flops / taken_s / 1e9 : 0;
}

// As many multiply-adds as a computation has, shared between threads: what they can do at most,
// where cores share power and are shared with others.
Contender shared_probe(CpuIsa isa, double flops, ThreadPool& pool) {
  const hardware_internal::FmaProbe probe = hardware_internal::fma_probe_of(isa);
  const auto rounds =
      static_cast<std::size_t>(flops / probe.flops_per_round / static_cast<double>(pool.threads()));
  return {concat("nothing but multiply-adds, ", pool.threads(), " threads"), [=, &pool] {
            pool.run(pool.threads(),
                     [=](std::size_t) { FORETUNE_CHECK(std::isfinite(probe.run(rounds))); });
          }};
}

struct Found {
  Contender textbook;  // the first schedule, nothing measured
  Contender sixteen;   // the fastest of the first few, which is what a plain grid of tiles gives
  Contender best;
  std::string tree;
  std::size_t tried = 0;
  double search_s = 0;
  std::vector<double> compile_us;
};

// With a pool: schedules whose outermost loop its threads can share.
Result<Found> search(Workbench& workbench, double limit_s, ThreadPool* pool) {
  Found found;
  const double begin_s = bench::seconds_now();
  std::vector<std::pair<Contender, Nest>> tried;
  for (Nest nest : loop::textbook_nests(workbench.computation(), workbench.jit().unit(), 512)) {
    if (bench::seconds_now() - begin_s > 0.8 * limit_s && !tried.empty()) {
      break;
    }
    if (pool != nullptr) {
      const auto shared = apply(workbench.computation(), nest, loop::Action::parallelize(0));
      if (!shared) {
        continue;
      }
      nest = *shared;
    }
    const double compile_begin_s = bench::seconds_now();
    auto run = workbench.compile(nest, pool);
    if (!run) {
      continue;
    }
    found.compile_us.push_back(1e6 * (bench::seconds_now() - compile_begin_s));
    workbench.poison();
    (*run)();
    FORETUNE_TRY_STATUS(workbench.verify());
    Contender contender{"", *std::move(run)};
    contender.window(kSearchWindowSeconds);
    contender.window(kSearchWindowSeconds);
    tried.emplace_back(std::move(contender), nest);
  }
  if (tried.empty()) {
    return fail(ErrorCode::kUnsupported, "no schedule of the textbook compiles");
  }
  found.textbook = tried.front().first;
  constexpr std::ptrdiff_t kGrid = 16;
  const auto by_time = [](const auto& a, const auto& b) { return a.first.best_s < b.first.best_s; };
  found.sixteen =
      std::min_element(tried.begin(), tried.begin() + std::min(kGrid, std::ssize(tried)), by_time)
          ->first;
  found.tried = tried.size();
  std::stable_sort(tried.begin(), tried.end(), by_time);
  tried.resize(std::min(tried.size(), kFinalists));
  for (auto& [contender, nest] : tried) {
    contender.best_s = 1e9;
  }
  const double final_begin_s = bench::seconds_now();
  do {
    for (auto& [contender, nest] : tried) {
      contender.window(kWindowSeconds);
    }
  } while (bench::seconds_now() - final_begin_s < 0.2 * limit_s);
  const auto best = std::min_element(tried.begin(), tried.end(), by_time);
  found.best = best->first;
  found.tree = tree_text(workbench.computation(), best->second);
  found.search_s = bench::seconds_now() - begin_s;
  found.best.best_s = 1e9;
  found.textbook.best_s = 1e9;
  found.sixteen.best_s = 1e9;
  return found;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += std::log(value);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

struct Options {
  CpuIsa isa = CpuIsa::kAvx512;
  int rounds = 41;
  double search_s = 2;
  bool shows_trees = false;
};

// Shares of the peak, by contender.
using Shares = std::map<std::string, std::vector<double>>;

// What is measured; a product of which libraries know more than a computation says.
struct Case {
  Computation computation;
  std::optional<GemmProblem> gemm;
  std::optional<loop::ConvSizes> conv;
};

// The libraries that do such products, checked.
Status add_peers(const Case& item, Workbench& workbench, std::vector<std::unique_ptr<Peer>>& peers,
                 std::vector<Contender>& contenders) {
  for (const std::unique_ptr<Peer>& peer : peers) {
    auto run = peer->plan({.m = item.gemm->m(),
                           .n = item.gemm->n(),
                           .k = item.gemm->k(),
                           .a_by_columns = a_by_columns(item.gemm->layout()),
                           .b_by_columns = b_by_columns(item.gemm->layout()),
                           .a = workbench.input(0).data(),
                           .b = workbench.input(1).data(),
                           .c = workbench.output().data()});
    if (run) {
      workbench.poison();  // else what ran before it would pass for it
      run();
      FORETUNE_TRY_STATUS(workbench.verify());
      contenders.push_back({peer->name(), std::move(run)});
    }
  }
  return {};
}

Status add_onednn(const loop::ConvSizes& sizes, Workbench& workbench,
                  std::vector<Contender>& contenders) {
  auto run = prepare_onednn_convolution(sizes, workbench.input(0).data(), workbench.input(1).data(),
                                        workbench.output().data());
  if (run) {
    workbench.poison();
    run();
    FORETUNE_TRY_STATUS(workbench.verify());
    contenders.push_back({onednn_name(), std::move(run)});
  }
  return {};
}

Status compare(const VectorUnit& unit, const Case& item, const Options& options,
               std::vector<std::unique_ptr<Peer>>& peers, ThreadPool* pool, Shares& shares,
               std::vector<double>& compile_us) {
  FORETUNE_TRY(const std::unique_ptr<Workbench> workbench,
               Workbench::create(item.computation, unit));
  FORETUNE_TRY(Found found, search(*workbench, options.search_s, nullptr));
  compile_us.insert(compile_us.end(), found.compile_us.begin(), found.compile_us.end());
  std::vector<Contender> contenders{std::move(found.best), std::move(found.textbook),
                                    std::move(found.sixteen)};
  contenders[0].name = "searched";
  contenders[1].name = "textbook, nothing measured";
  contenders[2].name = "textbook, best of 16";
  if (pool != nullptr) {
    FORETUNE_TRY(Found shared, search(*workbench, options.search_s, pool));
    found.tree += shared.tree;
    contenders.push_back(std::move(shared.best));
    contenders.back().name = concat("searched, ", pool->threads(), " threads");
    contenders.push_back(shared_probe(options.isa, item.computation.flops(), *pool));
  }
  if (item.gemm) {
    FORETUNE_TRY_STATUS(add_peers(item, *workbench, peers, contenders));
  }
  if (item.conv && !peers.empty()) {
    FORETUNE_TRY_STATUS(add_onednn(*item.conv, *workbench, contenders));
  }
  const double flops = item.computation.flops();
  double peak = 0;
  const auto share_of = [&](const Contender& contender) {
    return flops / contender.best_s / 1e9 / peak;
  };
  // A core that others slow down shows its peak only now and then: until the probes have seen it.
  for (int attempt = 0; attempt < 4; ++attempt) {
    for (int round = 0; round < options.rounds; ++round) {
      for (Contender& contender : contenders) {
        contender.window(kWindowSeconds);
        for (int probe = 0; probe < kProbes; ++probe) {
          peak = std::max(peak, probe_gflops(options.isa));
        }
      }
    }
    if (share_of(contenders.front()) <= kMostShare) {
      break;
    }
  }
  std::printf("%-44s %7.1f %4zu %5.2f ", item.computation.name.c_str(), peak, found.tried,
              found.search_s);
  for (const Contender& contender : contenders) {
    const double share = share_of(contender);
    if (contender.name == "searched" && share > kMostShare) {
      return fail(ErrorCode::kInternal, "a schedule runs at ", fixed(share, 3), " of the peak");
    }
    shares[contender.name].push_back(share);
    std::printf(" %6.3f", share);
  }
  std::printf("\n");
  if (options.shows_trees) {
    std::printf("%s", found.tree.c_str());
  }
  std::fflush(stdout);
  return {};
}

Result<std::vector<Case>> read_products(const std::string& path) {
  FORETUNE_TRY(const std::string text, read_text_file(path));
  FORETUNE_TRY(const std::vector<Problem> problems, parse_shape_set(text));
  std::vector<Case> cases;
  for (const Problem& problem : problems) {
    FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
    FORETUNE_TRY(Computation computation,
                 loop::matmul({.m = gemm.m(),
                               .n = gemm.n(),
                               .k = gemm.k(),
                               .batch = gemm.batch(),
                               .transpose_a = a_by_columns(gemm.layout()),
                               .transpose_b = b_by_columns(gemm.layout())}));
    cases.push_back({std::move(computation), gemm});
  }
  return cases;
}

// Layers of ResNet-50 (He et al. 2016) and MobileNetV2 (Sandler et al. 2018), one image.
Result<std::vector<Case>> convolutions() {
  struct Layer {
    std::int64_t channels, out_channels, size, kernel, stride, groups;
  };
  std::vector<Case> cases;
  for (const Layer& layer :
       {Layer{3, 64, 224, 7, 2, 1}, Layer{64, 64, 56, 3, 1, 1}, Layer{64, 256, 56, 1, 1, 1},
        Layer{128, 128, 56, 3, 2, 1}, Layer{128, 128, 28, 3, 1, 1}, Layer{256, 256, 14, 3, 1, 1},
        Layer{1024, 256, 14, 1, 1, 1}, Layer{512, 512, 7, 3, 1, 1}, Layer{24, 144, 56, 1, 1, 1},
        Layer{144, 144, 56, 3, 1, 144}, Layer{144, 144, 56, 3, 2, 144},
        Layer{960, 320, 7, 1, 1, 1}}) {
    const loop::ConvSizes sizes{.channels = layer.channels,
                                .out_channels = layer.out_channels,
                                .height = layer.size,
                                .width = layer.size,
                                .kernel_height = layer.kernel,
                                .kernel_width = layer.kernel,
                                .stride = layer.stride,
                                .pad = layer.kernel / 2,
                                .groups = layer.groups,
                                .channels_last = true};
    FORETUNE_TRY(Computation computation, loop::conv2d(sizes));
    cases.push_back({std::move(computation), std::nullopt, sizes});
  }
  return cases;
}

Status run_cases(int argc, char** argv, const std::vector<Case>& cases, Figures& figures) {
  Options options;
  const std::string isa = bench::argument(argc, argv, "isa", to_string(best_cpu_isa()));
  const std::optional<CpuIsa> known = parse_cpu_isa(isa);
  if (!known || *known < CpuIsa::kAvx2 || *known > best_cpu_isa()) {
    return fail(ErrorCode::kUnsupported, "there is no machine code for ", isa, " here");
  }
  options.isa = *known;
  options.rounds = static_cast<int>(bench::count_argument<unsigned>(argc, argv, "rounds", 41));
  options.search_s = bench::number_argument(argc, argv, "search", 2);
  options.shows_trees = !bench::argument(argc, argv, "trees").empty();
  Peers peers;
  if (bench::argument(argc, argv, "peers", "yes") == "yes") {
    peers = load_peers(1);
  }
  const VectorUnit unit = VectorUnit::of(options.isa);
  const auto threads = bench::count_argument<std::size_t>(argc, argv, "threads", 1);
  const std::unique_ptr<ThreadPool> pool =
      threads > 1 ? std::make_unique<ThreadPool>(threads) : nullptr;
  Shares shares;
  std::vector<double> compile_us;
  std::printf(
      "shares of the peak (GFLOP/s of one core):\n%-44s %7s %4s %5s  ours, textbook, its best of "
      "16",
      "", "peak", "runs", "s");
  for (const std::unique_ptr<Peer>& peer : peers.found) {
    std::printf(", %s", peer->name().c_str());
  }
  std::printf("\n");
  for (const Case& item : cases) {
    FORETUNE_TRY_STATUS(compare(unit, item, options, peers.found, pool.get(), shares, compile_us));
  }
  std::printf("%-40s %9s %8s\n", "", "geomean", "least");
  for (const auto& [name, values] : shares) {
    std::printf("%-40s %9.3f %8.3f  of the peak\n", name.c_str(), geometric_mean(values),
                *std::min_element(values.begin(), values.end()));
  }
  const std::string prefix = options.isa == CpuIsa::kAvx2 ? "avx2_" : "";
  const std::vector<double>& ours = shares["searched"];
  figures.add(prefix + "geomean_share_of_peak", geometric_mean(ours));
  figures.add(prefix + "min_share_of_peak", *std::min_element(ours.begin(), ours.end()));
  std::printf("compiling: %zu schedules, median %.1f us, P99 %.1f us\n", compile_us.size(),
              quantile(compile_us, 0.5), quantile(compile_us, 0.99));
  figures.add(prefix + "compile_p50_us", quantile(compile_us, 0.5));
  figures.add(prefix + "compile_p99_us", quantile(compile_us, 0.99));
  return {};
}

// -- random schedules --

struct Tally {
  std::uint64_t compiled = 0;
  std::uint64_t refused = 0;
  std::uint64_t wrong = 0;
  std::vector<double> compile_us;
};

Status fuzz_one(const Jit& jit, const Computation& computation, const Nest& nest,
                const loop::Inputs& inputs, const std::vector<double>& expected, Tally& tally) {
  const double begin_s = bench::seconds_now();
  const Result<Kernel> kernel = loop::compile_what_fits(jit, computation, nest);
  tally.compile_us.push_back(1e6 * (bench::seconds_now() - begin_s));
  if (!kernel) {
    ++tally.refused;
    return {};
  }
  FORETUNE_TRY(Kernel::Workspace workspace, kernel->make_workspace(1));
  constexpr std::size_t kGuard = 64;
  constexpr float kPattern = -12345.5F;
  std::vector<float> memory(2 * kGuard + static_cast<std::size_t>(computation.output.elements()),
                            kPattern);
  const std::span output = std::span(memory).subspan(kGuard, memory.size() - 2 * kGuard);
  kernel->run(inputs, output, workspace);
  std::string wrong = loop::difference(computation, expected, output);
  for (std::size_t i = 0; i < kGuard; ++i) {
    if (memory[i] != kPattern || memory[memory.size() - 1 - i] != kPattern) {
      wrong = "it writes beyond the output";
    }
  }
  ++tally.compiled;
  if (!wrong.empty()) {
    ++tally.wrong;
    std::printf("%s: %s\n%s\n", computation.name.c_str(), wrong.c_str(),
                tree_text(computation, nest).c_str());
  }
  return {};
}

Status run_fuzz(int argc, char** argv, std::uint64_t count, Figures& figures) {
  const auto seed = bench::count_argument<std::uint64_t>(argc, argv, "seed", 1);
  std::vector<std::unique_ptr<Jit>> jits;
  for (const CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa <= best_cpu_isa()) {
      jits.push_back(std::make_unique<Jit>(VectorUnit::of(isa)));
    }
  }
  constexpr std::size_t kActions = 12;
  Tally tally;
  const Rng root(seed);
  for (std::uint64_t i = 0; i < count; ++i) {
    Rng rng = root.split(i);
    const Computation computation = loop::random_computation(rng);
    const Nest nest = loop::random_nest(computation, rng, kActions);
    const std::vector<std::vector<float>> values = loop::whole_inputs(computation, rng);
    const loop::Inputs inputs(values.begin(), values.end());
    const std::vector<double> expected = loop::reference(computation, inputs);
    for (const std::unique_ptr<Jit>& jit : jits) {
      FORETUNE_TRY_STATUS(fuzz_one(*jit, computation, nest, inputs, expected, tally));
    }
  }
  std::printf(
      "%llu random schedules, %zu instruction sets: %llu compiled and run, %llu refused, "
      "%llu wrong; compiling takes %.1f us, P99 %.1f us\n",
      static_cast<unsigned long long>(count), jits.size(),
      static_cast<unsigned long long>(tally.compiled),
      static_cast<unsigned long long>(tally.refused), static_cast<unsigned long long>(tally.wrong),
      quantile(tally.compile_us, 0.5), quantile(tally.compile_us, 0.99));
  figures.add("fuzzed_schedules", static_cast<double>(count));
  figures.add("fuzz_mismatches", static_cast<double>(tally.wrong));
  return tally.wrong == 0 ? Status() : fail(ErrorCode::kInternal, "results differ");
}

Status run(int argc, char** argv, Figures& figures) {
  const auto fuzz = bench::count_argument<std::uint64_t>(argc, argv, "fuzz", 0);
  const std::string shapes = bench::argument(argc, argv, "shapes");
  const bool has_convolutions = !bench::argument(argc, argv, "convolutions").empty();
  if (fuzz > 0) {
    return run_fuzz(argc, argv, fuzz, figures);
  }
  if (shapes.empty() && !has_convolutions) {
    return fail(ErrorCode::kInvalidArgument, "give --shapes, --convolutions or --fuzz");
  }
  FORETUNE_TRY(const std::vector<Case> cases,
               has_convolutions ? convolutions() : read_products(shapes));
  return run_cases(argc, argv, cases, figures);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("loop_nest", argc, argv, foretune::run);
}
