#include "foretune/model/train/train_network.h"

#include <stdlib.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/text.h"
#include "foretune/model/train/internal/network_program.h"
#include "foretune/model/train/internal/network_training.h"

namespace foretune {
namespace {

using train_internal::check_learned;
using train_internal::NetworkRows;
using train_internal::NetworkRun;
using train_internal::NetworkTask;
using train_internal::PredictorTrainer;
using train_internal::run_network_program;
using train_internal::train_networks;
using train_internal::TrainedPredictor;

// Where files are between us and the program: what the options name, or a folder that goes again.
class WorkFolder {
 public:
  static Result<WorkFolder> create(const std::filesystem::path& wanted) {
    WorkFolder out;
    std::error_code error;
    if (!wanted.empty()) {
      out.path_ = wanted;
      std::filesystem::create_directories(wanted, error);
    } else {
      std::string pattern =
          (std::filesystem::temp_directory_path(error) / "foretune-networks-XXXXXX").string();
      if (::mkdtemp(pattern.data()) == nullptr) {
        return fail(ErrorCode::kIo, "no temporary folder can be made like ", pattern);
      }
      out.path_ = pattern;
      out.is_temporary_ = true;
    }
    if (error) {
      return fail(ErrorCode::kIo, "cannot make the folder ", wanted.string(), ": ",
                  error.message());
    }
    return out;
  }
  WorkFolder(WorkFolder&& other) noexcept
      : path_(std::move(other.path_)), is_temporary_(std::exchange(other.is_temporary_, false)) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() {
    if (is_temporary_) {
      std::error_code ignored;
      std::filesystem::remove_all(path_, ignored);
    }
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  WorkFolder() = default;
  std::filesystem::path path_;
  bool is_temporary_ = false;
};

// Trains by foretune-train-network.
class ProgramTrainer final : public PredictorTrainer {
 public:
  ProgramTrainer(const TrainOptions& options, std::string architecture,
                 std::filesystem::path folder)
      : options_(options),
        architecture_(std::move(architecture)),
        folder_(std::move(folder)),
        rows_(folder_ / "rows") {}

  Status take(NetworkRows rows, const Network& /*inputs*/) override {
    FORETUNE_TRY_STATUS(write_training_rows(rows.rows, rows_));
    FORETUNE_TRY(const MappedFile file, MappedFile::open(rows_));
    rows_digest_ = Digest::of(file.bytes()).hex();
    return {};
  }

  Result<TrainedPredictor> train(const NetworkTask& task, const ProgressHook& progress) override {
    const std::int32_t fold = task.held_out_fold;
    NetworkRun run{.architecture = architecture_,
                   .target = std::string(to_string(options_.target)),
                   .rows = rows_,
                   .folder = folder_,
                   .log_folder = options_.network_log_folder,
                   .rows_digest = rows_digest_,
                   .held_out_fold = fold,
                   .seed = task.seed,
                   .stage = task.stage};
    if (!run.log_folder.empty()) {
      run.log_folder /=
          concat(fold < 0 ? std::string("all") : concat("fold", fold), "-", task.network);
    }
    FORETUNE_TRY(TrainedNetwork trained, run_network_program(run, options_.network, progress));
    return TrainedPredictor{.network = std::move(trained), .function = nullptr};
  }

  [[nodiscard]] bool has_epochs() const override { return true; }
  [[nodiscard]] Comparison comparison() const override {
    return {.figure = "max_difference_to_libtorch"};
  }

 private:
  const TrainOptions& options_;
  std::string architecture_;
  std::filesystem::path folder_;
  std::filesystem::path rows_;
  std::string rows_digest_;
};

Status check_network_options(const TrainOptions& options, std::string_view architecture) {
  const NetworkOptions& network = options.network;
  if (network.program.empty() || !std::filesystem::exists(network.program)) {
    return fail(
        ErrorCode::kNotFound,
        "neural models are trained by the program foretune-train-network, which is not ",
        network.program.empty() ? std::string("known") : concat("at ", network.program.string()),
        "; it is built where libtorch is installed (libtorch-dev)");
  }
  FORETUNE_TRY_STATUS(check_learned(options));
  if (network.int8_weights && architecture == "two-tower") {
    return fail(
        ErrorCode::kInvalidArgument,
        "weights of 8 bits are for networks of one chain: of two towers a query reads none");
  }
  return {};
}

Result<TrainResult> train(const Dataset& dataset, const TrainOptions& options,
                          const char* architecture, const ProgressHook& progress) {
  FORETUNE_TRY_STATUS(check_network_options(options, architecture));
  FORETUNE_TRY(const WorkFolder work, WorkFolder::create(options.network.work_folder));
  ProgramTrainer trainer(options, architecture, work.path());
  return train_networks(dataset, options, architecture, trainer, progress);
}

}  // namespace

Result<TrainResult> train_standard(const Dataset& dataset, const TrainOptions& options,
                                   const ProgressHook& progress) {
  return train(dataset, options, "standard", progress);
}

Result<TrainResult> train_deep(const Dataset& dataset, const TrainOptions& options,
                               const ProgressHook& progress) {
  return train(dataset, options, "deep", progress);
}

Result<TrainResult> train_two_tower(const Dataset& dataset, const TrainOptions& options,
                                    const ProgressHook& progress) {
  return train(dataset, options, "two-tower", progress);
}

}  // namespace foretune
