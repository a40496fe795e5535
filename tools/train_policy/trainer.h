// The whole of a run: computations, play, learning, checkpoints, evaluations and the model.
// Thread safety: one run at a time.
#pragma once

#include <csignal>

#include "foretune/base/result.h"
#include "options.h"

namespace foretune::policy_training {

// Writes what the options name and returns the mean share of the peak that the episodes of the last
// rounds ended with. Errors: those of reading and writing files; kUnsupported for
// instructions that this CPU lacks; kMismatch for a checkpoint of other options; kCancelled when
// nobody reads standard output any more. A run that `stop` interrupts writes its model as well.
Result<double> train_policy(const TrainPolicyOptions& options,
                            const volatile std::sig_atomic_t& stop);

}  // namespace foretune::policy_training
