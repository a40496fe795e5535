// Measures how long neural cost models take to rank the 1,206 configs that PyTorch's exhaustive
// search has for a large bf16 product on an H200 (block sizes 16 to 256, stages 1 to 5, warps 2 to
// 8, those that fit its shared memory), on one core, features included. The lower bound beside it
// is the time of the multiply-adds at the rate that is measured in between.
//
//   build/bench/bench/network_time [--runs 41] [--json FILE]
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "foretune/base/statistics.h"
#include "foretune/model/network/network_int8.h"
#include "foretune/model/network/network_scorer.h"
#include "foretune/model/network/testing/network_samples.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

constexpr std::size_t kWidth = 6;
constexpr std::size_t kWanted = 1206;
constexpr int kCallsInARow = 4;

// Returns the configs as PyTorch 2.11 lists them: warps are limited to one per 256 elements of the
// tile.
std::vector<std::int32_t> exhaustive_configs() {
  constexpr std::int32_t kSharedBytes = 232448;
  std::set<std::vector<std::int32_t>> found;
  for (const std::int32_t m : {16, 32, 64, 128, 256}) {
    for (const std::int32_t n : {16, 32, 64, 128, 256}) {
      for (const std::int32_t k : {16, 32, 64, 128, 256}) {
        for (const std::int32_t stages : {1, 2, 3, 4, 5}) {
          for (const std::int32_t warps : {2, 4, 8}) {
            const bool fits = stages * (m + n) * k * 2 + 128 <= kSharedBytes &&
                              (m * n + 32 * warps - 1) / (32 * warps) <= 255;
            if (fits) {
              found.insert({m, n, k, 8, stages, std::min(warps, m * n / 256)});
            }
          }
        }
      }
    }
  }
  std::vector<std::int32_t> words;
  for (const std::vector<std::int32_t>& config : found) {
    words.insert(words.end(), config.begin(), config.end());
  }
  return words;
}

struct Contender {
  std::string name;
  std::string text;
  double multiply_adds = 0;  // for all candidates
  std::unique_ptr<PreparedPool> pool;
  std::vector<std::byte> workspace;
  std::vector<double> first_us;  // after the other models: the caches hold nothing of this one
  std::vector<double> us;
};

double multiply_adds(const Network& network, std::size_t candidates) {
  double sum = 0;
  if (network.has_towers()) {
    sum = static_cast<double>(network.layers.back().outputs);
  } else {
    for (const DenseLayer& layer : network.layers) {
      sum += static_cast<double>(layer.inputs) * layer.outputs;
    }
    // The parts of the first layer from the problem alone and the config alone are computed once.
    sum -= static_cast<double>(network.problem_width() + network.config_inputs) *
           network.layers.front().outputs;
  }
  return sum * static_cast<double>(candidates);
}

Status run(int argc, char** argv, Figures& figures) {
  const auto runs = bench::count_argument(argc, argv, "runs", 41U);
  Rng rng(1);
  const FeatureTable& table = **find_feature_table("gemm-triton");
  const std::vector<std::int32_t> words = exhaustive_configs();
  const std::size_t candidates = words.size() / kWidth;
  if (candidates != kWanted) {
    return fail(ErrorCode::kInternal, candidates, " configs instead of ", kWanted);
  }
  const Problem problem =
      GemmProblem::create({.m = 2552, .n = 10616, .k = 7616, .dtype = DataType::kBf16})
          ->to_problem();
  std::vector<Contender> all;
  const auto add = [&](const std::string& name, const std::string& text, const Network& network) {
    for (const CpuIsa isa : {CpuIsa::kAvx512, CpuIsa::kAvx2}) {
      if (isa > best_cpu_isa()) {
        continue;
      }
      const auto scorer = network_scorer({network}, table, problem.fields().size(), 0, isa);
      Contender contender{.name = concat(name, isa == CpuIsa::kAvx2 ? "_avx2" : ""),
                          .text = concat(text, ", ", to_string(isa)),
                          .multiply_adds = multiply_adds(network, candidates)};
      contender.pool = *(*scorer)->prepare({words, kWidth}, h200_fingerprint().hardware);
      contender.workspace.resize(contender.pool->workspace_bytes());
      all.push_back(std::move(contender));
    }
  };
  add("deep", "Diode's deep network, 128 wide, 10 blocks", random_deep(table, 128, 10, rng));
  add("deep_int8", "the same with weights of 8 bits",
      *with_int8_weights(random_deep(table, 128, 10, rng)));
  add("standard", "Diode's standard network", random_chain(table, {256, 512, 256, 128, 64}, rng));
  add("standard_int8", "the same with weights of 8 bits",
      *with_int8_weights(random_chain(table, {256, 512, 256, 128, 64}, rng)));
  add("two_tower", "two towers, 128 wide, 32 + 32", random_towers(table, 128, 32, 32, rng));
  std::vector<double> gflops;
  std::vector<double> scores(candidates);
  for (unsigned round = 0; round < runs; ++round) {
    constexpr double kProbeSeconds = 2e-3;
    gflops.push_back(measure_fma_gflops(kProbeSeconds));
    for (Contender& each : all) {
      for (int call = 0; call < kCallsInARow; ++call) {
        const double begin_s = bench::seconds_now();
        each.pool->score(problem, each.workspace, scores, {});
        (call == 0 ? each.first_us : each.us).push_back(1e6 * (bench::seconds_now() - begin_s));
      }
    }
  }
  const auto report = [&](const std::string& name, double value, const std::string& text) {
    std::printf("%-24s %12.4f  %s\n", name.c_str(), value, text.c_str());
    figures.add(name, value);
  };
  report("peak_gflops", median(gflops), "multiply-adds of one core, median");
  for (const Contender& each : all) {
    const double us = median(each.us);
    report(concat(each.name, "_1206_us"), us, each.text);
    report(concat(each.name, "_cold_us"), median(each.first_us), "the first call after others");
    report(concat(each.name, "_of_peak"), 2 * each.multiply_adds / (us * 1e3) / median(gflops),
           "share of that rate");
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("network_time", argc, argv, foretune::run);
}
