// A training from data to figures for whatever predicts rows of standardised inputs: folds, inputs
// that no held-out problem chose, held-out scores, figures, the model and its card. Who trains one
// network is the caller's. Internal.
// Thread safety: independent trainings may run at once.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/function/function_body.h"
#include "foretune/model/network/network.h"
#include "foretune/model/train/files/training_files.h"
#include "foretune/model/train/internal/network_inputs.h"
#include "foretune/model/train/trainer.h"

namespace foretune::train_internal {

struct NetworkTask {
  std::int32_t held_out_fold = -1;  // -1: none
  std::uint32_t network = 0;        // from 0, of those that are averaged
  std::uint64_t seed = 0;
  std::string stage;  // for the progress
};

struct TrainedPredictor {
  // Without layers where a function predicts. Predictions may be NaN: then the network itself is
  // asked for the row.
  TrainedNetwork network;
  std::shared_ptr<const RowFunction> function;  // or null
};

class PredictorTrainer {
 public:
  PredictorTrainer() = default;
  PredictorTrainer(const PredictorTrainer&) = delete;
  PredictorTrainer& operator=(const PredictorTrainer&) = delete;
  virtual ~PredictorTrainer() = default;

  // The rows of the trainings that follow, and their inputs.
  virtual Status take(NetworkRows rows, const Network& inputs) = 0;
  virtual Result<TrainedPredictor> train(const NetworkTask& task, const ProgressHook& progress) = 0;
  // True where it learns in epochs, which the card shows as curves beside the options.
  [[nodiscard]] virtual bool has_epochs() const = 0;
  // The figure of how far a network is from what its trainer said of the same rows, and where that
  // becomes an error: relative to predictions beyond 1.
  struct Comparison {
    std::string figure;
    double most = std::numeric_limits<double>::infinity();
  };
  [[nodiscard]] virtual Comparison comparison() const = 0;
};

// Errors: kInvalidArgument for what only trees can do.
Status check_learned(const TrainOptions& options);

Result<TrainResult> train_networks(const Dataset& dataset, const TrainOptions& options,
                                   const std::string& architecture, PredictorTrainer& trainer,
                                   const ProgressHook& progress);

}  // namespace foretune::train_internal
