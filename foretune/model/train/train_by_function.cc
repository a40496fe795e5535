#include "foretune/model/train/train_by_function.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/model/train/internal/network_training.h"
#include "foretune/model/train/training_set.h"

namespace foretune {
namespace {

using train_internal::check_learned;
using train_internal::NetworkRows;
using train_internal::NetworkTask;
using train_internal::PredictorTrainer;
using train_internal::table_for;
using train_internal::train_networks;
using train_internal::TrainedPredictor;

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

std::string name_of(const NetworkInput& input, const FeatureTable& table) {
  const std::string_view column = table.columns()[input.column].name;
  switch (input.transform) {
    case InputTransform::kIdentity:
      break;
    case InputTransform::kLog:
      return concat("ln(", column, ")");
    case InputTransform::kSignedLog:
      return concat("signed ln(", column, ")");
    case InputTransform::kEquals:
      return concat(column, "=", input.value);
  }
  return std::string(column);
}

class FittingTrainer final : public PredictorTrainer {
 public:
  FittingTrainer(const FeatureTable& table, const TrainOptions& options, const std::string& name,
                 const FitFunction& fit)
      : table_(table), options_(options), name_(name), fit_(fit) {}

  Status take(NetworkRows rows, const Network& inputs) override {
    rows_ = std::move(rows.rows);
    inputs_ = inputs.inputs;
    return {};
  }

  Result<TrainedPredictor> train(const NetworkTask& task, const ProgressHook& progress) override {
    if (progress && !progress({.stage = task.stage, .tree = 0, .trees = 1, .step = "fit"})) {
      return fail(ErrorCode::kCancelled, "the training was stopped");
    }
    TrainedPredictor out;
    set_roles(task.held_out_fold, out.network);
    set_statistics(out.network);
    const FitRows rows = training_rows(task, out.network);
    FORETUNE_TRY(Fitted fitted, fit_(rows));
    out.network.predictions.assign(rows_.size(), kUnknown);
    if (fitted.function != nullptr) {
      FORETUNE_TRY_STATUS(check_function_options());
      FORETUNE_TRY_STATUS(predict_held_out(*fitted.function, out.network));
      out.function = std::move(fitted.function);
      return out;
    }
    FORETUNE_TRY_STATUS(check_fitted(fitted, rows.size()));
    out.network.layers = std::move(fitted.layers);
    std::size_t row = 0;
    for (std::size_t i = 0; i < rows_.size() && !fitted.predictions.empty(); ++i) {
      if (is_training(out.network, i)) {
        out.network.predictions[i] = fitted.predictions[row++];
      }
    }
    return out;
  }

  [[nodiscard]] bool has_epochs() const override { return false; }
  [[nodiscard]] Comparison comparison() const override {
    return {.figure = "max_difference_to_module", .most = 1e-3};
  }

 private:
  static bool is_training(const TrainedNetwork& network, std::size_t row) {
    return static_cast<RowRole>(network.roles[row]) == RowRole::kTraining;
  }

  void set_roles(std::int32_t fold, TrainedNetwork& out) const {
    for (const std::uint32_t problem : rows_.problem) {
      const bool is_held_out = fold >= 0 && rows_.fold[problem] == static_cast<std::uint32_t>(fold);
      out.roles.push_back(
          static_cast<std::uint8_t>(is_held_out ? RowRole::kHeldOut : RowRole::kTraining));
    }
  }

  void set_statistics(TrainedNetwork& out) const {
    const std::size_t columns = inputs_.size();
    out.mean.assign(columns, 0);
    out.inverse_std.assign(columns, 1);
    for (std::size_t c = 0; c < columns && options_.network.standardises; ++c) {
      if (inputs_[c].transform != InputTransform::kEquals) {
        set_statistics(c, out);
      }
    }
  }

  void set_statistics(std::size_t column, TrainedNetwork& out) const {
    double count = 0;
    double mean = 0;
    double squares = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (is_training(out, i)) {
        const auto value = static_cast<double>(rows_.inputs[i * inputs_.size() + column]);
        const double distance = value - mean;
        mean += distance / ++count;
        squares += distance * (value - mean);
      }
    }
    const double deviation = count > 0 ? std::sqrt(squares / count) : 0;
    out.mean[column] = mean;
    // A column that is constant here, up to rounding, must not start to matter elsewhere.
    out.inverse_std[column] = deviation > 1e-7 * std::fabs(mean) ? 1 / deviation : 0;
  }

  void add_inputs(std::size_t row, const TrainedNetwork& network, std::vector<float>& out) const {
    for (std::size_t c = 0; c < inputs_.size(); ++c) {
      const auto value = static_cast<double>(rows_.inputs[row * inputs_.size() + c]);
      out.push_back(static_cast<float>((value - network.mean[c]) * network.inverse_std[c]));
    }
  }

  [[nodiscard]] FitRows training_rows(const NetworkTask& task,
                                      const TrainedNetwork& network) const {
    FitRows out{.seed = task.seed, .stage = task.stage};
    for (const NetworkInput& input : inputs_) {
      out.columns.push_back(name_of(input, table_));
    }
    const bool is_absolute = options_.target == Target::kLog;
    std::uint32_t problems = 0;
    std::uint32_t last = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!is_training(network, i)) {
        continue;
      }
      problems += out.problem.empty() || rows_.problem[i] != last ? 1U : 0U;
      last = rows_.problem[i];
      add_inputs(i, network, out.inputs);
      out.target.push_back(is_absolute ? rows_.log_time[i] : rows_.relative[i]);
      out.weight.push_back(rows_.weight[i]);
      out.problem.push_back(problems - 1);
      out.censored.push_back(rows_.censored[i] != 0);
    }
    return out;
  }

  Status predict_held_out(const RowFunction& function, TrainedNetwork& out) const {
    std::vector<std::size_t> held_out;
    std::vector<float> values;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!is_training(out, i)) {
        held_out.push_back(i);
        add_inputs(i, out, values);
      }
    }
    std::vector<double> predictions(held_out.size());
    if (!held_out.empty()) {
      FORETUNE_TRY_STATUS(function.predict(values, predictions));
    }
    for (std::size_t i = 0; i < held_out.size(); ++i) {
      if (!std::isfinite(predictions[i])) {
        return fail(ErrorCode::kInvalidArgument, name_, " predicts something that is no number");
      }
      out.predictions[held_out[i]] = static_cast<float>(predictions[i]);
    }
    return {};
  }

  [[nodiscard]] Status check_function_options() const {
    if (options_.network.networks != 1 || options_.network.int8_weights) {
      return fail(ErrorCode::kInvalidArgument, name_,
                  " predicts by a function, of which there are neither several nor weights of 8 "
                  "bits");
    }
    return {};
  }

  [[nodiscard]] Status check_fitted(const Fitted& fitted, std::size_t rows) const {
    const auto folded = fold_layers(fitted.layers);
    if (!folded) {
      // These layers were never in a file that could be damaged.
      const ErrorCode code = folded.error().code == ErrorCode::kCorrupt
                                 ? ErrorCode::kInvalidArgument
                                 : folded.error().code;
      return fail(code, "the layers of ", name_, " make no network: ", folded.error().message);
    }
    if (folded->front().inputs != inputs_.size() || folded->back().outputs != 1) {
      return fail(ErrorCode::kInvalidArgument, "the layers of ", name_, " make ",
                  folded->back().outputs, " values of ", folded->front().inputs, ", a row has ",
                  inputs_.size(), " inputs and wants 1");
    }
    if (!fitted.predictions.empty() && fitted.predictions.size() != rows) {
      return fail(ErrorCode::kInvalidArgument, name_, " gave ", fitted.predictions.size(),
                  " predictions for ", rows, " rows");
    }
    return {};
  }

  const FeatureTable& table_;
  const TrainOptions& options_;
  const std::string& name_;
  const FitFunction& fit_;
  TrainingRows rows_;
  std::vector<NetworkInput> inputs_;
};

Status check_fit_options(const TrainOptions& options) {
  FORETUNE_TRY_STATUS(check_learned(options));
  if (options.objective == TrainObjective::kLambdaRank ||
      options.objective == TrainObjective::kRegret || options.forests != 1) {
    return fail(ErrorCode::kInvalidArgument,
                "the objectives lambdarank and regret, and several forests, are for boosted trees");
  }
  if (options.network.splits_by_sample) {
    return fail(ErrorCode::kInvalidArgument,
                "a split by measurement is for the networks of foretune-train-network");
  }
  return {};
}

}  // namespace

Result<TrainResult> train_by_function(const Dataset& dataset, const TrainOptions& options,
                                      const std::string& name, const FitFunction& fit,
                                      const ProgressHook& progress) {
  FORETUNE_TRY_STATUS(check_fit_options(options));
  FORETUNE_TRY(const FeatureTable* const table, table_for(dataset, options.feature_table));
  FittingTrainer trainer(*table, options, name, fit);
  return train_networks(dataset, options, name, trainer, progress);
}

Status register_fitted_type(const std::string& name, const std::string& description,
                            FitFunction fit) {
  if (name.empty()) {
    return fail(ErrorCode::kInvalidArgument, "a type of models needs a name");
  }
  return register_model_type(
      {.name = name,
       .description = description,
       .train = [name, fit = std::move(fit)](const Dataset& dataset, const TrainOptions& options,
                                             const ProgressHook& progress) {
         return train_by_function(dataset, options, name, fit, progress);
       }});
}

}  // namespace foretune
