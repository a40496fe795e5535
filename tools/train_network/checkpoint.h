// All that an epoch starts from, and the file that holds it. Random numbers are no part of it:
// those of an epoch follow from the seed and its number, so that a resumed run on a CPU gives the
// same bits as one that was never interrupted. Thread safety: one thread at a time. Cost: five
// buffers as long as the parameters, written and synchronised to the disk.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/train/files/training_files.h"
#include "optimizer.h"

namespace foretune::network_training {

struct TrainingState {
  std::uint64_t identity = 0;  // of options and rows
  std::vector<TrainedNetwork::Epoch> epochs;
  std::uint32_t best_epoch = 0;  // 0: none yet
  double best_loss = 0;
  PlateauSchedule schedule;
  std::int64_t steps = 0;  // of the optimiser
  std::uint64_t rows_seen = 0;
  double seconds = 0;  // of training alone
  // Tensors of this run, which a checkpoint is read into: parameters, statistics, the optimiser's
  // means and squares, best parameters, best statistics.
  std::vector<at::Tensor> tensors;
};

Status write_checkpoint(const TrainingState& state, const std::filesystem::path& path);
// Errors: kMismatch for a run of other options or rows; kCorrupt; kIo.
Status read_checkpoint(const std::filesystem::path& path, TrainingState& state);

}  // namespace foretune::network_training
