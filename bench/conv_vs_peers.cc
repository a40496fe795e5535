// The cpu-conv family beside oneDNN: layers of the built-in networks in three directions, with the
// config that a short tuning finds, timed in turn, round by round. oneDNN runs in the layouts that
// it prefers; its primitives and reorders are made before the clock runs, and a column has it with
// the reorders of inputs and outputs inside. Weights are packed before on both sides, except where
// they are what is computed. Every contender's first result is compared with the definition.
//
//   conv_vs_peers [--images 1] [--threads 1] [--rounds 9] [--tune 5] [--layers 80] [--json FILE]
//                 [--direction forward] [--class depthwise] [--dtype f32] [--peer capped]
//                 [--fuzz N]
//
// With bf16 and i8 (its gradients left out) both sides have results of that type, and there are two
// passes: with oneDNN restricted to the instructions that our kernels use (`_vs_capped`), in a
// process of its own, and without (`_vs_uncapped`); --peer names the only one to run. Inputs of i8
// are from 0 to 127, so that oneDNN takes the same bytes as unsigned ones, its faster way.
//
// --fuzz compares N random convolutions in all types and directions, with configs drawn from the
// space, with the definition first, element by element (`fuzz_mismatches`).
//
// A ratio is our speed over oneDNN's: above 1 is faster.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/contest.h"
#include "bench/conv_contest.h"
#include "bench/conv_peer.h"
#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/families/cpu_conv/cpu_conv.h"
#include "foretune/families/cpu_conv/testing/draw_conv.h"
#include "foretune/hardware/cpu.h"

// Declared here because not every compiler has the header of the library's OpenMP runtime. Weak,
// because the peer may be missing.
extern "C" __attribute__((weak)) void omp_set_num_threads(int threads);  // NOLINT(*-naming)

namespace foretune {
namespace {

// Returns how a type is named in figures.
std::string prefix_of(DataType dtype) {
  return dtype == DataType::kF32 ? "" : dtype == DataType::kI8 ? "int8_" : "bf16_";
}

// Measures all layers; `peer` says which oneDNN, empty for f32.
Status measure(int argc, char** argv, DataType dtype, const std::string& peer, Figures& figures) {
  const auto threads = bench::count_argument(argc, argv, "threads", 1U);
  const auto rounds = bench::count_argument(argc, argv, "rounds", 9U);
  const auto images = bench::count_argument(argc, argv, "images", 1U);
  const auto count = bench::count_argument<std::size_t>(argc, argv, "layers", 80);
  const double seconds = bench::number_argument(argc, argv, "tune", 5);
  const std::string only = bench::argument(argc, argv, "class");
  const std::string direction = bench::argument(argc, argv, "direction");
  if (onednn_name().empty()) {
    return fail(ErrorCode::kNotFound, "the benchmarks were built without oneDNN");
  }
  if (omp_set_num_threads != nullptr) {
    omp_set_num_threads(static_cast<int>(threads));
  }
  figures.machine.emplace_back("onednn", onednn_name());
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(read_cpu_facts(), measure_cpu_peaks(0.2));
  options.threads = static_cast<int>(threads);
  FORETUNE_TRY(const std::shared_ptr<const Family> family, create_cpu_conv(options));
  std::printf("beside %s, %u image%s, %u thread%s\n", onednn_name().c_str(), images,
              images == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
  std::map<std::string, std::vector<double>> by_class;
  const std::string suffix = concat("_", threads, "t");
  const std::string prefix = prefix_of(dtype);
  double worst = 0;
  double worst_class = 0;
  for (const ConvOperation operation :
       {ConvOperation::kForward, ConvOperation::kBackwardData, ConvOperation::kBackwardWeight}) {
    const std::string name(to_string(operation));
    if ((!direction.empty() && direction != name) ||
        (dtype == DataType::kI8 && operation != ConvOperation::kForward)) {
      continue;
    }
    std::map<std::string, std::vector<double>> ratios;
    std::vector<double> all;
    std::vector<double> whole;
    std::printf("%s\n  %-12s %-34s %9s %9s %7s %7s  config\n", name.c_str(), "class", "layer",
                "GFLOP/s", "oneDNN", "ratio", "whole");
    for (const bench::ConvLayer& layer : bench::choose_conv_layers(count)) {
      if (!only.empty() && only != layer.of) {
        continue;
      }
      ConvSizes sizes = layer.sizes;
      sizes.n = images;
      sizes.dtype = dtype;
      sizes.operation = operation;
      sizes.weights = operation == ConvOperation::kBackwardWeight ? ConvWeights::kVarying
                                                                  : ConvWeights::kConstant;
      FORETUNE_TRY(const ConvProblem problem, ConvProblem::create(sizes));
      FORETUNE_TRY(const Config config, bench::tuned_config(family, problem.to_problem(), seconds));
      const Result<bench::ConvTimes> times =
          bench::compare_with_peer(*family, problem, config, static_cast<int>(rounds));
      if (!times) {
        std::printf("  %-12s %-34s %s\n", layer.of.c_str(), bench::text_of(sizes).c_str(),
                    times.error().message.c_str());
        if (times.error().code != ErrorCode::kUnsupported) {
          return fail_because(times.error());
        }
        continue;
      }
      const double ratio = times->peer_s / times->ours_s;
      std::printf("  %-12s %-34s %9.1f %9.1f %7.3f %7.3f  %s\n", layer.of.c_str(),
                  bench::text_of(sizes).c_str(), problem.flops() / times->ours_s / 1e9,
                  problem.flops() / times->peer_s / 1e9, ratio, times->peer_whole_s / times->ours_s,
                  to_text(family->info().config_schema, config).c_str());
      std::fflush(stdout);
      figures.add(
          concat("ratio ", prefix, name, " ", bench::text_of(sizes), peer.empty() ? "" : " ", peer),
          ratio);
      ratios[layer.of].push_back(ratio);
      by_class[layer.of].push_back(ratio);
      all.push_back(ratio);
      whole.push_back(times->peer_whole_s / times->ours_s);
      worst = worst == 0 ? ratio : std::min(worst, ratio);
    }
    if (all.empty()) {
      continue;
    }
    std::printf("our speed over oneDNN's, geometric means\n");
    bench::print_ratios("all", all);
    for (const auto& [of, values] : ratios) {
      bench::print_ratios(of, values);
      const double mean = geometric_mean(values);
      worst_class = worst_class == 0 ? mean : std::min(worst_class, mean);
      figures.add(concat(prefix, name, " ", of, peer.empty() ? "" : " ", peer, suffix), mean);
    }
    bench::print_ratios("with reorders", whole);
    if (!peer.empty()) {
      figures.add(concat(prefix, name, "_vs_", peer, suffix), geometric_mean(all));
      continue;
    }
    figures.add(concat(name, "_vs_best", suffix), geometric_mean(all));
    figures.add(concat(name, "_vs_whole", suffix), geometric_mean(whole));
  }
  if (!peer.empty()) {
    return {};
  }
  figures.add("worst_layer", worst);
  figures.add("worst_class", worst_class);
  if (by_class.contains("depthwise")) {
    figures.add(concat("depthwise_vs_best", suffix), geometric_mean(by_class.at("depthwise")));
  }
  return {};
}

// Measures in a child process, where oneDNN is restricted. Its figures come as lines of a file.
Status measure_capped(int argc, char** argv, DataType dtype, Figures& figures) {
  std::FILE* const lines = std::tmpfile();
  if (lines == nullptr) {
    return fail(ErrorCode::kIo, "there is no temporary file");
  }
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    Figures own;
    const Status status = limit_onednn(dtype)
                              ? measure(argc, argv, dtype, "capped", own)
                              : fail(ErrorCode::kUnsupported, "oneDNN cannot be restricted");
    if (!status) {
      std::fprintf(stderr, "%s\n", status.error().message.c_str());
    }
    for (const auto& [name, value] : own.metrics) {
      std::fprintf(lines, "%.17g %s\n", value, name.c_str());
    }
    std::fflush(lines);
    std::fflush(stdout);
    _exit(status ? 0 : 1);
  }
  int outcome = 1;
  if (child < 0 || waitpid(child, &outcome, 0) != child || outcome != 0) {
    std::fclose(lines);
    return fail(ErrorCode::kIo, "the process with the restricted oneDNN failed");
  }
  if (std::fseek(lines, 0, SEEK_SET) != 0) {
    std::fclose(lines);
    return fail(ErrorCode::kIo, "the figures of the restricted oneDNN cannot be read");
  }
  double value = 0;
  std::array<char, 400> name{};
  while (std::fscanf(lines, "%lf %399[^\n]", &value, name.data()) == 2) {
    figures.add(name.data(), value);
  }
  std::fclose(lines);
  return {};
}

// Returns a random problem of any type; not all of them are supported.
ConvProblem draw_typed_problem(Rng& rng) {
  while (true) {
    ConvSizes sizes = cpu_conv::without_skips(cpu_conv::draw_problem(rng).sizes());
    sizes.dtype = std::array{DataType::kF32, DataType::kBf16, DataType::kI8}[rng.below(3)];
    if (sizes.operation == ConvOperation::kForward) {
      sizes.epilogue = static_cast<ConvEpilogue>(rng.below(4));
    }
    if (sizes.dtype != DataType::kF32) {
      sizes.layout = ConvLayout::kChannelsLast;
    }
    if (const auto problem = ConvProblem::create(sizes)) {
      return *problem;
    }
  }
}

Status fuzz(std::size_t count, Figures& figures) {
  FamilyOptions options;
  options.fingerprint = cpu_fingerprint(read_cpu_facts(), {});
  options.threads = 2;
  FORETUNE_TRY(const auto family, create_cpu_conv(options));
  Rng rng(20);
  std::size_t mismatches = 0;
  for (std::size_t done = 0; done < count;) {
    const Problem problem = draw_typed_problem(rng).to_problem();
    if (!family->supports(problem)) {
      continue;
    }
    ++done;
    FORETUNE_TRY(const auto space, family->space(problem));
    FORETUNE_TRY(const Config config, space->sample(rng));
    FORETUNE_TRY(const auto data, family->make_data(problem, rng.next()));
    FORETUNE_TRY(const auto artifact, family->prepare(problem, config));
    FORETUNE_TRY(const std::shared_ptr<Run> run, artifact->bind(problem, *data));
    run->run();
    if (const Support right = data->verify(); !right) {
      ++mismatches;
      std::printf("%s, %s: %s\n", problem.text().c_str(),
                  to_text(family->info().config_schema, config).c_str(), right.reason().c_str());
    }
  }
  std::printf("%zu random convolutions, %zu mismatches\n", count, mismatches);
  figures.add("fuzz_mismatches", static_cast<double>(mismatches));
  return {};
}

Status run(int argc, char** argv, Figures& figures) {
  if (const auto cases = bench::count_argument<std::size_t>(argc, argv, "fuzz", 0); cases > 0) {
    FORETUNE_TRY_STATUS(fuzz(cases, figures));
  }
  const std::string wanted = bench::argument(argc, argv, "dtype", "f32");
  FORETUNE_TRY(const DataType dtype, parse_data_type(wanted));
  if (dtype == DataType::kF32) {
    return measure(argc, argv, dtype, "", figures);
  }
  const std::string peer = bench::argument(argc, argv, "peer");
  if (peer != "uncapped") {
    FORETUNE_TRY_STATUS(measure_capped(argc, argv, dtype, figures));
  }
  return peer == "capped" ? Status() : measure(argc, argv, dtype, "uncapped", figures);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("conv_vs_peers", argc, argv, &foretune::run);
}
