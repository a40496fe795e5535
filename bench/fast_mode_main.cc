// The fast mode against the exact model, group k-fold, on recorded Triton measurements or on
// cpu-gemm data, where the picks are timed against each other and the best measured config,
// interleaved:
//
//   build/bench/bench/fast_mode --data triton_mm_bf16.csv.gz [--folds 5] [--json FILE]
//   build/bench/bench/fast_mode --training-data FOLDER [--isa avx512] [--rounds 5]
//   ... [--hidden 48] [--problems 16000] [--max-regret 0.1]
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "bench/bench_json.h"
#include "bench/fast_mode.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/journal.h"
#include "foretune/families/families.h"
#include "foretune/families/recorded/triton_space.h"
#include "foretune/measure/measure.h"

namespace foretune {
namespace {

Result<Dataset> read_folder(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".ftd") {
      paths.push_back(entry.path());
    }
  }
  if (paths.empty()) {
    return fail(ErrorCode::kNotFound, folder, " holds no data set");
  }
  std::sort(paths.begin(), paths.end());
  FORETUNE_TRY(Dataset dataset, read_dataset(paths[0]));
  for (std::size_t i = 1; i < paths.size(); ++i) {
    FORETUNE_TRY(const Dataset more, read_dataset(paths[i]));
    FORETUNE_TRY_STATUS(dataset.merge(more));
  }
  dataset.deduplicate();
  return dataset;
}

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
      const MetricValue* time = measured.find(MetricId::kTimeNs);
      out.push_back(measured.outcome == Outcome::kOk && time != nullptr ? time->value : 0);
    }
    return out;
  });
}

Result<int> run(int argc, char** argv) {
  const auto number = [&](std::string_view name, std::uint64_t otherwise) {
    return parse_uint(bench::argument(argc, argv, name, concat(otherwise))).value_or(otherwise);
  };
  bench::FastModeOptions options;
  options.folds = static_cast<std::uint32_t>(number("folds", options.folds));
  options.hidden = number("hidden", options.hidden);
  options.problems = number("problems", options.problems);
  options.max_regret =
      parse_double(bench::argument(argc, argv, "max-regret", concat(options.max_regret)))
          .value_or(options.max_regret);
  Figures figures = bench::make_figures("fast_mode", argc, argv);
  const std::string folder = bench::argument(argc, argv, "training-data");
  if (folder.empty()) {
    DatasetHeader header;
    header.family = "recorded";
    header.config_schema = triton_gemm_schema();
    header.space_text = triton_gemm_space().text();
    header.fingerprint = h200_fingerprint();
    FORETUNE_TRY(const Dataset dataset, import_csv(bench::argument(argc, argv, "data"), header));
    FORETUNE_TRY_STATUS(
        bench::report_fast_mode(figures, dataset, bench::recorded_timer(dataset), options));
  } else {
    FORETUNE_TRY(const Dataset dataset, read_folder(folder));
    FORETUNE_TRY(const bench::Timer timer, live_timer(dataset.header().fingerprint,
                                                      bench::argument(argc, argv, "isa", "avx512"),
                                                      static_cast<int>(number("rounds", 5))));
    FORETUNE_TRY_STATUS(bench::report_fast_mode(figures, dataset, timer, options));
  }
  return bench::finish(figures, argc, argv);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  const auto code = foretune::run(argc, argv);
  if (!code) {
    std::fprintf(stderr, "%s\n", code.error().message.c_str());
    return 1;
  }
  return *code;
}
