// Measures how well neural cost models and boosted trees pick configs for unseen problems, on the
// same folds by group, and the best mixture of the two.
//
//   build/bench/bench/network_models --data FILE.ftd | --h200 triton_mm_bf16.csv.gz
//       --models gbdt,standard,deep,two-tower,deep+lambdarank,deep+mse:1+lambdarank:0.5
//       [--folds 5] [--forests 1] [--networks 1] [--num-epochs 100] [--batch-size 1024]
//       [--learning-rate 0.001] [--patience 10] [--dropout 0.2] [--hidden-dim 128]
//       [--tower-layers 2] [--dot 32] [--interaction 32] [--group-size 64] [--seed 42]
//       [--device cpu] [--threads 2] [--tree-threads 2]
//       [--trainer foretune-train-network] [--work-dir DIR] [--json FILE]
//
// A model is a type, with the loss behind a plus ("mse" by default). "~raw" behind it leaves the
// inputs as they are, and "~sample" holds out measurements instead of problems: two mistakes that
// flatter. "~int8" gives it weights of 8 bits. Every network is also mixed with the trees, if those
// come first. Models that --work-dir already has are not trained again.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_json.h"
#include "bench/training_data.h"
#include "foretune/base/text.h"
#include "foretune/model/train/train_ensemble.h"
#include "foretune/model/train/trainer.h"

namespace foretune {
namespace {

using Metrics = std::vector<std::pair<std::string, double>>;

double named(const Metrics& metrics, std::string_view name) {
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [&](const auto& metric) { return metric.first == name; });
  return found == metrics.end() ? 0 : found->second;
}

struct Column {
  std::string_view metric;
  std::string_view figure;
};
constexpr std::array kColumns{Column{"mean_efficiency", "mean_efficiency"},
                              Column{"p10_efficiency", "p10_efficiency"},
                              Column{"min_efficiency", "min_efficiency"},
                              Column{"top5_measured_efficiency", "top5_measured_efficiency"},
                              Column{"rmse_log", "rmse_log_time"},
                              Column{"spearman_mean", "spearman"}};

// `data` names the data set of the figures.
void print_row(std::string_view data, const std::string& name, const Metrics& metrics,
               double seconds, Figures& figures) {
  std::printf("%-34s", name.c_str());
  for (const Column& column : kColumns) {
    std::printf("  %.4f", named(metrics, column.metric));
    figures.add(concat(data, "_", name, "_", column.figure), named(metrics, column.metric));
  }
  for (const std::string_view key : {"samples_per_second", "max_difference_to_libtorch"}) {
    if (named(metrics, key) > 0) {
      figures.add(concat(data, "_", name, "_", key), named(metrics, key));
    }
  }
  std::printf("  %6.0f s  %8.0f/s  %.1e\n", seconds, named(metrics, "samples_per_second"),
              named(metrics, "max_difference_to_libtorch"));
  std::fflush(stdout);
}

Result<TrainResult> train(const Dataset& dataset, std::string_view name, TrainOptions options) {
  const auto without = [&](std::string_view ending) {
    const bool has = name.ends_with(ending);
    name.remove_suffix(has ? ending.size() : 0);
    return has;
  };
  options.network.splits_by_sample = without("~sample");
  options.network.standardises = !without("~raw");
  options.network.int8_weights = without("~int8");
  const std::size_t plus = name.find('+');
  if (plus != std::string_view::npos) {
    options.network.loss = std::string(name.substr(plus + 1));
    std::replace(options.network.loss.begin(), options.network.loss.end(), '+', ',');
    name = name.substr(0, plus);
  }
  for (const ModelTypeEntry* const entry : model_types()) {
    if (entry->name == name) {
      return entry->train(dataset, options, nullptr);
    }
  }
  return fail(ErrorCode::kInvalidArgument, "there is no model '", name, "'");
}

Status run(int argc, char** argv, Figures& figures) {
  const std::string path = bench::argument(argc, argv, "data");
  FORETUNE_TRY(Dataset dataset, path.empty() ? bench::read_h200(bench::argument(argc, argv, "h200"))
                                             : import_dataset(path, std::nullopt));
  const std::string_view data = path.empty() ? "h200" : "cpu";
  dataset.deduplicate();
  TrainOptions options;
  options.folds = bench::count_argument(argc, argv, "folds", options.folds);
  options.forests = bench::count_argument(argc, argv, "forests", options.forests);
  options.seed = bench::count_argument(argc, argv, "seed", options.seed);
  NetworkOptions& network = options.network;
  network.program = bench::argument(argc, argv, "trainer",
                                    "build/dev/tools/train_network/foretune-train-network");
  network.networks = bench::count_argument(argc, argv, "networks", network.networks);
  network.num_epochs = bench::count_argument(argc, argv, "num-epochs", network.num_epochs);
  network.batch_size = bench::count_argument(argc, argv, "batch-size", network.batch_size);
  network.patience = bench::count_argument(argc, argv, "patience", network.patience);
  network.threads = bench::count_argument(argc, argv, "threads", network.threads);
  network.learning_rate =
      bench::number_argument(argc, argv, "learning-rate", network.learning_rate);
  network.dropout = bench::number_argument(argc, argv, "dropout", network.dropout);
  network.hidden_dim = bench::count_argument(argc, argv, "hidden-dim", network.hidden_dim);
  network.tower_layers = bench::count_argument(argc, argv, "tower-layers", network.tower_layers);
  network.dot = bench::count_argument(argc, argv, "dot", network.dot);
  network.interaction = bench::count_argument(argc, argv, "interaction", network.interaction);
  network.group_size = bench::count_argument(argc, argv, "group-size", network.group_size);
  options.gbdt.threads = bench::count_argument(argc, argv, "tree-threads", options.gbdt.threads);
  network.device = bench::argument(argc, argv, "device", network.device);
  network.work_folder = bench::argument(argc, argv, "work-dir");
  network.resumes = !network.work_folder.empty();
  std::printf("%zu measurements, %zu problems, %u folds\n%-34s  %s\n", dataset.size(),
              dataset.problems().size(), options.folds, "",
              "mean    P10     least   top 5   RMSE    Spearman  time  samples   to libtorch");
  std::optional<TrainResult> trees;
  const std::string models = bench::argument(argc, argv, "models", "gbdt,standard,deep,two-tower");
  for (const std::string_view name : split(models, ',')) {
    const double begin_s = bench::seconds_now();
    FORETUNE_TRY(TrainResult result, train(dataset, name, options));
    print_row(data, std::string(name), result.metrics, bench::seconds_now() - begin_s, figures);
    if (name == "gbdt") {
      trees = std::move(result);
    } else if (trees && name.find("~raw") == std::string_view::npos &&
               name.find("~sample") == std::string_view::npos) {
      FORETUNE_TRY(const MixedScores mixed, mix_held_out(dataset, *trees, result));
      print_row(data, concat(name, " with gbdt"), mixed.metrics, 0, figures);
      std::printf("%-34s  of the network in the score: %.1f\n", "", mixed.share);
    }
  }
  return {};
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::bench::run_program("network_models", argc, argv, &foretune::run);
}
