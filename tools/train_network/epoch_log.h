// Reports the progress of a run: a line per epoch on standard output, a table, and curves for
// TensorBoard.
//
//   epoch 3 of 100 train 0.0123 stop 0.014 efficiency 0.93 lr 0.001 seconds 1.2
//
// Missing numbers are "nan". Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/formats/tensorboard_events.h"
#include "foretune/model/train/files/training_files.h"
#include "options.h"

namespace foretune::network_training {

class EpochLog {
 public:
  static Result<EpochLog> create(const TrainOptions& options);
  // Reports the last of `epochs`. Errors: kCancelled when nobody reads standard output any more;
  // kIo.
  Status add(const std::vector<TrainedNetwork::Epoch>& epochs, double samples_per_second);

 private:
  EpochLog() = default;
  Status add_curves(const TrainedNetwork::Epoch& epoch, std::int64_t number,
                    double samples_per_second);

  bool shows_progress_ = false;
  std::uint32_t num_epochs_ = 0;
  std::filesystem::path folder_;
  std::optional<formats::TensorboardWriter> curves_;
};

}  // namespace foretune::network_training
