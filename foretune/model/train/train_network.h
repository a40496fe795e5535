// Trains neural cost models: rows and options go to the program foretune-train-network, the only
// part of the project that is linked to libtorch, once for every fold and seed; what it gives back
// becomes a model file that needs no framework.
// Thread safety: any number at once, with work folders of their own.
#pragma once

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/model/train/trainer.h"

namespace foretune {

// Errors: those of train_gbdt() for the data; kNotFound without the program, kInternal with its
// last words when it fails; kCancelled by the hook; kInvalidArgument for options that make no
// sense.
Result<TrainResult> train_standard(const Dataset& dataset, const TrainOptions& options,
                                   const ProgressHook& progress = nullptr);
Result<TrainResult> train_deep(const Dataset& dataset, const TrainOptions& options,
                               const ProgressHook& progress = nullptr);
Result<TrainResult> train_two_tower(const Dataset& dataset, const TrainOptions& options,
                                    const ProgressHook& progress = nullptr);

}  // namespace foretune
