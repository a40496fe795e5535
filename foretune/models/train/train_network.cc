#include "foretune/models/train/train_network.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/models/infer/kinds/network/network_body.h"
#include "foretune/models/infer/network_int8.h"
#include "foretune/models/train/assemble.h"
#include "foretune/models/train/cross_validation.h"
#include "foretune/models/train/held_out.h"
#include "foretune/models/train/model_card.h"
#include "foretune/models/train/network_inputs.h"
#include "foretune/models/train/network_predictions.h"
#include "foretune/models/train/network_program.h"
#include "foretune/models/train/training_set.h"

namespace foretune {
namespace {

using namespace train_internal;  // NOLINT(google-build-using-namespace): this is its program

// Where files are between us and the program: what the options name, or a folder that goes again.
class WorkFolder {
 public:
  static Result<WorkFolder> create(const std::filesystem::path& wanted) {
    WorkFolder out;
    std::error_code error;
    if (!wanted.empty()) {
      out.path_ = wanted;
      std::filesystem::create_directories(wanted, error);
    } else {
      std::string pattern =
          (std::filesystem::temp_directory_path(error) / "foretune-networks-XXXXXX").string();
      if (::mkdtemp(pattern.data()) == nullptr) {
        return fail(ErrorCode::kIo, "no temporary folder can be made like ", pattern);
      }
      out.path_ = pattern;
      out.is_temporary_ = true;
    }
    if (error) {
      return fail(ErrorCode::kIo, "cannot make the folder ", wanted.string(), ": ",
                  error.message());
    }
    return out;
  }
  WorkFolder(WorkFolder&& other) noexcept
      : path_(std::move(other.path_)), is_temporary_(std::exchange(other.is_temporary_, false)) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() {
    if (is_temporary_) {
      std::error_code ignored;
      std::filesystem::remove_all(path_, ignored);
    }
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  WorkFolder() = default;
  std::filesystem::path path_;
  bool is_temporary_ = false;
};

class NetworkTraining {
 public:
  NetworkTraining(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                  const TrainOptions& options, std::string architecture,
                  const ProgressHook& progress)
      : dataset_(dataset),
        table_(table),
        set_(set),
        options_(options),
        architecture_(std::move(architecture)),
        progress_(progress),
        folds_(deal_folds(dataset, set, options)) {}

  Result<TrainResult> run() {
    FORETUNE_TRY(const WorkFolder work, WorkFolder::create(options_.network.work_folder));
    folder_ = work.path();
    rows_ = folder_ / "rows";
    result_.fold_of_problem = folds_.of_problem;
    result_.held_out_scores.assign(dataset_.size(), std::numeric_limits<double>::quiet_NaN());
    result_.target = options_.target;
    if (folds_.count > 0 && options_.held_out) {
      FORETUNE_TRY_STATUS(hold_out());
    }
    FORETUNE_TRY_STATUS(train_final());
    return std::move(result_);
  }

 private:
  // The inputs and the file of rows for trainings that hold that fold out: nothing about them
  // comes from its problems, unless the program draws what it holds out itself.
  Status write_rows(std::optional<std::uint32_t> held_out_fold) {
    Network inputs = make_inputs(
        dataset_, table_, set_,
        {.has_towers = architecture_ == "two-tower",
         .transforms = options_.network.standardises,
         .fold_of_problem = folds_.of_problem,
         .held_out_fold = options_.network.splits_by_sample ? std::nullopt : held_out_fold});
    inputs.architecture = architecture_;
    if (!rows_digest_.empty() && inputs == inputs_) {
      return {};
    }
    inputs_ = std::move(inputs);
    NetworkRows made =
        make_rows(dataset_, table_, set_, inputs_, folds_.of_problem, options_.group_key);
    example_ = std::move(made.example);
    FORETUNE_TRY_STATUS(write_training_rows(made.rows, rows_));
    FORETUNE_TRY(const MappedFile file, MappedFile::open(rows_));
    rows_digest_ = Digest::of(file.bytes()).hex();
    return {};
  }

  [[nodiscard]] bool is_absolute() const { return options_.target == Target::kLog; }

  Result<TrainedNetwork> train_one(std::int32_t fold, std::uint32_t network) const {
    const std::string part =
        fold < 0 ? std::string("all data") : concat("fold ", fold + 1, " of ", folds_.count);
    NetworkRun run{
        .architecture = architecture_,
        .target = std::string(to_string(options_.target)),
        .rows = rows_,
        .folder = folder_,
        .log_folder = options_.network_log_folder,
        .rows_digest = rows_digest_,
        .held_out_fold = fold,
        .seed = options_.seed + network,
        .stage = options_.network.networks > 1 ? concat(part, ", network ", network + 1) : part};
    if (!run.log_folder.empty()) {
      run.log_folder /= concat(fold < 0 ? std::string("all") : concat("fold", fold), "-", network);
    }
    return run_network_program(run, options_.network, progress_);
  }

  // Every fold's rows are predicted by networks that did not see its problems; a split by
  // measurement draws the rows itself and says which they were.
  Status hold_out() {
    std::vector<double> predictions(set_.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::uint32_t fold = 0; fold < folds_.count; ++fold) {
      FORETUNE_TRY_STATUS(write_rows(fold));
      for (std::uint32_t n = 0; n < options_.network.networks; ++n) {
        FORETUNE_TRY(const TrainedNetwork trained, train_one(static_cast<std::int32_t>(fold), n));
        FORETUNE_TRY(const HeldOutPredictions held_out, held_out_predictions(trained));
        for (std::size_t i = 0; i < held_out.example.size(); ++i) {
          double& prediction = predictions[held_out.example[i]];
          prediction = (n == 0 ? 0 : prediction) + held_out.value[i] / options_.network.networks;
        }
        note(trained, static_cast<std::int32_t>(fold), n);
      }
    }
    for (std::size_t i = 0; i < set_.size(); ++i) {
      result_.held_out_scores[set_.row[i]] = predictions[i];
    }
    const HeldOutMetrics all = held_out_metrics(set_, predictions, is_absolute());
    result_.metrics = all.named();
    residual_std_ = all.rmse_log;
    for (std::uint32_t fold = 0; fold < folds_.count; ++fold) {
      add_fold(fold, predictions);
    }
    return {};
  }

  struct HeldOutPredictions {
    std::vector<std::uint32_t> example;
    std::vector<double> value;
  };
  // What the trainer says, or, where the model will not be what was trained, what the model says.
  Result<HeldOutPredictions> held_out_predictions(const TrainedNetwork& trained) {
    HeldOutPredictions out;
    for (std::size_t i = 0; i < example_.size(); ++i) {
      if (static_cast<RowRole>(trained.roles[i]) == RowRole::kHeldOut) {
        out.example.push_back(example_[i]);
        out.value.push_back(static_cast<double>(trained.predictions[i]));
      }
    }
    if (options_.network.int8_weights) {
      FORETUNE_TRY(const Network whole, make_network(inputs_, trained));
      FORETUNE_TRY(const Network small, with_int8_weights(whole));
      FORETUNE_TRY(std::vector<double> rounded,
                   network_predictions(small, dataset_, table_, set_, out.example));
      for (std::size_t i = 0; i < rounded.size(); ++i) {
        const double difference = rounded[i] - out.value[i];
        int8_squares_ += difference * difference;
      }
      int8_rows_ += static_cast<double>(rounded.size());
      out.value = std::move(rounded);
    }
    return out;
  }

  void add_fold(std::uint32_t fold, const std::vector<double>& predictions) {
    std::vector<double> own(set_.size(), std::numeric_limits<double>::quiet_NaN());
    std::vector<std::uint32_t> inside;
    std::vector<std::uint32_t> outside;
    std::vector<PredictedRow> rows;
    for (std::uint32_t i = 0; i < set_.size(); ++i) {
      const bool is_inside = folds_.of_problem[set_.problem[i]] == fold;
      (is_inside ? inside : outside).push_back(i);
      if (is_inside && std::isfinite(predictions[i])) {
        own[i] = predictions[i];
        if (!set_.censored[i]) {
          rows.push_back(
              {.problem = set_.problem[i],
               .time_ns = static_cast<double>(dataset_.rows()[set_.row[i]].time_ns),
               .score = predictions[i],
               .value = static_cast<double>(is_absolute() ? set_.log_time[i] : set_.relative[i]),
               .prediction = predictions[i]});
        }
      }
    }
    result_.folds.push_back(
        {.metrics = cv_metrics(rows),
         .ours = held_out_metrics(set_, own, is_absolute()).named(),
         .train_rows = outside.size(),
         .train_groups = count_groups(dataset_, set_, outside, options_.group_key),
         .held_out_groups = count_groups(dataset_, set_, inside, options_.group_key)});
  }

  Status train_final() {
    FORETUNE_TRY_STATUS(write_rows(std::nullopt));
    FORETUNE_TRY(result_.model, make_model(dataset_, table_, set_, options_));
    Model& model = result_.model;
    model.target = to_string(options_.target);
    model.residual_std = residual_std_;
    std::vector<Network> networks;
    for (std::uint32_t n = 0; n < options_.network.networks; ++n) {
      FORETUNE_TRY(const TrainedNetwork trained, train_one(-1, n));
      FORETUNE_TRY(Network network, make_network(inputs_, trained));
      note(trained, -1, n);
      note_difference(network, trained);
      if (options_.network.int8_weights) {
        FORETUNE_TRY(network, with_int8_weights(network));
      }
      networks.push_back(std::move(network));
    }
    set_networks(model, std::move(networks));
    result_.metrics.emplace_back("samples_per_second",
                                 samples_per_second_ / static_cast<double>(curves_.size()));
    result_.metrics.emplace_back("max_difference_to_libtorch", difference_);
    if (int8_rows_ > 0) {
      result_.metrics.emplace_back("int8_rms_difference", std::sqrt(int8_squares_ / int8_rows_));
    }
    model.card_json = network_card(dataset_, table_,
                                   {.options = options_,
                                    .architecture = architecture_,
                                    .folds = static_cast<std::uint32_t>(result_.folds.size()),
                                    .examples = set_.size(),
                                    .failed_rows = set_.failed_rows,
                                    .weights = weight_count(networks_of(model).front()),
                                    .libtorch = libtorch_,
                                    .metrics = result_.metrics,
                                    .curves = curves_});
    return {};
  }

  static std::size_t weight_count(const Network& network) {
    std::size_t count = network.interaction.size();
    for (const std::vector<DenseLayer>* part : {&network.layers, &network.config_layers}) {
      for (const DenseLayer& layer : *part) {
        count += layer.weights.size() + layer.int8_weights.size() + layer.bias.size() +
                 2 * layer.scale.size();
      }
    }
    return count;
  }

  void note(const TrainedNetwork& trained, std::int32_t fold, std::uint32_t network) {
    curves_.push_back({.held_out_fold = fold,
                       .network = network,
                       .best_epoch = trained.best_epoch,
                       .epochs = trained.epochs});
    samples_per_second_ += trained.samples_per_second;
    libtorch_ = trained.libtorch;
  }

  // Of the network as it will be asked, against what libtorch said of some of the same rows.
  void note_difference(const Network& network, const TrainedNetwork& trained) {
    constexpr std::size_t kCompared = 2000;
    const std::size_t columns = table_.columns().size();
    const std::size_t step = std::max<std::size_t>(1, example_.size() / kCompared);
    for (std::size_t i = 0; i < example_.size(); i += step) {
      const std::size_t example = example_[i];
      const auto row = std::span(set_.matrix.values).subspan(example * columns, columns);
      const double ours =
          predict_reference(network, row, dataset_.problems()[set_.problem[example]].fields());
      const auto theirs = static_cast<double>(trained.predictions[i]);
      difference_ =
          std::max(difference_, std::fabs(ours - theirs) / std::max(1.0, std::fabs(theirs)));
    }
  }

  const Dataset& dataset_;
  const FeatureTable& table_;
  const TrainingSet& set_;
  const TrainOptions& options_;
  std::string architecture_;
  const ProgressHook& progress_;
  Folds folds_;
  std::filesystem::path folder_;
  std::filesystem::path rows_;
  std::string rows_digest_;
  Network inputs_;                      // of what is in the file of rows
  std::vector<std::uint32_t> example_;  // of every row there
  double residual_std_ = 0;
  double samples_per_second_ = 0;     // summed over the trainings
  std::vector<NetworkCurve> curves_;  // of every training
  double difference_ = 0;
  double int8_squares_ = 0;  // of what weights of 8 bits change in held-out predictions
  double int8_rows_ = 0;
  std::string libtorch_;
  TrainResult result_;
};

Status check_network_options(const TrainOptions& options, std::string_view architecture) {
  const NetworkOptions& network = options.network;
  if (network.program.empty() || !std::filesystem::exists(network.program)) {
    return fail(
        ErrorCode::kNotFound,
        "neural models are trained by the program foretune-train-network, which is not ",
        network.program.empty() ? std::string("known") : concat("at ", network.program.string()),
        "; it is built where libtorch is installed (libtorch-dev)");
  }
  if (options.target != Target::kRelativeLog && options.target != Target::kLog) {
    return fail(ErrorCode::kInvalidArgument, "neural models learn time, not ",
                to_string(options.target));
  }
  if (options.choose_target || options.warm_start != nullptr || options.mining.rounds > 0) {
    return fail(ErrorCode::kInvalidArgument,
                "choosing the target, a warm start and mining are for boosted trees");
  }
  if (network.int8_weights && architecture == "two-tower") {
    return fail(
        ErrorCode::kInvalidArgument,
        "weights of 8 bits are for networks of one chain: of two towers a query reads none");
  }
  if (network.networks < 1 || network.networks > 64) {
    return fail(ErrorCode::kInvalidArgument, "a model of ", network.networks,
                " networks; 1 to 64 make sense");
  }
  return {};
}

Result<TrainResult> train(const Dataset& dataset, const TrainOptions& options,
                          const char* architecture, const ProgressHook& progress) {
  FORETUNE_TRY_STATUS(check_network_options(options, architecture));
  FORETUNE_TRY(const FeatureTable* const table, table_for(dataset, options.feature_table));
  FORETUNE_TRY(TrainingSet set, make_training_set(dataset, *table, options.weight_decay));
  FORETUNE_TRY_STATUS(leave_out(*table, options.without_columns, set));
  return NetworkTraining(dataset, *table, set, options, architecture, progress).run();
}

}  // namespace

Result<TrainResult> train_standard(const Dataset& dataset, const TrainOptions& options,
                                   const ProgressHook& progress) {
  return train(dataset, options, "standard", progress);
}

Result<TrainResult> train_deep(const Dataset& dataset, const TrainOptions& options,
                               const ProgressHook& progress) {
  return train(dataset, options, "deep", progress);
}

Result<TrainResult> train_two_tower(const Dataset& dataset, const TrainOptions& options,
                                    const ProgressHook& progress) {
  return train(dataset, options, "two-tower", progress);
}

}  // namespace foretune
