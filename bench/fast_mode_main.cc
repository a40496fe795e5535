// The fast mode against the exact model, group k-fold, on recorded Triton measurements or on
// cpu-gemm data, where the picks are timed against each other and the best measured config,
// interleaved:
//
//   build/bench/bench/fast_mode --data triton_mm_bf16.csv.gz [--folds 5] [--json FILE]
//   build/bench/bench/fast_mode --training-data FOLDER [--isa avx512] [--rounds 5]
//   ... [--hidden 48] [--problems 16000] [--max-regret 0.1]

#include "bench/bench_json.h"
#include "bench/fast_mode.h"
#include "bench/training_data.h"

namespace foretune {
namespace {

Status run(int argc, char** argv, Figures& figures) {
  bench::FastModeOptions options;
  options.folds = bench::count_argument(argc, argv, "folds", options.folds);
  options.hidden = bench::count_argument(argc, argv, "hidden", options.hidden);
  options.problems = bench::count_argument(argc, argv, "problems", options.problems);
  options.max_regret = bench::number_argument(argc, argv, "max-regret", options.max_regret);
  FORETUNE_TRY(const Dataset dataset, bench::read_training_data(argc, argv));
  if (dataset.header().family == "recorded") {
    FORETUNE_TRY_STATUS(
        bench::report_fast_mode(figures, dataset, bench::recorded_timer(dataset), options));
  } else {
    FORETUNE_TRY(
        const bench::Timer timer,
        bench::live_timer("cpu-gemm",
                          {.fingerprint = dataset.header().fingerprint,
                           .data_path = {},
                           .parameters = {{"isa", bench::argument(argc, argv, "isa", "avx512")},
                                          {"threads", "1"}}},
                          static_cast<int>(bench::count_argument(argc, argv, "rounds", 5U))));
    FORETUNE_TRY_STATUS(bench::report_fast_mode(figures, dataset, timer, options));
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("fast_mode", argc, argv, &foretune::run);
}
