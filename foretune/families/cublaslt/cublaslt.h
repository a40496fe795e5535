// Matrix products by NVIDIA's cuBLASLt with an algorithm of our choice instead of its heuristic's.
// CUDA's driver, cuBLASLt and NVML are loaded when the first product is prepared or the device is
// queried, which happens in worker processes only; everything else here works without a GPU.
//
// Options: device=N (0), workspace_mb=N (64), configs=FILE (one config per line, instead of the
// built-in portfolio), clock_log=FILE (CSV, one line for every reading of clock and power),
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
  // Returns every config that the library accepts for a problem, including those of no portfolio.
  // `splits` are numbers of parts of k. Opens the device; takes seconds. Errors: kUnsupported, kIo.
  virtual Result<std::vector<CublasltConfig>> enumerate(
      const Problem& problem, const std::vector<std::int32_t>& splits) const = 0;
  // Returns the heuristic's choices for a problem, best first, as explicit configs. Opens the
  // device.
  virtual Result<std::vector<CublasltConfig>> heuristic(const Problem& problem) const = 0;
};

Support cublaslt_available(const FamilyOptions& options);
Result<std::unique_ptr<CublasltFamily>> create_cublaslt(const FamilyOptions& options);
// Calls create_cublaslt(), with the result type that the table of families needs.
Result<std::unique_ptr<Family>> make_cublaslt(const FamilyOptions& options);

// The row of the table of families.
const FamilyEntry& cublaslt_family();

}  // namespace foretune
