// The fast mode against the exact model, group k-fold, on recorded Triton measurements or on
// cpu-gemm data, where the picks are timed against each other and the best measured config,
// interleaved:
//
//   build/bench/bench/fast_mode --data triton_mm_bf16.csv.gz [--folds 5] [--json FILE]
//   build/bench/bench/fast_mode --training-data FOLDER [--isa avx512] [--rounds 5]
//   ... [--hidden 48] [--problems 16000] [--max-regret 0.1]
#include <cstdio>
#include <memory>
#include <string>

#include "bench/bench_json.h"
#include "bench/fast_mode.h"
#include "bench/training_data.h"
#include "foretune/families/families.h"
#include "foretune/measure/measure.h"

namespace foretune {
namespace {

// Times the configs on this machine, one run of each in turn.
Result<bench::Timer> live_timer(const Fingerprint& fingerprint, const std::string& isa,
                                int rounds) {
  FORETUNE_TRY(std::shared_ptr<const Family> family,
               create_family("cpu-gemm", {.fingerprint = fingerprint,
                                          .data_path = {},
                                          .parameters = {{"isa", isa}, {"threads", "1"}}}));
  Context context;
  context.machine = family->info().fingerprint.digest();
  context.device = family->info().fingerprint.device;
  context.threads = 1;
  std::shared_ptr<Measurer> measurer = make_local_measurer(family, Protocol{}, context);
  return bench::Timer([measurer, rounds](const Problem& problem, std::span<const Config> configs) {
    std::vector<double> out;
    for (const Measurement& measured : measurer->compare(problem, configs, rounds)) {
      const MetricValue* time = measured.find(kTimeNs);
      out.push_back(measured.outcome == Outcome::kOk && time != nullptr ? time->value : 0);
    }
    return out;
  });
}

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
        live_timer(dataset.header().fingerprint, bench::argument(argc, argv, "isa", "avx512"),
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
