// Tries settings: several short runs with settings drawn at random, of which the best writes the
// model. Thread safety: one sweep at a time.
#pragma once

#include <csignal>

#include "foretune/base/result.h"
#include "options.h"

namespace foretune::policy_training {

// Runs options.sweep trainings of an equal part of options.seconds each: the first with the options
// as they are, the others with rate, gamma, entropy, passes, imitation and width drawn by the seed.
// A folder gets sweep.csv, with what every run drew and reached, and a folder for each run. Errors:
// those of train_policy().
Status run_sweep(const TrainPolicyOptions& options, const volatile std::sig_atomic_t& stop);

}  // namespace foretune::policy_training
