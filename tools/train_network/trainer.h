// Trains for epochs until they stop helping. Returns the weights of the best epoch: the one with
// the lowest loss over the stop problems, or the last one without stop problems.
//
//   FORETUNE_TRY(const TrainedNetwork network, train_network(options, stop_flag));
//
// Thread safety: one call per process, since libtorch's threads are global. Errors: those of
// reading and writing files, kCancelled once the flag is set; libtorch's exceptions.
#pragma once

#include <csignal>

#include "foretune/base/result.h"
#include "foretune/model/train/files/training_files.h"
#include "options.h"

namespace foretune::network_training {

Result<TrainedNetwork> train_network(const TrainOptions& options,
                                     const volatile std::sig_atomic_t& stop_flag);

}  // namespace foretune::network_training
