// Reads the training data of the programs that train models.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "bench/bench_json.h"
#include "foretune/base/result.h"
#include "foretune/families/recorded/triton_space.h"
#include "foretune/interop/tables/dataset_folder.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/space/schemas/triton.h"

namespace foretune::bench {

// Reads the recorded H200 measurements.
inline Result<Dataset> read_h200(const std::string& path) {
  DatasetHeader header;
  header.family = "recorded";
  header.config_schema = triton_gemm_schema();
  header.space_text = triton_gemm_space().text();
  header.fingerprint = h200_fingerprint();
  return import_csv(path, header);
}

// Reads the training sets below `--training-data`, or the H200 measurements of `--data`.
inline Result<Dataset> read_training_data(int argc, char** argv) {
  const std::string folder = argument(argc, argv, "training-data");
  if (folder.empty()) {
    return read_h200(argument(argc, argv, "data"));
  }
  FORETUNE_TRY(std::optional<Dataset> dataset, merge_training_sets(folder));
  if (!dataset) {
    return fail(ErrorCode::kNotFound, "no training data set below ", folder);
  }
  dataset->deduplicate();
  return *std::move(dataset);
}

}  // namespace foretune::bench
