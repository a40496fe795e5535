// All that a round of play and learning starts from, and the file that holds it. Random numbers are
// no part of it: those of a round follow from the seed and its number.
//
// Thread safety: one thread at a time. Cost: three buffers as long as the parameters, and the best
// episodes.
#pragma once

#include <cstdint>
#include <filesystem>

#include "foretune/base/result.h"
#include "learner.h"
#include "rollout.h"
#include "torch_policy.h"

namespace foretune::policy_training {

struct RunState {
  std::uint64_t identity = 0;  // of options and computations
  std::uint64_t round = 0;
  double seconds = 0;  // of play and learning so far
  std::uint64_t steps = 0;
};

Status write_checkpoint(const std::filesystem::path& path, const RunState& state,
                        const TorchPolicy& policy, const FlatAdam& adam, const Elites& elites);
// Errors: kMismatch for a run of other options; kCorrupt; kIo. Then nothing changes but what was
// read already, so that the run must not go on.
Status read_checkpoint(const std::filesystem::path& path, RunState& state, TorchPolicy& policy,
                       FlatAdam& adam, Elites& elites);

}  // namespace foretune::policy_training
