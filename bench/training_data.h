// What the programs that learn are given to learn from.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "bench/bench_json.h"
#include "foretune/base/result.h"
#include "foretune/dataset/dataset_folder.h"
#include "foretune/dataset/exchange.h"
#include "foretune/families/recorded/triton_space.h"

namespace foretune::bench {

// The recorded H200 measurements.
inline Result<Dataset> read_h200(const std::string& path) {
  DatasetHeader header;
  header.family = "recorded";
  header.config_schema = triton_gemm_schema();
  header.space_text = triton_gemm_space().text();
  header.fingerprint = h200_fingerprint();
  return import_csv(path, header);
}

// The training sets below `--training-data`, or the H200 measurements of `--data`.
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
