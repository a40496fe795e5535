// Matrix products by NVIDIA's cuBLASLt with an algorithm of our choice instead of its heuristic's.
// CUDA's driver, cuBLASLt and NVML are loaded when the first product is prepared or the device is
// asked about, which happens in worker processes only; everything else here works without a GPU.
//
// Options: device=N (0), workspace_mb=N (64), configs=FILE (a config a line, instead of the
// portfolio that is built in), clock_log=FILE (CSV, a line for every reading of clock and power),
// driver=, cublaslt=, nvml= (libraries to load instead of the system's).
//
// Thread safety: as Family.
#pragma once

#include <memory>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/family/family.h"

namespace foretune {

class CublasltFamily : public Family {
 public:
  // Every config that the library accepts for a problem, also those of no portfolio. Opens the
  // device; takes seconds. `splits`: numbers of parts of k. Errors: kUnsupported, kIo.
  virtual Result<std::vector<CublasltConfig>> enumerate(
      const Problem& problem, const std::vector<std::int32_t>& splits) const = 0;
  // What the heuristic returns for a problem, best first, as explicit configs. Opens the device.
  virtual Result<std::vector<CublasltConfig>> heuristic(const Problem& problem) const = 0;
};

Support cublaslt_available(const FamilyOptions& options);
Result<std::unique_ptr<CublasltFamily>> create_cublaslt(const FamilyOptions& options);
// The same as the table of families wants it.
Result<std::unique_ptr<Family>> make_cublaslt(const FamilyOptions& options);

// The row of the table of families.
const FamilyEntry& cublaslt_family();

}  // namespace foretune
