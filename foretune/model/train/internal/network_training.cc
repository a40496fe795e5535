#include "foretune/model/train/internal/network_training.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/model/network/network_body.h"
#include "foretune/model/network/network_int8.h"
#include "foretune/model/train/assemble.h"
#include "foretune/model/train/held_out.h"
#include "foretune/model/train/internal/cross_validation.h"
#include "foretune/model/train/internal/network_predictions.h"
#include "foretune/model/train/model_card.h"
#include "foretune/model/train/training_set.h"

namespace foretune::train_internal {
namespace {

class NetworkTraining {
 public:
  NetworkTraining(const Dataset& dataset, const FeatureTable& table, const TrainingSet& set,
                  const TrainOptions& options, std::string architecture, PredictorTrainer& trainer,
                  const ProgressHook& progress)
      : dataset_(dataset),
        table_(table),
        set_(set),
        options_(options),
        architecture_(std::move(architecture)),
        trainer_(trainer),
        comparison_(trainer.comparison()),
        progress_(progress),
        folds_(deal_folds(dataset, set, options)) {}

  Result<TrainResult> run() {
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
  // The inputs and the rows for trainings that hold that fold out: nothing about them comes from
  // its problems, unless the program draws what it holds out itself.
  Status give_rows(std::optional<std::uint32_t> held_out_fold) {
    Network inputs = make_inputs(
        dataset_, table_, set_,
        {.has_towers = architecture_ == "two-tower",
         .transforms = options_.network.standardises,
         .fold_of_problem = folds_.of_problem,
         .held_out_fold = options_.network.splits_by_sample ? std::nullopt : held_out_fold});
    inputs.architecture = architecture_;
    if (!example_.empty() && inputs == inputs_) {
      return {};
    }
    inputs_ = std::move(inputs);
    NetworkRows made =
        make_rows(dataset_, table_, set_, inputs_, folds_.of_problem, options_.group_key);
    example_ = made.example;
    return trainer_.take(std::move(made), inputs_);
  }

  [[nodiscard]] bool is_absolute() const { return options_.target == Target::kLog; }

  Result<TrainedPredictor> train_one(std::int32_t fold, std::uint32_t network) {
    const std::string part =
        fold < 0 ? std::string("all data") : concat("fold ", fold + 1, " of ", folds_.count);
    const NetworkTask task{
        .held_out_fold = fold,
        .network = network,
        .seed = options_.seed + network,
        .stage = options_.network.networks > 1 ? concat(part, ", network ", network + 1) : part};
    FORETUNE_TRY(TrainedPredictor trained, trainer_.train(task, progress_));
    curves_.push_back({.held_out_fold = fold,
                       .network = network,
                       .best_epoch = trained.network.best_epoch,
                       .epochs = trained.network.epochs});
    samples_per_second_ += trained.network.samples_per_second;
    libtorch_ = trained.network.libtorch;
    return trained;
  }

  // Every fold's rows are predicted by networks that did not see its problems; a split by
  // measurement draws the rows itself and says which they were.
  Status hold_out() {
    std::vector<double> predictions(set_.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::uint32_t fold = 0; fold < folds_.count; ++fold) {
      FORETUNE_TRY_STATUS(give_rows(fold));
      for (std::uint32_t n = 0; n < options_.network.networks; ++n) {
        FORETUNE_TRY(const TrainedPredictor trained, train_one(static_cast<std::int32_t>(fold), n));
        FORETUNE_TRY(const HeldOutPredictions held_out, held_out_predictions(trained));
        for (std::size_t i = 0; i < held_out.example.size(); ++i) {
          double& prediction = predictions[held_out.example[i]];
          prediction = (n == 0 ? 0 : prediction) + held_out.value[i] / options_.network.networks;
        }
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
  // Returns the trainer's predictions, or the model's own where the trainer has none or the model
  // will differ from what was trained.
  Result<HeldOutPredictions> held_out_predictions(const TrainedPredictor& trained) {
    HeldOutPredictions out;
    bool is_known = true;
    for (std::size_t i = 0; i < example_.size(); ++i) {
      if (static_cast<RowRole>(trained.network.roles[i]) == RowRole::kHeldOut) {
        out.example.push_back(example_[i]);
        out.value.push_back(static_cast<double>(trained.network.predictions[i]));
        is_known = is_known && !std::isnan(out.value.back());
      }
    }
    if (is_known && !options_.network.int8_weights) {
      return out;
    }
    FORETUNE_TRY(Network whole, make_network(inputs_, trained.network));
    if (!is_known) {
      FORETUNE_TRY_STATUS(compare(whole, trained.network));
      FORETUNE_TRY(out.value, network_predictions(whole, dataset_, table_, set_, out.example));
    }
    if (options_.network.int8_weights) {
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
    FORETUNE_TRY_STATUS(give_rows(std::nullopt));
    FORETUNE_TRY(result_.model, make_model(dataset_, table_, set_, options_));
    Model& model = result_.model;
    model.target = to_string(options_.target);
    model.residual_std = residual_std_;
    std::vector<Network> networks;
    for (std::uint32_t n = 0; n < options_.network.networks; ++n) {
      FORETUNE_TRY(TrainedPredictor trained, train_one(-1, n));
      if (trained.function != nullptr) {
        FORETUNE_TRY(Network inputs, with_statistics(inputs_, trained.network));
        set_function(model, {architecture_, std::move(inputs.inputs), std::move(trained.function)});
        continue;
      }
      FORETUNE_TRY(Network network, make_network(inputs_, trained.network));
      FORETUNE_TRY_STATUS(compare(network, trained.network));
      if (options_.network.int8_weights) {
        FORETUNE_TRY(network, with_int8_weights(network));
      }
      networks.push_back(std::move(network));
    }
    if (!networks.empty()) {
      set_networks(model, std::move(networks));
    }
    if (trainer_.has_epochs()) {
      result_.metrics.emplace_back("samples_per_second",
                                   samples_per_second_ / static_cast<double>(curves_.size()));
    }
    if (has_compared_) {
      result_.metrics.emplace_back(comparison_.figure, difference_);
    }
    if (int8_rows_ > 0) {
      result_.metrics.emplace_back("int8_rms_difference", std::sqrt(int8_squares_ / int8_rows_));
    }
    model.card_json = network_card(
        dataset_, table_,
        {.options = options_,
         .kind = model.kind,
         .architecture = architecture_,
         .folds = static_cast<std::uint32_t>(result_.folds.size()),
         .examples = set_.size(),
         .failed_rows = set_.failed_rows,
         .weights = networks_of(model).empty() ? 0 : weight_count(networks_of(model).front()),
         .has_epochs = trainer_.has_epochs(),
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

  // The network as it will be asked, against what its trainer said of some of the same rows.
  Status compare(const Network& network, const TrainedNetwork& trained) {
    constexpr std::size_t kCompared = 2000;
    const std::size_t columns = table_.columns().size();
    std::vector<std::size_t> said;
    for (std::size_t i = 0; i < example_.size(); ++i) {
      if (!std::isnan(trained.predictions[i])) {
        said.push_back(i);
      }
    }
    const std::size_t step = std::max<std::size_t>(1, said.size() / kCompared);
    for (std::size_t i = 0; i < said.size(); i += step) {
      const std::size_t example = example_[said[i]];
      const auto row = std::span(set_.matrix.values).subspan(example * columns, columns);
      const double ours =
          predict_reference(network, row, dataset_.problems()[set_.problem[example]].fields());
      const auto theirs = static_cast<double>(trained.predictions[said[i]]);
      difference_ =
          std::max(difference_, std::fabs(ours - theirs) / std::max(1.0, std::fabs(theirs)));
      has_compared_ = true;
    }
    return difference_ <= comparison_.most
               ? Status()
               : fail(ErrorCode::kUnsupported, "the layers of ", architecture_,
                      " predict otherwise than it does itself, by up to ", fixed(difference_, 4),
                      ": it does something beside them");
  }

  const Dataset& dataset_;
  const FeatureTable& table_;
  const TrainingSet& set_;
  const TrainOptions& options_;
  std::string architecture_;
  PredictorTrainer& trainer_;
  PredictorTrainer::Comparison comparison_;
  const ProgressHook& progress_;
  Folds folds_;
  Network inputs_;                      // of the rows that the trainer has
  std::vector<std::uint32_t> example_;  // of every row there
  double residual_std_ = 0;
  double samples_per_second_ = 0;     // summed over the trainings
  std::vector<NetworkCurve> curves_;  // of every training
  bool has_compared_ = false;
  double difference_ = 0;
  double int8_squares_ = 0;  // of what weights of 8 bits change in held-out predictions
  double int8_rows_ = 0;
  std::string libtorch_;
  TrainResult result_;
};

}  // namespace

Status check_learned(const TrainOptions& options) {
  if (options.target != Target::kRelativeLog && options.target != Target::kLog) {
    return fail(ErrorCode::kInvalidArgument, "neural models learn time, not ",
                to_string(options.target));
  }
  if (options.choose_target || options.warm_start != nullptr || options.mining.rounds > 0) {
    return fail(ErrorCode::kInvalidArgument,
                "choosing the target, a warm start and mining are for boosted trees");
  }
  if (options.network.networks < 1 || options.network.networks > 64) {
    return fail(ErrorCode::kInvalidArgument, "a model of ", options.network.networks,
                " networks; 1 to 64 make sense");
  }
  return {};
}

Result<TrainResult> train_networks(const Dataset& dataset, const TrainOptions& options,
                                   const std::string& architecture, PredictorTrainer& trainer,
                                   const ProgressHook& progress) {
  FORETUNE_TRY(const TrainingData data, training_data(dataset, options));
  return NetworkTraining(dataset, *data.table, data.set, options, architecture, trainer, progress)
      .run();
}

}  // namespace foretune::train_internal
