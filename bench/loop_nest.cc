// Compares loop nests compiled from schedules with the multiply-add peak, and with the libraries
// that one would use instead. A short search finds the schedules.
//
//   loop_nest --shapes bench/shapes/loop_test.csv [--isa avx512 | avx2] [--rounds 41]
//             [--search 2.0] [--peers yes] [--threads 1] [--json FILE]
//   loop_nest --convolutions yes [...]
//   loop_nest --fuzz 100000 [--seed 1] [--json FILE]
//
// The first two forms tune every product or convolution among the schedules of the textbook, like
// any family, for at most --search seconds. Then the first schedule (nothing measured), the fastest
// of the first 16, the fastest of all and the libraries run in turns, with probes of the peak
// between them. A share of the peak compares the fastest window of each. With more threads,
// schedules that share them take part, too, as shares of one core's peak, and multiply-adds on all
// threads at once; the peers use one thread. The last form compiles random schedules of random
// computations for AVX2 and AVX-512 and compares results with the interpreter's.
#include "foretune/families/loop_nest/loop_nest.h"

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
#include "foretune/hardware/cpu.h"
#include "foretune/hardware/peak_probes.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/loop/machine/interpreter.h"
#include "foretune/loop/machine/jit.h"
#include "foretune/loop/machine/operands.h"
#include "foretune/loop/machine/testing/loop_samples.h"
#include "foretune/loop/register_tiles.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/tune/tune_problem.h"

namespace foretune {
namespace {

using loop::Computation;
using loop::Jit;
using loop::Kernel;
using loop::Nest;
using loop::VectorUnit;

constexpr double kWindowSeconds = 200e-6;
constexpr std::size_t kFinalists = 12;
// Number of probes after every window, since the clock of a core changes within milliseconds.
constexpr int kProbes = 8;
// No result may lie above this share of the peak: one of the two would be measured wrongly.
constexpr double kMaxShare = 1.02;

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

// Returns the GFLOP/s of independent multiply-adds of the width of `isa`.
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

// Runs as many multiply-adds as a computation has, shared between threads: their upper limit when
// cores share power and other work shares the cores.
Contender shared_probe(CpuIsa isa, double flops, ThreadPool& pool) {
  const hardware_internal::FmaProbe probe = hardware_internal::fma_probe_of(isa);
  const auto rounds =
      static_cast<std::size_t>(flops / probe.flops_per_round / static_cast<double>(pool.threads()));
  return {concat("nothing but multiply-adds, ", pool.threads(), " threads"), [=, &pool] {
            pool.run(pool.threads(),
                     [=](std::size_t) { FORETUNE_CHECK(std::isfinite(probe.run(rounds))); });
          }};
}

// A computation with operands, on which our schedules and the libraries run alike.
class Bench {
 public:
  static Result<std::unique_ptr<Bench>> create(Computation computation, const VectorUnit& unit) {
    FORETUNE_TRY(loop::Operands operands, loop::Operands::create(std::move(computation), 1));
    return std::unique_ptr<Bench>(new Bench(std::move(operands), unit));
  }

  [[nodiscard]] const Computation& computation() const { return operands_.computation(); }
  [[nodiscard]] const Jit& jit() const { return jit_; }
  [[nodiscard]] loop::Operands& operands() { return operands_; }

  // With a pool, parallel loops use its threads.
  Result<std::function<void()>> compile(const Nest& nest, ThreadPool* pool) {
    FORETUNE_TRY(Kernel made, jit_.compile(computation(), nest));
    auto kernel = std::make_shared<Kernel>(std::move(made));
    FORETUNE_TRY(Kernel::Workspace room,
                 kernel->make_workspace(pool == nullptr ? 1 : pool->threads()));
    auto workspace = std::make_shared<Kernel::Workspace>(std::move(room));
    return [this, kernel, workspace, pool] {
      kernel->run(operands_.inputs(), operands_.output().view(), *workspace, pool);
    };
  }
  // Poisons the output before the run, so that the result of an earlier run cannot pass.
  Status verify(const std::function<void()>& run) {
    operands_.poison();
    run();
    const std::string wrong = operands_.wrong_output(jit_);
    return wrong.empty() ? Status() : fail(ErrorCode::kInternal, computation().name, ": ", wrong);
  }

 private:
  Bench(loop::Operands operands, const VectorUnit& unit)
      : operands_(std::move(operands)), jit_(unit) {}

  loop::Operands operands_;
  Jit jit_;
};

struct Found {
  Contender textbook;  // the first schedule, nothing measured
  Contender sixteen;   // the fastest of the first few, which is what a plain grid of tiles gives
  Contender best;
  std::string tree;
  std::size_t tried = 0;
  double search_s = 0;
  double tune_s = 0;  // of the search alone
};

// Returns the schedules of the textbook; with a pool, those that its threads can share.
std::vector<Config> schedules_of(const Bench& bench, const loop::ScheduleSpace& space,
                                 const ThreadPool* pool) {
  std::vector<Config> out;
  for (const Nest& nest : loop::textbook_nests(bench.computation(), bench.jit().unit(), 512)) {
    if (pool == nullptr) {
      out.push_back(space.config({.nest = nest, .cursor = 0}));
    } else if (const auto shared = apply(bench.computation(), nest, loop::Action::parallelize(0))) {
      out.push_back(space.config({.nest = *shared, .cursor = 0}));
    }
  }
  return out;
}

// Measures the schedules in order for as long as there is time, the best of them in turns.
Result<Found> search(Bench& bench, double limit_s, ThreadPool* pool) {
  constexpr std::size_t kGrid = 16;
  const std::size_t threads = pool == nullptr ? 1 : pool->threads();
  FORETUNE_TRY(
      const NestBench nest_bench,
      make_nest_bench(bench.computation(),
                      {.has_textbook_defaults = false, .isa = bench.jit().unit().isa}, threads));
  const auto measurer =
      make_local_measurer(nest_bench.family, Protocol::brief(nest_bench.family->info()),
                          {.threads = static_cast<int>(threads)});
  const auto space = loop::ScheduleSpace::of_loops(bench.computation(), bench.jit().unit());
  TuneOptions options;
  options.strategy.clear();
  options.first = schedules_of(bench, *space, pool);
  options.budget.seconds = limit_s;
  options.finalists = static_cast<int>(kFinalists);
  CollectHooks hooks;
  hooks.now_s = &bench::seconds_now;
  Found found;
  const double begin_s = bench::seconds_now();
  FORETUNE_TRY(const TuneResult tuned, tune_problem(*nest_bench.family, *measurer, nullptr,
                                                    nest_bench.problem, options, hooks));
  found.search_s = bench::seconds_now() - begin_s;
  // The first one is the plain nest, which the family measures by default.
  const std::span<const TuneStep> steps = std::span(tuned.steps).subspan(1);
  found.tried = tuned.steps.size();
  found.tune_s = tuned.steps.back().elapsed_s;
  const auto is_right = [](const TuneStep& step) { return std::isfinite(step.time_ns); };
  const auto first = std::find_if(steps.begin(), steps.end(), is_right);
  if (first == steps.end()) {
    return fail(ErrorCode::kUnsupported, "no schedule of the textbook compiles");
  }
  const auto grid = steps.subspan(0, std::min(kGrid, steps.size()));
  const auto sixteen =
      std::min_element(grid.begin(), grid.end(),
                       [](const TuneStep& a, const TuneStep& b) { return a.time_ns < b.time_ns; });
  const Config& best = tuned.finalists.front().config;
  const auto prepare = [&](const Config& config, Contender& contender) -> Status {
    FORETUNE_TRY(const Nest nest, space->nest(config));
    FORETUNE_TRY(contender.run, bench.compile(nest, pool));
    return bench.verify(contender.run);
  };
  FORETUNE_TRY_STATUS(prepare(first->config, found.textbook));
  FORETUNE_TRY_STATUS(prepare(sixteen->config, found.sixteen));
  FORETUNE_TRY_STATUS(prepare(best, found.best));
  FORETUNE_TRY(const Nest nest, space->nest(best));
  found.tree = tree_text(bench.computation(), nest);
  return found;
}

// Times the compilation of the textbook's first schedules.
void time_compiling(const Bench& bench, std::vector<double>& compile_us) {
  for (const Nest& nest : loop::textbook_nests(bench.computation(), bench.jit().unit(), 64)) {
    const double begin_s = bench::seconds_now();
    if (bench.jit().compile(bench.computation(), nest)) {
      compile_us.push_back(1e6 * (bench::seconds_now() - begin_s));
    }
  }
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

// Over all cases.
struct Totals {
  std::vector<double> compile_us;
  double tried = 0;  // schedules that searches measured
  double tune_s = 0;
};

// A computation to measure, and its form as a product or convolution for the libraries.
struct Case {
  Computation computation;
  std::optional<GemmProblem> gemm;
  std::optional<loop::ConvSizes> conv;
};

// Adds the libraries that support the product, after checking their results.
Status add_peers(const Case& item, Bench& bench, std::vector<std::unique_ptr<Peer>>& peers,
                 std::vector<Contender>& contenders) {
  for (const std::unique_ptr<Peer>& peer : peers) {
    auto run = peer->plan({.m = item.gemm->m(),
                           .n = item.gemm->n(),
                           .k = item.gemm->k(),
                           .a_by_columns = a_by_columns(item.gemm->layout()),
                           .b_by_columns = b_by_columns(item.gemm->layout()),
                           .a = bench.operands().input(0).data(),
                           .b = bench.operands().input(1).data(),
                           .c = bench.operands().output().data()});
    if (run) {
      FORETUNE_TRY_STATUS(bench.verify(run));
      contenders.push_back({peer->name(), std::move(run)});
    }
  }
  return {};
}

Status add_onednn(const loop::ConvSizes& sizes, Bench& bench, std::vector<Contender>& contenders) {
  auto run = prepare_onednn_convolution(sizes, bench.operands().input(0).data(),
                                        bench.operands().input(1).data(),
                                        bench.operands().output().data());
  if (run) {
    FORETUNE_TRY_STATUS(bench.verify(run));
    contenders.push_back({onednn_name(), std::move(run)});
  }
  return {};
}

Status compare(const VectorUnit& unit, const Case& item, const Options& options,
               std::vector<std::unique_ptr<Peer>>& peers, ThreadPool* pool, Shares& shares,
               Totals& totals) {
  FORETUNE_TRY(const std::unique_ptr<Bench> bench, Bench::create(item.computation, unit));
  FORETUNE_TRY(Found found, search(*bench, options.search_s, nullptr));
  time_compiling(*bench, totals.compile_us);
  totals.tried += static_cast<double>(found.tried);
  totals.tune_s += found.tune_s;
  std::vector<Contender> contenders{std::move(found.best), std::move(found.textbook),
                                    std::move(found.sixteen)};
  contenders[0].name = "searched";
  contenders[1].name = "textbook, nothing measured";
  contenders[2].name = "textbook, best of 16";
  if (pool != nullptr) {
    FORETUNE_TRY(Found shared, search(*bench, options.search_s, pool));
    found.tree += shared.tree;
    contenders.push_back(std::move(shared.best));
    contenders.back().name = concat("searched, ", pool->threads(), " threads");
    contenders.push_back(shared_probe(options.isa, item.computation.flops(), *pool));
  }
  if (item.gemm) {
    FORETUNE_TRY_STATUS(add_peers(item, *bench, peers, contenders));
  }
  if (item.conv && !peers.empty()) {
    FORETUNE_TRY_STATUS(add_onednn(*item.conv, *bench, contenders));
  }
  const double flops = item.computation.flops();
  double peak = 0;
  const auto share_of = [&](const Contender& contender) {
    return flops / contender.best_s / 1e9 / peak;
  };
  // Other work slows the core down, so rounds repeat until the probes have seen the peak.
  for (int attempt = 0; attempt < 4; ++attempt) {
    for (int round = 0; round < options.rounds; ++round) {
      for (Contender& contender : contenders) {
        contender.window(kWindowSeconds);
        for (int probe = 0; probe < kProbes; ++probe) {
          peak = std::max(peak, probe_gflops(options.isa));
        }
      }
    }
    if (share_of(contenders.front()) <= kMaxShare) {
      break;
    }
  }
  std::printf("%-44s %7.1f %4zu %5.2f ", item.computation.name.c_str(), peak, found.tried,
              found.search_s);
  for (const Contender& contender : contenders) {
    const double share = share_of(contender);
    if (contender.name == "searched" && share > kMaxShare) {
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
  Totals totals;
  std::printf(
      "shares of the peak (GFLOP/s of one core):\n%-44s %7s %4s %5s  ours, textbook, its best of "
      "16",
      "", "peak", "runs", "s");
  for (const std::unique_ptr<Peer>& peer : peers.found) {
    std::printf(", %s", peer->name().c_str());
  }
  std::printf("\n");
  for (const Case& item : cases) {
    FORETUNE_TRY_STATUS(compare(unit, item, options, peers.found, pool.get(), shares, totals));
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
  std::printf("compiling: %zu schedules, median %.1f us, P99 %.1f us\n", totals.compile_us.size(),
              quantile(totals.compile_us, 0.5), quantile(totals.compile_us, 0.99));
  figures.add(prefix + "compile_p50_us", quantile(totals.compile_us, 0.5));
  figures.add(prefix + "compile_p99_us", quantile(totals.compile_us, 0.99));
  std::printf("tune: %.0f schedules, %.0f a second\n", totals.tried, totals.tried / totals.tune_s);
  figures.add(prefix + "new_states_per_second", totals.tried / totals.tune_s);
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
