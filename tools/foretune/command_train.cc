// foretune train: data sets in, a model file for every target out.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/training_curves.h"
#include "foretune/models/train/fast_model.h"
#include "foretune/models/train/hyper_search.h"
#include "foretune/models/train/output_directory.h"
#include "foretune/models/train/train_metrics.h"
#include "foretune/models/train/trainer.h"
#include "foretune/tune/collect.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/datasets.h"
#include "tools/foretune/network_arguments.h"
#include "tools/foretune/recipe.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct TrainArguments {
  std::string data_dir;
  std::vector<std::string> file_extensions;
  std::string dataset;
  std::string model;
  std::string out_dir;
  bool write_lightgbm = false;
  std::string model_type = "gbdt";
  std::string log_dir;
  std::string json;
  std::string targets = "time";
  std::string metrics;
  PayloadArguments payloads;
  RecipeArguments recipe;
  bool no_log_transform = false;
  std::string group_key = "problem";
  std::string warm_start;
  TrainOptions defaults;
  double bagging_fraction = defaults.gbdt.bagging_fraction;
  double feature_fraction = defaults.gbdt.feature_fraction;
  std::int64_t min_rows_per_leaf = defaults.gbdt.min_rows_per_leaf;
  std::int64_t portfolio_size = defaults.portfolio_size;
  std::optional<double> weight_decay;
  double row_weight_decay = defaults.weight_decay;
  NetworkArguments network;
  double regret_decay = defaults.regret_decay;
  double lambda_l2 = defaults.gbdt.lambda_l2;
  std::optional<std::int64_t> warm_start_trees;
  std::int64_t mining_rounds = defaults.mining.rounds;
  std::string tune_budget;
  bool fast = false;

  void visit(OptionList& list) {
    std::vector<std::string> types;
    for (const ModelTypeEntry* const entry : model_types()) {
      types.push_back(entry->name);
    }
    list.add("data-dir", data_dir, "DIR",
             "learn from all data sets below, in any format, validation sets excepted");
    list.add("file-extensions", file_extensions, "EXT",
             concat("files that --data-dir looks at, zipped or not (default: ",
                    join({kDatasetExtensions.begin(), kDatasetExtensions.end()}, ", "), ")"));
    list.add("dataset", dataset, "FILE", "learn from one data set");
    payloads.visit(list);
    list.add("model", model, "FILE",
             "model file to write (default: matmul_model.ftm, without --out-dir)");
    list.add("out-dir", out_dir, "DIR",
             "write models, feature_spec.json, cv_metrics, feature_importances and "
             "train_manifest.json there")
        .only(is_gbdt());
    list.add_switch("write-lightgbm", write_lightgbm,
                    "write the models as LightGBM text, too, plain and zipped")
        .only({"with --out-dir", [this] { return !out_dir.empty(); }});
    list.add("model-type", model_type, "TYPE", "kind of model").choose(std::move(types));
    list.add(
        "log-dir", log_dir, "DIR",
        "write the loss of every fold there as CSV, of networks also as SVG and for TensorBoard");
    list.add("json", json, "FILE", "write the held-out figures as JSON");
    list.section("Training");
    list.add("targets", targets, "LIST",
             "what to learn, a model each: time, tflops, latency, bandwidth, with commas");
    list.add("metrics", metrics, "LIST",
             "one model that predicts all of these metrics of the data set, with commas: time_ns, "
             "pack_ns, ...; objectives need it, and picks are of the first unless they are given")
        .only({"without --targets, --out-dir, --fast and --warm-start", [this] {
                 return targets == "time" && out_dir.empty() && !fast && warm_start.empty();
               }});
    recipe.visit(list, "how time is learned; auto cross-validates both",
                 "group folds for the held-out figures; 0 for none");
    list.add_switch("no-log-transform", no_log_transform,
                    "learn tflops, latency and bandwidth as they are, not ln(1 + value)")
        .only({"with one of these --targets", [this] { return targets != "time"; }});
    list.add(
            "group-key", group_key, "KEY",
            "keep problems in one fold that are equal but for layout and types (problem), in their "
            "main sizes (sizes: m, n, k; of convolutions all but strides and pads), or in their "
            "weights, whatever these are applied to (weights: n, k; of convolutions channels, "
            "groups, filter, strides and dilations)")
        .choose({group_key_names().begin(), group_key_names().end()});
    list.add("row-weight-decay", row_weight_decay, "X",
             "how fast the weight of a row falls with its distance from the best")
        .only({"without --weight-decay, which is the same for trees",
               [this] { return model_type != "gbdt" || !weight_decay; }});
    list.add("weight-decay", weight_decay, "X",
             concat("of trees the same, of networks the penalty of large weights (default: ",
                    defaults.network.weight_decay, ")"));
    list.add("portfolio-size", portfolio_size, "N", "configs in the fallback portfolio")
        .at_least(1);
    list.add_switch(
        "fast", fast,
        "distil a fast model too: answers in a microsecond, takes up to a minute to train");
    visit_trees(list);
    network.visit(list, model_type);
  }

  void visit_trees(OptionList& list) {
    list.section("Boosted trees",
                 {"with --model-type gbdt or ensemble", [this] { return has_trees(); }});
    recipe.visit_trees(list);
    list.add("bagging-fraction", bagging_fraction, "X", "rows per tree");
    list.add("feature-fraction", feature_fraction, "X", "features per tree");
    list.add("min-rows-per-leaf", min_rows_per_leaf, "N", "least rows in a leaf").at_least(1);
    list.add("lambda-l2", lambda_l2, "X", "penalty of large leaf values");
    list.add("regret-decay", regret_decay, "X",
             "how fast the weight of a row falls with the objective regret")
        .only({"where trees minimise regret", [this] { return may_minimise_regret(); }});
    list.add("tune-budget", tune_budget, "BUDGET",
             "search these options first: a number of trials, or a time like 5m");
    list.add("mining-rounds", mining_rounds, "N",
             "rounds in which the hardest training problems get more weight")
        .at_least(0)
        .only(is_gbdt());
    list.add("warm-start", warm_start, "PATH",
             "add trees to this model, or to those of an --out-dir, instead of beginning anew")
        .only(is_gbdt());
    list.add("warm-start-n-estimators", warm_start_trees, "N",
             concat("trees to add (default: ", defaults.warm_start_trees, ")"))
        .at_least(1)
        .only({"with --warm-start", [this] { return !warm_start.empty(); }});
  }

  [[nodiscard]] Condition is_gbdt() const {
    return {"with --model-type gbdt", [this] { return model_type == "gbdt"; }};
  }
  [[nodiscard]] bool has_trees() const { return model_type == "gbdt" || model_type == "ensemble"; }
  [[nodiscard]] bool may_minimise_regret() const {
    return recipe.objective == "regret" ||
           (recipe.objective == "auto" && recipe.target == "relative-log");
  }
};

// One data set made of all training files; validation sets are named and left alone.
Result<Dataset> read_training(const TrainArguments& arguments) {
  if (arguments.data_dir.empty() == arguments.dataset.empty()) {
    return fail(ErrorCode::kInvalidArgument, "give either --data-dir or --dataset");
  }
  if (arguments.data_dir.empty() && !arguments.file_extensions.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--file-extensions needs --data-dir");
  }
  if (!arguments.dataset.empty()) {
    FORETUNE_TRY(Dataset dataset, read_measurements(arguments.dataset));
    if (dataset.header().role == DatasetRole::kValidation) {
      return fail(ErrorCode::kMismatch, arguments.dataset,
                  " is a validation set; training on it would make every figure worthless");
    }
    return dataset;
  }
  return read_training_sets(arguments.data_dir, arguments.file_extensions);
}

Status check_numbers(const TrainArguments& arguments) {
  for (const double fraction : {arguments.bagging_fraction, arguments.feature_fraction}) {
    if (!(fraction > 0 && fraction <= 1)) {
      return fail(ErrorCode::kInvalidArgument, "a fraction must be above 0 and at most 1, not ",
                  fraction);
    }
  }
  for (const double value : {arguments.weight_decay.value_or(0), arguments.row_weight_decay,
                             arguments.regret_decay, arguments.lambda_l2}) {
    if (!(value >= 0 && value <= 1e6)) {
      return fail(ErrorCode::kInvalidArgument, "decays and --lambda-l2 must be from 0, not ",
                  value);
    }
  }
  return {};
}

Result<TrainOptions> options_of(const TrainArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY_STATUS(check_numbers(arguments));
  FORETUNE_TRY(TrainOptions options, arguments.recipe.options(*invocation.global));
  const NetworkOptions common = options.network;
  FORETUNE_TRY(options.network, arguments.network.options(invocation));
  options.network.learning_rate = common.learning_rate;
  options.network.threads = common.threads;
  options.network.weight_decay = arguments.weight_decay.value_or(common.weight_decay);
  options.network_log_folder = arguments.log_dir;
  options.log_transform = !arguments.no_log_transform;
  FORETUNE_TRY(options.group_key, parse_group_key(arguments.group_key));
  options.portfolio_size = static_cast<std::uint32_t>(arguments.portfolio_size);
  options.weight_decay = arguments.model_type == "gbdt"
                             ? arguments.weight_decay.value_or(arguments.row_weight_decay)
                             : arguments.row_weight_decay;
  options.regret_decay = arguments.regret_decay;
  options.mining.rounds = static_cast<std::uint32_t>(arguments.mining_rounds);
  options.warm_start_trees =
      static_cast<std::uint32_t>(arguments.warm_start_trees.value_or(options.warm_start_trees));
  options.gbdt.bagging_fraction = arguments.bagging_fraction;
  options.gbdt.feature_fraction = arguments.feature_fraction;
  options.gbdt.min_rows_per_leaf = static_cast<std::uint32_t>(arguments.min_rows_per_leaf);
  options.gbdt.lambda_l2 = arguments.lambda_l2;
  return options;
}

// The options of every target; `time` as --target says.
Result<std::vector<TrainOptions>> options_of_targets(const TrainArguments& arguments,
                                                     const TrainOptions& common) {
  std::vector<TrainOptions> out;
  for (const std::string_view name : split(arguments.targets, ',')) {
    TrainOptions options = common;
    if (name != "time") {
      const std::optional<Target> target = parse_target(name);
      if (!target || *target == Target::kLog || *target == Target::kRelativeLog) {
        return fail(ErrorCode::kInvalidArgument, quoted(name),
                    " is not a target; there are time, tflops, latency and bandwidth");
      }
      options.target = *target;
      options.choose_target = false;
    }
    for (const TrainOptions& other : out) {
      if (file_name_of(other.target) == file_name_of(options.target)) {
        return fail(ErrorCode::kInvalidArgument, "--targets names ", name, " twice");
      }
    }
    FORETUNE_TRY_STATUS(check_train_options(options));
    out.push_back(std::move(options));
  }
  if (out.size() > 1 && arguments.out_dir.empty()) {
    return fail(ErrorCode::kInvalidArgument, "several targets need an --out-dir");
  }
  return out;
}

// The model that --warm-start means for a target.
Result<Model> read_warm_start(const TrainArguments& arguments, const TrainOptions& options) {
  std::filesystem::path path(arguments.warm_start);
  if (std::filesystem::is_directory(path)) {
    path /= concat("model_", file_name_of(options.target), ".ftm");
  }
  return read_model(path);
}

std::string progress_text(const TrainProgress& progress) {
  std::string out = concat(progress.stage, ": ", progress.step, " ", progress.tree, "/",
                           progress.trees, "  loss ", fixed(progress.loss, 5));
  if (progress.efficiency > 0) {
    out += concat("  efficiency ", fixed(100 * progress.efficiency, 1), " %");
  }
  if (progress.seconds_left > 0) {
    out += concat("  at most ", duration_text(progress.seconds_left), " left");
  }
  return out;
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

// Beside the held-out figures of the exact model stands what the fast one loses against it.
Status add_fast_model(const Dataset& dataset, const TrainOptions& options, TrainResult& result) {
  const FastOptions fast_options{.threads = options.gbdt.threads, .seed = options.seed};
  FORETUNE_TRY(FastTraining fast,
               distill_fast_model(result.model, dataset.problems(), fast_options));
  result.metrics.emplace_back("fast_mean_regret", fast.model.mean_regret);
  result.metrics.emplace_back("fast_p90_regret", fast.model.p90_regret);
  result.model.fast = std::move(fast.model);
  return {};
}

std::string hyper_search_text(const HyperSearch& found) {
  constexpr std::size_t kShown = 5;
  std::string out = concat("tried ", found.trials.size() - 1, " draws on up to ", found.folds,
                           " folds; efficiency of the picks there:\n");
  for (std::size_t i = 0; i < std::min(kShown, found.trials.size()); ++i) {
    const HyperTrial& trial = found.trials[i];
    const GbdtOptions& gbdt = trial.gbdt;
    out += concat("  ", fixed(100 * trial.mean_efficiency, 2), " % on ", trial.folds, "  --leaves ",
                  gbdt.leaves, " --learning-rate ", fixed(gbdt.learning_rate, 4),
                  " --min-rows-per-leaf ", gbdt.min_rows_per_leaf, "\n      --feature-fraction ",
                  fixed(gbdt.feature_fraction, 3), " --bagging-fraction ",
                  fixed(gbdt.bagging_fraction, 3), " --lambda-l2 ", fixed(gbdt.lambda_l2, 3),
                  " --weight-decay ", fixed(trial.weight_decay, 2), i == 0 ? "  (as given)" : "",
                  "\n");
  }
  return out;
}

// Trains the targets one after another, with a line of progress.
class TargetTrainer {
 public:
  TargetTrainer(const TrainArguments& arguments, const Dataset& dataset)
      : arguments_(arguments), dataset_(dataset), losses_(arguments.log_dir) {
    for (const ModelTypeEntry* const entry : model_types()) {
      type_ = entry->name == arguments.model_type ? entry : type_;
    }
  }

  // Searches the options first where that is wanted; `options` are then those found.
  Result<TrainResult> train(TrainOptions& options, bool is_one_of_several) {
    std::optional<Model> warm;
    if (!arguments_.warm_start.empty()) {
      FORETUNE_TRY(warm, read_warm_start(arguments_, options));
      options.warm_start = &*warm;
    }
    const std::string head =
        is_one_of_several ? concat(file_name_of(options.target), ": ") : std::string();
    const ProgressHook hook = [&](const TrainProgress& progress) {
      TrainProgress named = progress;
      named.stage = head + progress.stage;
      // Also while nothing is known yet it is asked whether to go on.
      if (named.trees > 0) {
        losses_.add(named);
      }
      if (named.trees > 0 && line_.due()) {
        line_.show(progress_text(named));
      }
      return !stop_flag().load();
    };
    if (!arguments_.tune_budget.empty()) {
      FORETUNE_TRY_STATUS(search(options, hook));
    }
    FORETUNE_TRY(TrainResult result, train_model(options, hook));
    line_.clear();
    options.warm_start = nullptr;
    return result;
  }

  [[nodiscard]] Status write_losses(const std::vector<TrainResult>& results) const {
    FORETUNE_TRY_STATUS(losses_.write());
    // Networks are one target's, so that nothing is written over.
    for (const TrainResult& result : results) {
      const TrainingCurves trained = training_curves(result.model.card_json);
      if (!arguments_.log_dir.empty() && !trained.curves.empty()) {
        FORETUNE_TRY_STATUS(write_text_file_atomically(
            std::filesystem::path(arguments_.log_dir) / "loss.svg", loss_svg(trained)));
      }
    }
    return {};
  }

 private:
  Result<TrainResult> train_model(const TrainOptions& options, const ProgressHook& hook) const {
    if (arguments_.metrics.empty()) {
      return type_->train(dataset_, options, hook);
    }
    std::vector<std::string> metrics;
    for (const std::string_view metric : split(arguments_.metrics, ',')) {
      metrics.emplace_back(trim(metric));
    }
    return train_metrics(dataset_, *type_, options, metrics, hook);
  }

  Status search(TrainOptions& options, const ProgressHook& hook) {
    FORETUNE_TRY(const HyperBudget budget, budget_of(arguments_.tune_budget));
    FORETUNE_TRY(const HyperSearch found, search_hyper_parameters(dataset_, options, budget, hook));
    line_.clear();
    print(hyper_search_text(found));
    options = found.best;
    return {};
  }

  // A number is one of trials; of a time, trials begin until it is over.
  static Result<HyperBudget> budget_of(const std::string& text) {
    FORETUNE_TRY(const Budget budget, parse_budget(text));
    HyperBudget out;
    out.trials = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(budget.measurements.value_or(kMostTrials), kMostTrials));
    if (budget.seconds) {
      const double end_s = monotonic_s() + *budget.seconds;
      out.is_spent = [end_s] { return monotonic_s() >= end_s; };
    }
    return out;
  }

  static constexpr std::uint64_t kMostTrials = 10000;
  const TrainArguments& arguments_;
  const Dataset& dataset_;
  const ModelTypeEntry* type_ = nullptr;
  ProgressLine line_;
  LossLog losses_;
};

void report(const TrainResult& result, std::string_view name, bool is_one_of_several,
            Figures& figures) {
  if (is_one_of_several) {
    print(concat(name, "\n"));
  }
  for (const auto& [metric, value] : result.metrics) {
    figures.add(is_one_of_several ? concat(name, "_", metric) : metric, value);
    constexpr double kSmallest = 1e-3;  // that four decimals show
    const bool is_tiny = value != 0 && std::fabs(value) < kSmallest;
    print(concat("  ", metric, " ",
                 !std::isfinite(value) ? std::string("-")
                 : is_tiny             ? concat(static_cast<float>(value))
                                       : fixed(value, 4),
                 "\n"));
  }
}

Status write_models(const TrainArguments& arguments, const Dataset& dataset,
                    const std::vector<TrainOptions>& options,
                    const std::vector<TrainResult>& results) {
  const std::string model =
      arguments.model.empty() && arguments.out_dir.empty() ? "matmul_model.ftm" : arguments.model;
  if (!model.empty()) {
    FORETUNE_TRY_STATUS(write_model(results.front().model, model));
    print(concat("model: ", model, "\n"));
  }
  if (!arguments.out_dir.empty()) {
    std::vector<TrainedTarget> targets;
    for (std::size_t i = 0; i < results.size(); ++i) {
      targets.push_back({file_name_of(results[i].target), &options[i], &results[i]});
    }
    FORETUNE_TRY_STATUS(
        write_training_output(dataset, targets, arguments.out_dir, arguments.write_lightgbm));
    print(concat("models: ", arguments.out_dir, "\n"));
  }
  return {};
}

Result<int> train(const TrainArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const TrainOptions common, options_of(arguments, invocation));
  FORETUNE_TRY(std::vector<TrainOptions> options, options_of_targets(arguments, common));
  FORETUNE_TRY(Dataset dataset, read_training(arguments));
  FORETUNE_TRY_STATUS(describe_payloads(dataset, arguments.payloads));
  if (const std::size_t merged = dataset.deduplicate(); merged > 0) {
    remark(concat(count_text(merged), " repeated measurements merged by their median"));
  }
  const bool are_several = options.size() > 1;
  const double start_s = monotonic_s();
  TargetTrainer trainer(arguments, dataset);
  std::vector<TrainResult> results;
  for (TrainOptions& of_target : options) {
    FORETUNE_TRY(results.emplace_back(), trainer.train(of_target, are_several));
    if (arguments.fast) {
      FORETUNE_TRY_STATUS(add_fast_model(dataset, of_target, results.back()));
    }
  }
  FORETUNE_TRY_STATUS(trainer.write_losses(results));
  print(concat("trained on ", count_text(dataset.size()), " measurements of ",
               count_text(dataset.problems().size()), " problems in ",
               duration_text(monotonic_s() - start_s), "\n"));
  Figures figures;
  figures.name = "train";
  figures.machine = machine_facts(dataset.header().fingerprint);
  figures.command = invocation.command_line;
  for (const TrainResult& result : results) {
    report(result, file_name_of(result.target), are_several, figures);
  }
  FORETUNE_TRY_STATUS(write_models(arguments, dataset, options, results));
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
