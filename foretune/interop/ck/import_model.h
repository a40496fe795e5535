// Models that others trained as model files of ours: what the selector, predict, validate-model and
// compare read.
//
//   FORETUNE_TRY(const auto models, ForeignModels::open("models/gemm_universal_fp8_gfx950"));
//   FORETUNE_TRY(const Model model, import_model(models, dataset, {}));
//   FORETUNE_TRY_STATUS(write_model(model, "gemm.ftm"));
//
// The order of scores is that of the predictions; scores are `score_factor` times the sum of the
// trees, as for models that train itself made of such a target.
// Thread safety: free functions without state. Cost: one prediction of at most 20,000 rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/interop/ck/foreign_models.h"
#include "foretune/model/model_file.h"

namespace foretune {

struct ImportOptions {
  std::string target = "tflops";  // or "latency", "bandwidth"
  std::uint32_t portfolio_size = 16;
};

// Takes from the data set what the directory does not hold: the candidates (what ran there), what
// is legal, the family, a portfolio, the range of problems to answer, and how many logarithms of
// time a prediction is worth (docs/guides/from-ck.md). Its times teach the trees nothing.
// Errors: kNotFound for a target without model, kUnsupported for a target that is no rate or time,
// kMismatch with what differs: problems, configs, architecture, data type, or a validation set.
Result<Model> import_model(const ForeignModels& models, const Dataset& dataset,
                           const ImportOptions& options);

// The candidates by their names alone. Then the rules are those known of the architecture, no
// problem is out of range, there is no portfolio, and a score is minus the sum of the trees (plus
// for a latency). Errors: as above, and those of ForeignModels::parse_kernel; kInvalidArgument
// without a name.
Result<Model> import_model(const ForeignModels& models, std::span<const std::string> kernels,
                           const std::string& family, const ImportOptions& options);

}  // namespace foretune
