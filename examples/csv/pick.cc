// Fills the launch parameters of a kernel from a model that was trained on a CSV file of times.
//
//   pick MODEL M N K
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "foretune/problem/gemm/gemm.h"
#include "foretune/select/select.h"

namespace {

using foretune::ErrorCode;
using foretune::GemmProblem;
using foretune::Result;
using foretune::Selector;

// The parameters of your kernel: the columns of the file that are neither sizes nor times.
struct Launch {
  int block_m = 0;
  int block_n = 0;
  int block_k = 0;
  int num_warps = 0;
};

Result<Launch> launch_for(const Selector& selector, const GemmProblem& gemm) {
  const foretune::Choice choice = selector.select(gemm.to_problem());
  if (!choice.has_candidate) {
    return foretune::fail(ErrorCode::kUnsupported, selector.explain(gemm.to_problem(), choice));
  }
  if (!choice.picked()) {  // still the best guess, but nothing like it was measured
    std::printf("not sure: %s\n", selector.explain(gemm.to_problem(), choice).c_str());
  }
  const foretune::ConfigSchema& schema = selector.model().config_schema;
  Launch launch;
  for (const auto& [name, target] : {std::pair<std::string_view, int*>{"block_m", &launch.block_m},
                                     {"block_n", &launch.block_n},
                                     {"block_k", &launch.block_k},
                                     {"num_warps", &launch.num_warps}}) {
    const auto place = schema.find(name);
    if (!place) {
      return foretune::fail(ErrorCode::kMismatch, "the model has no parameter ", name);
    }
    *target = selector.words(choice.candidate)[*place];
  }
  return launch;
}

Result<Launch> run(const char* model, const std::int64_t (&sizes)[3]) {
  // A program opens the selector once: it answers from any number of threads.
  FORETUNE_TRY(const auto selector, Selector::open(model));
  FORETUNE_TRY(
      const GemmProblem gemm,
      GemmProblem::create(
          {.m = sizes[0], .n = sizes[1], .k = sizes[2], .dtype = foretune::DataType::kBf16}));
  return launch_for(*selector, gemm);
}

bool parse(std::string_view text, std::int64_t& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t sizes[3] = {};
  if (argc != 5 || !parse(argv[2], sizes[0]) || !parse(argv[3], sizes[1]) ||
      !parse(argv[4], sizes[2])) {
    std::fprintf(stderr, "usage: pick MODEL M N K\n");
    return 2;
  }
  const Result<Launch> launch = run(argv[1], sizes);
  if (!launch) {
    std::fprintf(stderr, "%s\n", launch.error().message.c_str());
    return 1;
  }
  std::printf("launch with blocks of %d x %d x %d and %d warps\n", launch->block_m, launch->block_n,
              launch->block_k, launch->num_warps);
  return 0;
}
