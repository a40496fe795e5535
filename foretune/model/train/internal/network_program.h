// Runs foretune-train-network for one fold and seed. Internal.
// Thread safety: any number at once, with files of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "foretune/base/result.h"
#include "foretune/model/train/files/training_files.h"
#include "foretune/model/train/network_options.h"
#include "foretune/model/train/trainer.h"

namespace foretune::train_internal {

struct NetworkRun {
  std::string architecture;  // "standard", "deep", "two-tower"
  std::string target;        // "relative-log" or "log"
  std::filesystem::path rows;
  std::filesystem::path folder;      // for what the run leaves; its names are of the run alone
  std::filesystem::path log_folder;  // empty: none
  std::string rows_digest;
  std::int32_t held_out_fold = -1;  // -1: none
  std::uint64_t seed = 0;
  std::string stage;  // for the progress
};

Result<TrainedNetwork> run_network_program(const NetworkRun& run, const NetworkOptions& options,
                                           const ProgressHook& progress);

}  // namespace foretune::train_internal
