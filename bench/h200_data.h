// The recorded H200 measurements, for the programs that learn from them.
#pragma once

#include <string>

#include "foretune/base/result.h"
#include "foretune/dataset/exchange.h"
#include "foretune/families/recorded/triton_space.h"

namespace foretune::bench {

inline Result<Dataset> read_h200(const std::string& path) {
  DatasetHeader header;
  header.family = "recorded";
  header.config_schema = triton_gemm_schema();
  header.space_text = triton_gemm_space().text();
  header.fingerprint = h200_fingerprint();
  return import_csv(path, header);
}

}  // namespace foretune::bench
