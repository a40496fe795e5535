// How well boosted trees pick Triton GEMM configs for problems they never saw: group k-fold over
// the recorded H200 measurements, one forest per fold.
//
//   build/bench/bench/h200_crossval --data triton_mm_bf16.csv.gz [--folds 5] [--leaves 63]
//                                [--trees 1000] [--early-stopping 50] [--learning-rate 0.05]
//                                [--weight-decay 0.5] [--forests 1] [--seed 42] [--json FILE]
#include <cstdio>
#include <string>
#include <utility>

#include "bench/bench_json.h"
#include "foretune/base/statistics.h"
#include "foretune/dataset/exchange.h"
#include "foretune/families/recorded/triton_space.h"
#include "foretune/models/train/trainer.h"

namespace foretune {
namespace {

struct VendorChoice {
  double mean_efficiency = 0;     // best Triton time / vendor's time, where the vendor is slower: 1
  double oracle_over_vendor = 0;  // geometric mean of vendor's time / best Triton time
};

VendorChoice vendor_choice(const Dataset& dataset) {
  std::vector<double> best(dataset.problems().size(), 1e300);
  for (const Dataset::Row& row : dataset.rows()) {
    best[row.problem] = std::min(best[row.problem], static_cast<double>(row.time_ns));
  }
  std::vector<double> ratios;
  for (const Dataset::Baseline& baseline : dataset.baselines()) {
    ratios.push_back(static_cast<double>(baseline.time_ns) / best[baseline.problem]);
  }
  return {0, ratios.empty() ? 0 : geometric_mean(ratios)};
}

double best_single_config(const Dataset& dataset) {
  const std::vector<std::uint32_t> portfolio = greedy_portfolio(dataset, 1);
  std::vector<double> best(dataset.problems().size(), 1e300);
  std::vector<double> single(dataset.problems().size(), 1e300);
  for (const Dataset::Row& row : dataset.rows()) {
    const auto time_ns = static_cast<double>(row.time_ns);
    best[row.problem] = std::min(best[row.problem], time_ns);
    if (row.config == portfolio.front()) {
      single[row.problem] = time_ns;
    }
  }
  double sum = 0;
  for (std::size_t i = 0; i < best.size(); ++i) {
    sum += best[i] / single[i];
  }
  return sum / static_cast<double>(best.size());
}

Result<int> run(int argc, char** argv) {
  DatasetHeader header;
  header.family = "recorded";
  header.config_schema = triton_gemm_schema();
  header.space_text = triton_gemm_space().text();
  header.fingerprint = h200_fingerprint();
  FORETUNE_TRY(const Dataset dataset, import_csv(bench::argument(argc, argv, "data"), header));
  TrainOptions options;
  options.choose_target = bench::argument(argc, argv, "target") == "auto";
  options.gbdt.learning_rate =
      parse_double(bench::argument(argc, argv, "learning-rate", concat(options.gbdt.learning_rate)))
          .value_or(options.gbdt.learning_rate);
  options.weight_decay =
      parse_double(bench::argument(argc, argv, "weight-decay", concat(options.weight_decay)))
          .value_or(options.weight_decay);
  options.seed = parse_uint(bench::argument(argc, argv, "seed", "42")).value_or(42);
  const auto count = [&](std::string_view name, std::uint32_t otherwise) {
    return static_cast<std::uint32_t>(
        parse_uint(bench::argument(argc, argv, name, concat(otherwise))).value_or(otherwise));
  };
  options.folds = count("folds", options.folds);
  options.gbdt.leaves = count("leaves", options.gbdt.leaves);
  options.gbdt.trees = count("trees", options.gbdt.trees);
  options.gbdt.early_stopping_rounds = count("early-stopping", options.gbdt.early_stopping_rounds);
  options.forests = count("forests", options.forests);
  FORETUNE_TRY(const TrainResult result, train_gbdt(dataset, options));
  std::printf("%zu measurements, %zu problems, %u folds\n", dataset.size(),
              dataset.problems().size(), options.folds);
  Figures figures = bench::make_figures("h200_crossval", argc, argv);
  for (const auto& [name, value] : result.metrics) {
    std::printf("  %-28s %.4f\n", name.c_str(), value);
    figures.add(name, value);
  }
  const double single = best_single_config(dataset);
  const VendorChoice vendor = vendor_choice(dataset);
  std::printf("  %-28s %.4f\n", "best_single_config", single);
  std::printf("  %-28s %.4f\n", "vendor_over_best_geomean", vendor.oracle_over_vendor);
  figures.add("best_single_config_efficiency", single);
  figures.add("vendor_over_best_geomean", vendor.oracle_over_vendor);
  figures.add("trees", static_cast<double>(result.model.forests[0].trees.size()));
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
