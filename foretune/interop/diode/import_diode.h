// Converts a model that torch-diode trained into one of our model files, which the selector,
// predict, validate-model and compare can read. It serves as a baseline.
//
//   FORETUNE_TRY(const DiodeCheckpoint checkpoint, read_diode_checkpoint("v1_model.pt"));
//   FORETUNE_TRY(const Model model, import_diode(checkpoint, dataset, {}));
//   FORETUNE_TRY_STATUS(write_model(model, "diode.ftm"));
//
// Scores are ln(ns): Diode's ln(ms) plus ln(1e6).
// Thread safety: free functions without state. Cost: one pass over the data set.
#pragma once

#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/interop/diode/diode_checkpoint.h"
#include "foretune/model/model_file.h"

namespace foretune {

struct DiodeImportOptions {
  // Reproduces v1 as Diode's integration into Inductor runs it: with raw features, although the
  // model learned standardised logarithms, and with bf16 as a type of 32 bits. The other kinds get
  // the inputs that they learned from, so that this changes nothing for them.
  bool raw = false;
  std::uint32_t portfolio_size = 16;
};

// Takes from the data set the facts that the checkpoint lacks: the candidates (the configs that ran
// there, and the legal ones), the family, a portfolio, the range of problems to answer. The network
// learns nothing from its times. Diode knows only the first template of the family triton, so only
// configs of that one are candidates.
// Errors: kMismatch for other problems and configs or a validation set, kInvalidArgument without a
// measurement of a candidate, kCorrupt for layers that do not fit each other.
Result<Model> import_diode(const DiodeCheckpoint& checkpoint, const Dataset& dataset,
                           const DiodeImportOptions& options);

}  // namespace foretune
