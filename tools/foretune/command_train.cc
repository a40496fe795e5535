// foretune train: data sets in, one model file out.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/exchange.h"
#include "foretune/dataset/journal.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/cpu.h"
#include "foretune/models/train/trainer.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct TrainArguments {
  std::string data_dir;
  std::string dataset;
  std::string model = "matmul_model.ftm";
  std::string model_type = "gbdt";
  std::string log_dir;
  std::string json;
  std::string target = "relative-log";
  std::string features;
  std::int64_t folds = 5;
  std::int64_t threads = 0;
  std::int64_t batch_size = 64;
  TrainOptions defaults;
  std::int64_t trees = defaults.gbdt.trees;
  std::int64_t leaves = defaults.gbdt.leaves;
  double learning_rate = defaults.gbdt.learning_rate;
  double bagging_fraction = defaults.gbdt.bagging_fraction;
  double feature_fraction = defaults.gbdt.feature_fraction;
  std::int64_t min_rows_per_leaf = defaults.gbdt.min_rows_per_leaf;
  std::int64_t forests = defaults.forests;
  std::int64_t portfolio_size = defaults.portfolio_size;

  void visit(OptionList& list) {
    std::vector<std::string> types;
    for (const ModelTypeEntry& entry : model_types()) {
      types.emplace_back(entry.name);
    }
    list.add("data-dir", data_dir, "DIR",
             "learn from all data sets below, validation sets excepted");
    list.add("dataset", dataset, "FILE", "learn from one data set");
    list.add("model", model, "FILE", "model file to write");
    list.add("model-type", model_type, "TYPE", "kind of model").choose(std::move(types));
    list.add("log-dir", log_dir, "DIR", "write the loss of every fold there as CSV");
    list.add("json", json, "FILE", "write the held-out figures as JSON");
    list.section("Training");
    list.add("target", target, "TARGET", "what is learned; auto cross-validates both")
        .choose({"relative-log", "log", "auto"});
    std::vector<std::string> tables;
    for (const FeatureTable* table : feature_tables()) {
      tables.emplace_back(table->name());
    }
    list.add("features", features, "TABLE", "feature table (default: the family's)")
        .choose(std::move(tables));
    list.add("folds", folds, "N", "group folds for the held-out figures; 0 for none").at_least(0);
    list.add("threads", threads, "N", "threads of the trainer; 0 is all cores").at_least(0);
    list.add("trees", trees, "N", "at most; early stopping decides").at_least(1);
    list.add("leaves", leaves, "N", "per tree").at_least(2);
    list.add("learning-rate", learning_rate, "X", "shrinkage per tree");
    list.add("bagging-fraction", bagging_fraction, "X", "rows per tree");
    list.add("feature-fraction", feature_fraction, "X", "features per tree");
    list.add("min-rows-per-leaf", min_rows_per_leaf, "N", "least rows in a leaf").at_least(1);
    list.add("forests", forests, "N", "forests whose scores are averaged: better picks, slower")
        .at_least(1);
    list.add("portfolio-size", portfolio_size, "N", "configs in the fallback portfolio")
        .at_least(1);
    list.add("batch-size", batch_size, "N", "for neural models; boosted trees take no notice")
        .at_least(1);
  }
};

// One data set made of all training files; validation sets are named and left alone.
Result<Dataset> read_training(const TrainArguments& arguments) {
  if (arguments.data_dir.empty() == arguments.dataset.empty()) {
    return fail(ErrorCode::kInvalidArgument, "give either --data-dir or --dataset");
  }
  if (!arguments.dataset.empty()) {
    FORETUNE_TRY(Dataset dataset, import_dataset(arguments.dataset, std::nullopt));
    if (dataset.header().role == DatasetRole::kValidation) {
      return fail(ErrorCode::kMismatch, arguments.dataset,
                  " is a validation set; training on it would make every figure worthless");
    }
    return dataset;
  }
  FORETUNE_TRY(const std::vector<std::filesystem::path> files, find_datasets(arguments.data_dir));
  std::optional<Dataset> all;
  for (const std::filesystem::path& file : files) {
    ReadReport report;
    FORETUNE_TRY(Dataset dataset, read_dataset(file, &report));
    if (report.torn_bytes > 0) {
      warn(concat(file.string(), " ends in a torn record of ", report.torn_bytes, " bytes"));
    }
    if (dataset.header().role == DatasetRole::kValidation) {
      remark(concat("skipped ", file.string(), ": a validation set"));
      continue;
    }
    remark(concat("read ", file.string(), ": ", count_text(dataset.size()), " measurements of ",
                  count_text(dataset.problems().size()), " problems"));
    if (!all) {
      all.emplace(std::move(dataset));
    } else if (const Status merged = all->merge(dataset); !merged) {
      return fail_because(merged.error(), file.string());
    }
  }
  if (!all) {
    return fail(ErrorCode::kNotFound, "no training data set below ", arguments.data_dir);
  }
  return *std::move(all);
}

Result<TrainOptions> options_of(const TrainArguments& arguments, const GlobalOptions& global) {
  TrainOptions options = arguments.defaults;
  options.feature_table = arguments.features;
  options.target = arguments.target == "log" ? Target::kLog : Target::kRelativeLog;
  options.choose_target = arguments.target == "auto";
  options.folds = static_cast<std::uint32_t>(arguments.folds);
  options.seed = static_cast<std::uint64_t>(global.seed);
  options.forests = static_cast<std::uint32_t>(arguments.forests);
  options.portfolio_size = static_cast<std::uint32_t>(arguments.portfolio_size);
  options.gbdt.trees = static_cast<std::uint32_t>(arguments.trees);
  options.gbdt.leaves = static_cast<std::uint32_t>(arguments.leaves);
  options.gbdt.learning_rate = arguments.learning_rate;
  options.gbdt.bagging_fraction = arguments.bagging_fraction;
  options.gbdt.feature_fraction = arguments.feature_fraction;
  options.gbdt.min_rows_per_leaf = static_cast<std::uint32_t>(arguments.min_rows_per_leaf);
  for (const double fraction : {arguments.bagging_fraction, arguments.feature_fraction}) {
    if (!(fraction > 0 && fraction <= 1)) {
      return fail(ErrorCode::kInvalidArgument, "a fraction must be above 0 and at most 1, not ",
                  fraction);
    }
  }
  if (!(arguments.learning_rate > 0 && arguments.learning_rate <= 1)) {
    return fail(ErrorCode::kInvalidArgument, "--learning-rate must be above 0 and at most 1");
  }
  const CpuFacts facts = read_cpu_facts();
  options.gbdt.threads = static_cast<std::uint32_t>(
      arguments.threads > 0 ? arguments.threads : std::int64_t{facts.cores});
  return options;
}

class LossLog {
 public:
  explicit LossLog(std::string directory) : directory_(std::move(directory)) {}
  void add(const TrainProgress& progress) {
    if (!directory_.empty()) {
      text_ += concat(progress.stage, ",", progress.tree, ",", progress.loss, "\n");
    }
  }
  [[nodiscard]] Status write() const {
    if (directory_.empty()) {
      return {};
    }
    std::error_code error;
    std::filesystem::create_directories(directory_, error);
    return write_text_file_atomically(std::filesystem::path(directory_) / "loss.csv",
                                      concat("stage,tree,loss\n", text_));
  }

 private:
  std::string directory_;
  std::string text_;
};

Result<int> train(const TrainArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const TrainOptions options, options_of(arguments, *invocation.global));
  FORETUNE_TRY(Dataset dataset, read_training(arguments));
  if (const std::size_t merged = dataset.deduplicate(); merged > 0) {
    remark(concat(count_text(merged), " repeated measurements merged by their median"));
  }
  const ModelTypeEntry* type = nullptr;
  for (const ModelTypeEntry& entry : model_types()) {
    type = entry.name == arguments.model_type ? &entry : type;
  }
  ProgressLine line;
  LossLog losses(arguments.log_dir);
  const double start_s = monotonic_s();
  FORETUNE_TRY(const TrainResult result,
               type->train(dataset, options, [&](const TrainProgress& progress) {
                 losses.add(progress);
                 if (line.due()) {
                   line.show(concat(progress.stage, ": tree ", progress.tree, "/", progress.trees,
                                    "  loss ", fixed(progress.loss, 5)));
                 }
                 return !stop_flag().load();
               }));
  line.clear();
  FORETUNE_TRY_STATUS(losses.write());
  FORETUNE_TRY_STATUS(write_model(result.model, arguments.model));
  print(concat("trained on ", count_text(dataset.size()), " measurements of ",
               count_text(dataset.problems().size()), " problems in ",
               duration_text(monotonic_s() - start_s), "\n"));
  Figures figures;
  figures.name = "train";
  figures.machine = machine_facts(dataset.header().fingerprint);
  figures.command = invocation.command_line;
  for (const auto& [name, value] : result.metrics) {
    figures.add(name, value);
    print(concat("  ", name, " ", fixed(value, 4), "\n"));
  }
  print(concat("model: ", arguments.model, "\n"));
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(figures.write(arguments.json));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_train(OptionList& list) {
  return prepare_with<TrainArguments, train>(list);
}

}  // namespace foretune::cli
