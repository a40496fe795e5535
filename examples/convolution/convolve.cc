// Runs layers of a network with kernels that the library chooses, and beside them with the fastest
// of those that it tries out on the first calls.
//
//   convolve [trials.ftd]
//
// The file keeps what was tried: the next process begins with the fastest kernels.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "foretune/dispatch/conv_dispatch.h"

namespace {

using foretune::ConvDispatcher;
using foretune::ConvLayer;
using foretune::ConvProblem;
using foretune::Decision;
using foretune::ErrorCode;
using foretune::Result;
using foretune::Status;

struct Tensors {
  std::vector<float> input;
  std::vector<float> weights;
  std::vector<float> bias;
};

// Squares of one image, filters whose weights stay the same, and bias and ReLU behind them.
foretune::ConvSizes layer(foretune::ConvSizes sizes) {
  sizes.wi = sizes.hi;
  sizes.x = sizes.y;
  sizes.stride_w = sizes.stride_h;
  sizes.pad_w = sizes.pad_h;
  sizes.weights = foretune::ConvWeights::kConstant;
  sizes.epilogue = foretune::ConvEpilogue::kBiasRelu;
  return sizes;
}

std::vector<float> waves(std::int64_t size) {
  std::vector<float> out(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(std::sin(0.1 * static_cast<double>(i)));
  }
  return out;
}

// A layer whose weights are packed once. Returns the shortest time of the last calls, in seconds.
Result<double> run(ConvDispatcher& dispatcher, const ConvProblem& problem, const Tensors& tensors,
                   std::vector<float>& result) {
  FORETUNE_TRY(const std::unique_ptr<ConvLayer> layer, dispatcher.layer(problem));
  FORETUNE_TRY_STATUS(layer->pack(tensors.weights.data()));
  constexpr int kTrials = 30;  // enough for 8 configs, 3 times each
  double best = 1;
  for (int call = 0; call < 2 * kTrials; ++call) {
    const auto start = std::chrono::steady_clock::now();
    FORETUNE_TRY_STATUS(layer->run(
        {.input = tensors.input.data(), .bias = tensors.bias.data(), .result = result.data()}));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = call < kTrials ? best : std::min(best, elapsed.count());
  }
  FORETUNE_TRY(const Decision decision, layer->decision());
  std::printf("  %6.1f GFLOP/s, %s: %s\n", problem.flops() / best / 1e9,
              std::string(to_string(decision.source)).c_str(), decision.config_text.c_str());
  return best;
}

Status compare(const foretune::ConvSizes& sizes, ConvDispatcher& chosen, ConvDispatcher& tried) {
  FORETUNE_TRY(const ConvProblem problem, ConvProblem::create(sizes));
  std::printf("%d channels of %d x %d, %d filters of %d x %d\n", static_cast<int>(sizes.c),
              static_cast<int>(sizes.hi), static_cast<int>(sizes.wi), static_cast<int>(sizes.k),
              static_cast<int>(sizes.y), static_cast<int>(sizes.x));
  const Tensors tensors{.input = waves(problem.input_elements()),
                        .weights = waves(problem.weight_elements()),
                        .bias = waves(sizes.k)};
  std::vector<float> expected(static_cast<std::size_t>(problem.output_elements()));
  std::vector<float> result(expected.size());
  FORETUNE_TRY(const double before, run(chosen, problem, tensors, expected));
  FORETUNE_TRY(const double after, run(tried, problem, tensors, result));
  std::printf("  %.2f times as fast\n", before / after);
  // Kernels add in different orders, so that results differ by roundings.
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (std::abs(result[i] - expected[i]) > 1e-3F * (1 + std::abs(expected[i]))) {
      return foretune::fail(ErrorCode::kInternal, "two kernels differ at element ", i);
    }
  }
  return {};
}

Status run_all(const char* trials) {
  FORETUNE_TRY(const auto chosen, ConvDispatcher::for_this_cpu({.threads = 1}));
  FORETUNE_TRY(const auto tried,
               ConvDispatcher::for_this_cpu(
                   {.threads = 1, .dispatch = {.measure_top = 8, .keep_trials = true}}));
  if (trials != nullptr && std::filesystem::exists(trials)) {  // there is none at first
    FORETUNE_TRY(const std::size_t known, tried->dispatcher().load_choices(trials));
    std::printf("%zu choices of earlier runs\n", known);
  }
  for (const foretune::ConvSizes& sizes :
       {layer({.c = 3, .k = 32, .hi = 64, .y = 3, .stride_h = 2, .pad_h = 1}),
        layer({.c = 64, .k = 64, .hi = 28, .y = 3, .pad_h = 1}),
        layer({.c = 128, .k = 256, .hi = 14})}) {
    FORETUNE_TRY_STATUS(compare(sizes, *chosen, *tried));
  }
  if (trials != nullptr) {
    FORETUNE_TRY(const std::size_t kept, tried->dispatcher().append_trials(trials, "cpu-conv"));
    std::printf("%zu measurements appended to %s\n", kept, trials);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (const Status status = run_all(argc > 1 ? argv[1] : nullptr); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
