// A folder with all that training leaves: for every target its model file and its figures, and what
// a reader of model directories (model_directory.h) wants beside them.
//
//   model_<target>.ftm                  what the selector reads
//   feature_spec.json                   columns and targets, in Composable Kernel's words where the
//                                       configs are its kernels, in its order where the table is
//   cv_metrics_<target>.json            held-out figures of every fold, their mean, and all at once
//   feature_importances_<target>.json   gain and number of splits of every column
//   train_manifest.json                 data, code version, seed, options, metrics
//   model_<target>.lgbm, .lgbm.gz       only when wanted: its first readers open the one, later
//                                       ones either
//
// docs/reference/file-formats/foreign-models.md describes the JSON files. Same data, options and
// seed: same bytes; nothing says when it was written. Thread safety: free functions without state.
// Cost: that of writing the files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/trainer.h"

namespace foretune {

// A model of one target, with the name of its files: "time" for either logarithm of time, else the
// name of the target.
struct TrainedTarget {
  std::string_view name;
  const TrainOptions* options = nullptr;
  const TrainResult* result = nullptr;
};
std::string_view file_name_of(Target target);

// Makes the folder where there is none, and replaces its files one by one, feature_spec.json last.
// The targets share features and data. Errors: kInvalidArgument without a target and for one given
// twice, kIo, and those of write_model_directory.
Status write_training_output(const Dataset& dataset, std::span<const TrainedTarget> targets,
                             const std::filesystem::path& folder, bool write_lightgbm);

}  // namespace foretune
