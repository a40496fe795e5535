// Trains models that a function fits, wherever that is written: it is shown rows of standardised
// inputs, once for every fold and once for all data, and gives back layers or something that
// predicts. Layers become a model of networks like any other; what predicts becomes one of kind
// "function", for experiments (model/function/function_body.h).
//
//   register_fitted_type("mine", "layers of mine", fit);
//
// Thread safety: any number of trainings at once, if the function allows it; each calls it from the
// thread that trains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/function/function_body.h"
#include "foretune/model/network/torch_layers.h"
#include "foretune/model/train/trainer.h"

namespace foretune {

// The rows of one training, problem after problem. Held-out ones are not among them.
struct FitRows {
  std::vector<std::string> columns;  // "m", "ln(m)", "signed ln(m)", "block_m=64"
  // Row by row: with mean 0 and deviation 1 over these rows, but for those of one value ("=") that
  // stay 0 or 1.
  std::vector<float> inputs;
  std::vector<float> target;           // ln(time / best of the problem), or ln ns
  std::vector<float> weight;           // of the squared error
  std::vector<std::uint32_t> problem;  // from 0, ascending
  std::vector<bool> censored;          // true where the time is a lower bound
  std::uint64_t seed = 0;
  std::string stage;  // "fold 2 of 5", "all data"

  [[nodiscard]] std::size_t size() const { return target.size(); }
};

// One of the two.
struct Fitted {
  std::vector<TorchLayer> layers;  // from a row of inputs to one prediction
  // The owner's own prediction for each row, NaN where there is none. A network that predicts
  // something else is refused. Empty: nothing to compare with.
  std::vector<float> predictions;
  std::shared_ptr<const RowFunction> function;
};

using FitFunction = std::function<Result<Fitted>(const FitRows& rows)>;

// `name` becomes the architecture. Errors: those of train_gbdt() for the data; those of `fit`;
// kInvalidArgument for options that make no sense and layers that do not fit the rows; kUnsupported
// for layers that cannot be folded or do not predict what `fit` says; kCancelled by the hook.
Result<TrainResult> train_by_function(const Dataset& dataset, const TrainOptions& options,
                                      const std::string& name, const FitFunction& fit,
                                      const ProgressHook& progress = nullptr);

// Makes it a type of models for the rest of the process. Errors: those of register_model_type().
Status register_fitted_type(const std::string& name, const std::string& description,
                            FitFunction fit);

}  // namespace foretune
