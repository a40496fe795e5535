// Multiplies matrices through the dispatcher: which kernel runs is decided per problem by a shipped
// model, then by trials on the calls themselves, and kept for the next process in a data set.
//
//   multiply [trials.ftd]
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "foretune/dispatch/gemm_dispatch.h"
#include "foretune/dispatch/sgemm.h"

namespace {

using foretune::Decision;
using foretune::GemmDispatcher;
using foretune::GemmLayout;
using foretune::GemmProblem;
using foretune::Result;
using foretune::Status;

// One matrix as a network has it: inputs by rows, weights by output.
struct Layer {
  std::int64_t rows;
  std::int64_t outputs;
  std::int64_t inputs;
};

Status multiply(GemmDispatcher& dispatcher, const Layer& layer, int calls) {
  FORETUNE_TRY(
      const GemmProblem problem,
      GemmProblem::create(
          {.m = layer.rows, .n = layer.outputs, .k = layer.inputs, .layout = GemmLayout::kRcr}));
  const std::vector<float> input(static_cast<std::size_t>(layer.rows * layer.inputs), 0.5F);
  const std::vector<float> weights(static_cast<std::size_t>(layer.outputs * layer.inputs), 0.25F);
  std::vector<float> output(static_cast<std::size_t>(layer.rows * layer.outputs));
  const auto start = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) {
    FORETUNE_TRY_STATUS(dispatcher.run(problem, {.a = input.data(),
                                                 .a_stride = layer.inputs,
                                                 .b = weights.data(),
                                                 .b_stride = layer.inputs,
                                                 .c = output.data(),
                                                 .c_stride = layer.outputs}));
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  FORETUNE_TRY(const Decision decision, dispatcher.dispatcher().decision(problem.to_problem()));
  std::printf("%-42s %7.1f GFLOP/s  C[0] = %g\n  %s, by: %s\n", problem.to_problem().text().c_str(),
              calls * problem.flops() / elapsed.count() / 1e9, static_cast<double>(output[0]),
              decision.config_text.c_str(), std::string(to_string(decision.source)).c_str());
  return {};
}

Status run(const char* trials) {
  // Models are shipped for one thread; without one the textbook's config runs and nothing is tried.
  FORETUNE_TRY(const auto dispatcher,
               GemmDispatcher::for_this_cpu(
                   {.threads = 1, .dispatch = {.measure_top = 6, .keep_trials = true}}));
  if (trials != nullptr) {
    std::size_t remembered = 0;
    if (std::filesystem::exists(trials)) {  // there is none in the first process
      FORETUNE_TRY(remembered, dispatcher->dispatcher().load_choices(trials));
    }
    std::printf("%zu choices remembered\n", remembered);
  }
  for (const Layer& layer : {Layer{1, 1024, 1024}, Layer{32, 1024, 1024}, Layer{256, 1024, 512}}) {
    FORETUNE_TRY_STATUS(multiply(*dispatcher, layer, 40));
  }
  if (trials != nullptr) {
    FORETUNE_TRY(const std::size_t appended,
                 dispatcher->dispatcher().append_trials(trials, "cpu-gemm"));
    std::printf("%zu measurements appended\n", appended);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (const Status status = run(argc > 1 ? argv[1] : nullptr); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  // The same from C, with BLAS's arguments.
  const float a[] = {1, 2, 3, 4};  // NOLINT(*-avoid-c-arrays)
  const float b[] = {5, 6, 7, 8};  // NOLINT(*-avoid-c-arrays)
  float c[4] = {};                 // NOLINT(*-avoid-c-arrays)
  const int info = foretune_sgemm(FORETUNE_ROW_MAJOR, FORETUNE_NO_TRANS, FORETUNE_TRANS, 2, 2, 2, 1,
                                  a, 2, b, 2, 0, c, 2);
  std::printf("foretune_sgemm: %d, C = %g %g %g %g\n", info, static_cast<double>(c[0]),
              static_cast<double>(c[1]), static_cast<double>(c[2]), static_cast<double>(c[3]));
  return info;
}
