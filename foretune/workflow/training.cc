#include "foretune/workflow/training.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "foretune/base/clock.h"
#include "foretune/base/file.h"
#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/collect/collect.h"
#include "foretune/evaluate/training_curves.h"
#include "foretune/interop/ck/output_directory.h"
#include "foretune/interop/tables/dataset_folder.h"
#include "foretune/model/train/distilled_model.h"
#include "foretune/model/train/train_metrics.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/workflow/datasets.h"
#include "foretune/workflow/kernel_pool.h"
#include "foretune/workflow/source.h"

namespace foretune::workflow {

void TrainArguments::visit(OptionList& list) {
  list.add("data-dir", data_dir, "DIR",
           "learn from all data sets below this folder, in any format, except validation sets");
  list.add("file-extensions", file_extensions, "EXT",
           concat("extensions of files that --data-dir reads, zipped or not (default: ",
                  join({kDatasetExtensions.begin(), kDatasetExtensions.end()}, ", "), ")"));
  list.add("dataset", dataset, "FILE", "learn from one data set");
  payloads.visit(list);
  list.add("model", model, "FILE",
           "model file to write (default: matmul_model.ftm, without --out-dir)");
  list.add("json", json, "FILE", "write the held-out figures as JSON");
  visit_training(list);
}

void TrainArguments::visit_training(OptionList& list) {
  std::vector<std::string> types;
  for (const ModelTypeEntry* const entry : model_types()) {
    types.push_back(entry->name);
  }
  list.add("model-type", model_type, "TYPE", "type of model").choose(std::move(types));
  list.add("out-dir", out_dir, "DIR",
           "folder for models, feature_spec.json, cv_metrics, feature_importances and "
           "train_manifest.json")
      .only(is_gbdt());
  list.add_switch("write-lightgbm", write_lightgbm,
                  "also write the models as LightGBM text, plain and zipped")
      .only({"with --out-dir", [this] { return !out_dir.empty(); }});
  list.add("log-dir", log_dir, "DIR",
           "folder for the loss of every fold as CSV, and for networks as SVG and for TensorBoard");
  list.section("Training");
  filter.visit(list);
  list.add("kernels", kernels, "PATH",
           "further candidates, which the data may lack: file with composable_kernel's names or "
           "configs as they are printed, one per line, or folder of benchmark programs");
  list.add_switch("only-kernels", only_kernels,
                  "take no other candidates than these and the portfolio's")
      .only({"with --kernels", [this] { return !kernels.empty(); }});
  list.add("targets", targets, "LIST",
           "targets to learn, one model each, joined by commas: time, tflops, latency, bandwidth");
  list.add("metrics", metrics, "LIST",
           "train one model that predicts all of these metrics, joined by commas: time_ns, "
           "pack_ns, ... Objectives need such a model; without an objective it picks by the first")
      .only({"without --targets, --out-dir, --fast and --warm-start", [this] {
               return targets == "time" && out_dir.empty() && !fast && warm_start.empty();
             }});
  recipe.visit(list, "how time is learned; auto cross-validates both",
               "group folds for the held-out figures; 0 for none");
  list.add_switch("no-log-transform", no_log_transform,
                  "learn tflops, latency and bandwidth themselves, not ln(1 + value)")
      .only({"with one of these --targets", [this] { return targets != "time"; }});
  list.add("group-key", group_key, "KEY", std::string(kGroupKeyHelp))
      .choose({group_key_names().begin(), group_key_names().end()});
  list.add("row-weight-decay", row_weight_decay, "X",
           "how fast a row's weight falls with its distance from the problem's best")
      .only({"without --weight-decay", [this] { return model_type != "gbdt" || !weight_decay; }});
  list.add("weight-decay", weight_decay, "X",
           concat("for trees another name of --row-weight-decay; for networks the penalty of "
                  "large weights (default: ",
                  defaults.network.weight_decay, ")"));
  list.add("portfolio-size", portfolio_size, "N", "configs in the fallback portfolio")
      .at_least(1)
      .at_most(kMaxCount);
  list.add("best-of-problem", best_of_problem, "N",
           "take only the N fastest configs of each training problem as candidates; 0 takes all "
           "that ran")
      .at_least(0)
      .at_most(kMaxCount);
  list.add_switch("fast", fast,
                  "also distil a small model that answers in a microsecond; takes up to a minute");
  visit_trees(list);
  network.visit(list, model_type);
}

void TrainArguments::visit_trees(OptionList& list) {
  list.section("Boosted trees",
               {"with --model-type gbdt or ensemble", [this] { return has_trees(); }});
  recipe.visit_trees(list);
  list.add("bagging-fraction", bagging_fraction, "X", "share of the rows that each tree sees");
  list.add("feature-fraction", feature_fraction, "X", "share of the features that each tree sees");
  list.add("min-rows-per-leaf", min_rows_per_leaf, "N", "smallest number of rows in a leaf")
      .at_least(1)
      .at_most(kMaxCount);
  list.add("lambda-l2", lambda_l2, "X", "penalty of large leaf values");
  list.add("regret-decay", regret_decay, "X", "like --row-weight-decay, for the objective regret")
      .only({"where trees minimise regret", [this] { return may_minimise_regret(); }});
  list.add("tune-budget", tune_budget, "BUDGET",
           "search the tree options first, for this many trials or this long (5m)");
  list.add("mining-rounds", mining_rounds, "N",
           "rounds in which the hardest training problems get more weight")
      .at_least(0)
      .at_most(kMaxCount)
      .only(is_gbdt());
  list.add("warm-start", warm_start, "PATH",
           "continue this model, or those of an --out-dir, by adding trees")
      .only(is_gbdt());
  list.add("warm-start-n-estimators", warm_start_trees, "N",
           concat("trees to add (default: ", defaults.warm_start_trees, ")"))
      .at_least(1)
      .at_most(kMaxCount)
      .only({"with --warm-start", [this] { return !warm_start.empty(); }});
}

Condition TrainArguments::is_gbdt() const {
  return {"with --model-type gbdt", [this] { return model_type == "gbdt"; }};
}
bool TrainArguments::has_trees() const { return model_type == "gbdt" || model_type == "ensemble"; }
bool TrainArguments::may_minimise_regret() const {
  return recipe.objective == "regret" ||
         (recipe.objective == "auto" && recipe.target == "relative-log");
}

namespace {

// Reads all training files into one data set; names validation sets and skips them.
Result<Dataset> read_files(const TrainArguments& arguments, const Invocation& invocation) {
  if (arguments.data_dir.empty() == arguments.dataset.empty()) {
    return fail(ErrorCode::kInvalidArgument, "give either --data-dir or --dataset");
  }
  if (arguments.data_dir.empty() && !arguments.file_extensions.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--file-extensions needs --data-dir");
  }
  if (!arguments.dataset.empty()) {
    return read_measurements(arguments.dataset, invocation);
  }
  return read_training_sets(arguments.data_dir, invocation, arguments.file_extensions,
                            arguments.filter);
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
      return fail(ErrorCode::kInvalidArgument,
                  "decays and --lambda-l2 must be from 0 to a million, not ", value);
    }
  }
  return {};
}

Result<TrainOptions> options_of(const TrainArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY_STATUS(check_numbers(arguments));
  FORETUNE_TRY(TrainOptions options, arguments.recipe.options(invocation));
  const NetworkOptions common = options.network;
  FORETUNE_TRY(options.network, arguments.network.options(invocation));
  options.network.learning_rate = common.learning_rate;
  options.network.threads = common.threads;
  options.network.weight_decay = arguments.weight_decay.value_or(common.weight_decay);
  options.network_log_folder = arguments.log_dir;
  options.log_transform = !arguments.no_log_transform;
  FORETUNE_TRY(options.group_key, parse_group_key(arguments.group_key));
  options.portfolio_size = static_cast<std::uint32_t>(arguments.portfolio_size);
  options.best_of_problem = static_cast<std::uint32_t>(arguments.best_of_problem);
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

// Returns the options of every target; `time` follows --target.
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

// Returns the model of --warm-start for a target.
Result<Model> read_warm_start(const TrainArguments& arguments, const TrainOptions& options) {
  std::filesystem::path path(arguments.warm_start);
  if (std::filesystem::is_directory(path)) {
    path /= concat("model_", file_name_of(options.target), ".ftm");
  }
  return read_model(path);
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

// Adds the distilled model, and its loss to the held-out figures of the exact one.
Status add_distilled_model(const Dataset& dataset, const TrainOptions& options,
                           TrainResult& result) {
  const DistillOptions fast_options{.threads = options.gbdt.threads, .seed = options.seed};
  FORETUNE_TRY(Distillation fast, distill_model(result.model, dataset.problems(), fast_options));
  result.metrics.emplace_back("fast_mean_regret", fast.model.mean_regret);
  result.metrics.emplace_back("fast_p90_regret", fast.model.p90_regret);
  result.model.distilled = std::move(fast.model);
  return {};
}

// A number is a number of trials; with a time, trials begin until it is over.
Result<HyperBudget> search_budget(const std::string& text) {
  constexpr std::uint64_t kMaxTrials = 10000;
  FORETUNE_TRY(const Budget budget, parse_budget(text));
  HyperBudget out;
  out.trials = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(budget.measurements.value_or(kMaxTrials), kMaxTrials));
  if (budget.seconds) {
    const double end_s = monotonic_s() + *budget.seconds;
    out.is_spent = [end_s] { return monotonic_s() >= end_s; };
  }
  return out;
}

// Trains the targets one after another.
class TargetTrainer {
 public:
  TargetTrainer(const TrainArguments& arguments, const Dataset& dataset, const TrainHooks& hooks)
      : arguments_(arguments), dataset_(dataset), hooks_(hooks), losses_(arguments.log_dir) {
    for (const ModelTypeEntry* const entry : model_types()) {
      type_ = entry->name == arguments.model_type ? entry : type_;
    }
  }

  // Searches the options first when asked to; `options` are then those found.
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
      // Also called without any trees, to check whether to go on.
      if (named.trees > 0) {
        losses_.add(named);
      }
      return !hooks_.on_progress || hooks_.on_progress(named);
    };
    if (!arguments_.tune_budget.empty()) {
      FORETUNE_TRY(const HyperBudget budget, search_budget(arguments_.tune_budget));
      FORETUNE_TRY(HyperSearch found, search_hyper_parameters(dataset_, options, budget, hook));
      if (hooks_.on_search) {
        hooks_.on_search(found);
      }
      options = std::move(found.best);
    }
    FORETUNE_TRY(TrainResult result, train_model(options, hook));
    options.warm_start = nullptr;
    if (arguments_.fast) {
      FORETUNE_TRY_STATUS(add_distilled_model(dataset_, options, result));
    }
    return result;
  }

  [[nodiscard]] Status write_losses(const std::vector<TrainResult>& results) const {
    FORETUNE_TRY_STATUS(losses_.write());
    // Each target has its own networks, so that none is overwritten.
    for (const TrainResult& result : results) {
      const TrainingCurves trained = training_curves(result.model.card_json);
      if (!arguments_.log_dir.empty() && !trained.curves.empty()) {
        FORETUNE_TRY_STATUS(write_text_file_atomically(
            std::filesystem::path(arguments_.log_dir) / "loss.svg",
            loss_svg(trained,
                     source_line({data_source(arguments_.dataset.empty() ? arguments_.data_dir
                                                                         : arguments_.dataset,
                                              dataset_)},
                                 dataset_.header().fingerprint.device))));
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

  const TrainArguments& arguments_;
  const Dataset& dataset_;
  const TrainHooks& hooks_;
  const ModelTypeEntry* type_ = nullptr;
  LossLog losses_;
};

// Trains on the data set that `read` returns, once the options make sense.
template <class Read>
Result<Training> train_with(const TrainArguments& arguments, const Invocation& invocation,
                            const TrainHooks& hooks, const Read& read) {
  FORETUNE_TRY(const TrainOptions common, options_of(arguments, invocation));
  FORETUNE_TRY(std::vector<TrainOptions> options, options_of_targets(arguments, common));
  FORETUNE_TRY(Dataset all, read());
  FORETUNE_TRY(Dataset dataset, arguments.filter.apply_to_all(std::move(all)));
  if (!arguments.kernels.empty()) {
    FORETUNE_TRY(const std::vector<Config> candidates,
                 read_candidates(arguments.kernels, dataset, invocation));
    for (TrainOptions& of_target : options) {
      of_target.more_candidates = candidates;
      of_target.only_more_candidates = arguments.only_kernels;
    }
  }
  Training out{.dataset = std::move(dataset), .options = std::move(options), .results = {}};
  if (out.dataset.header().role == DatasetRole::kValidation) {
    return fail(ErrorCode::kMismatch,
                arguments.dataset.empty() ? "the data set" : arguments.dataset,
                " is a validation set; training on it would make every figure worthless");
  }
  if (const std::size_t merged = out.dataset.deduplicate(); merged > 0) {
    invocation.remark(concat(count_of(merged, "repeated measurement"), " merged by the median"));
  }
  FORETUNE_TRY(out.dataset, out.dataset.by_machine());
  if (const std::size_t machines = out.dataset.told_apart().size(); machines > 0) {
    if (arguments.model_type != "gbdt") {
      return fail(ErrorCode::kUnsupported, "a model of type ", arguments.model_type,
                  " learns from one machine; these are measurements of ", machines,
                  ", of which --arch chooses one");
    }
    invocation.remark(concat("measurements of ", machines,
                             " machines: one joint model, which picks by a machine's facts"));
  }
  const double start_s = monotonic_s();
  TargetTrainer trainer(arguments, out.dataset, hooks);
  for (TrainOptions& of_target : out.options) {
    FORETUNE_TRY(out.results.emplace_back(), trainer.train(of_target, out.options.size() > 1));
  }
  FORETUNE_TRY_STATUS(trainer.write_losses(out.results));
  out.seconds = monotonic_s() - start_s;
  return out;
}

}  // namespace

Result<Dataset> read_training(const TrainArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(Dataset dataset, read_files(arguments, invocation));
  FORETUNE_TRY_STATUS(describe_payloads(dataset, arguments.payloads, invocation));
  return dataset;
}

Result<Training> train(const TrainArguments& arguments, const Invocation& invocation,
                       const TrainHooks& hooks) {
  return train_with(arguments, invocation, hooks,
                    [&]() { return read_training(arguments, invocation); });
}

Result<Training> train_on(Dataset dataset, const TrainArguments& arguments,
                          const Invocation& invocation, const TrainHooks& hooks) {
  return train_with(arguments, invocation, hooks,
                    [&]() -> Result<Dataset> { return std::move(dataset); });
}

Result<TrainedFiles> write_trained(const TrainArguments& arguments, const Training& training) {
  TrainedFiles out{.model = arguments.model, .folder = arguments.out_dir};
  if (out.model.empty() && out.folder.empty()) {
    out.model = "matmul_model.ftm";
  }
  if (!out.model.empty()) {
    FORETUNE_TRY_STATUS(write_model(training.results.front().model, out.model));
  }
  if (!out.folder.empty()) {
    std::vector<TrainedTarget> targets;
    for (std::size_t i = 0; i < training.results.size(); ++i) {
      const TrainResult& result = training.results[i];
      targets.push_back({file_name_of(result.target), &training.options[i], &result});
    }
    FORETUNE_TRY_STATUS(
        write_training_output(training.dataset, targets, out.folder, arguments.write_lightgbm));
  }
  return out;
}

}  // namespace foretune::workflow
