// A model that torch-diode trained as a model file of ours, to be compared as a baseline: what the
// selector, predict, validate-model and compare read.
//
//   FORETUNE_TRY(const DiodeCheckpoint checkpoint, read_diode_checkpoint("v1_model.pt"));
//   FORETUNE_TRY(const Model model, import_diode(checkpoint, dataset, {}));
//   FORETUNE_TRY_STATUS(write_model(model, "diode.ftm"));
//
// Scores are ln(ns), Diode's ln(ms) and ln(1e6).
// Thread safety: free functions without state. Cost: one pass over the data set.
#pragma once

#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/models/exchange/diode_checkpoint.h"
#include "foretune/models/infer/model_file.h"

namespace foretune {

struct DiodeImportOptions {
  // What users of Diode's integration into Inductor get from v1: it hands the features over as they
  // are, where the model learned standardised logarithms, and takes bf16 for a type of 32 bits. The
  // other kinds learned what they are given, and stay the same.
  bool raw = false;
  std::uint32_t portfolio_size = 16;
};

// Takes from the data set what the checkpoint does not hold: the candidates (what ran there, and
// what is legal), the family, a portfolio, the range of problems to answer. Its times teach the
// network nothing. Of the family triton Diode knows the first template alone, so that no other is a
// candidate.
// Errors: kMismatch for other problems and configs or a validation set, kInvalidArgument without a
// measurement of a candidate, kCorrupt for layers that do not fit each other.
Result<Model> import_diode(const DiodeCheckpoint& checkpoint, const Dataset& dataset,
                           const DiodeImportOptions& options);

}  // namespace foretune
