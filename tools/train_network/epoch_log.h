// What a run tells while it goes on: a line per epoch on standard output, a table, and curves for
// TensorBoard.
//
//   epoch 3 of 100 train 0.0123 stop 0.014 efficiency 0.93 lr 0.001 seconds 1.2
//
// Numbers that there are none of are "nan". Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/documents/tensorboard_events.h"
#include "foretune/models/neural/training_files.h"
#include "options.h"

namespace foretune::network_training {

class EpochLog {
 public:
  static Result<EpochLog> create(const TrainOptions& options);
  // Of the last of `epochs`. Errors: kCancelled when nobody reads standard output any more; kIo.
  Status add(const std::vector<TrainedNetwork::Epoch>& epochs, double samples_per_second);

 private:
  EpochLog() = default;
  Status add_curves(const TrainedNetwork::Epoch& epoch, std::int64_t number,
                    double samples_per_second);

  bool shows_progress_ = false;
  std::uint32_t num_epochs_ = 0;
  std::filesystem::path folder_;
  std::optional<documents::TensorboardWriter> curves_;
};

}  // namespace foretune::network_training
