// Convolutions by NVIDIA's cuDNN with an engine and knobs of our choice instead of its heuristics'.
// CUDA's driver, cuDNN and NVML are loaded when the first convolution is prepared or the device is
// queried, which happens in worker processes only; everything else here works without a GPU.
//
// Options: device=N (0), workspace_mb=N (1024), deterministic=1 (refuses engines whose results may
// differ from run to run), configs=FILE (one config per line, beside the heuristics' ranks),
// clock_log=FILE (CSV, one line for every reading of clock and power), driver=, cudnn=, nvml=
// (libraries to load instead of the system's).
//
// Thread safety: as Family.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cudnn/cudnn_config.h"
#include "foretune/cudnn/enumerate.h"
#include "foretune/family/family.h"

namespace foretune {

// The metric that says whether the library promises the same result in every run: 1 or 0.
inline constexpr std::string_view kDeterministic = "deterministic";

class CudnnFamily : public Family {
 public:
  // Returns the configs that the library accepts for a problem, on `threads` threads. Opens the
  // device; takes seconds. Errors: kUnsupported, kIo.
  virtual Result<cudnn::Listed> enumerate(const Problem& problem, const cudnn::Enumeration& options,
                                          std::size_t threads) const = 0;
  // Returns the answers of a heuristic that may be used, best first, as explicit configs. Opens the
  // device.
  virtual Result<std::vector<CudnnConfig>> answers(const Problem& problem,
                                                   CudnnHeuristic heuristic) const = 0;
  // Makes the plans of explicit configs on `threads` threads, until `seconds` have passed, so that
  // measuring the problem next finds them made. Returns those that are known afterwards.
  virtual Result<std::vector<CudnnConfig>> build(const Problem& problem,
                                                 std::span<const CudnnConfig> configs,
                                                 std::size_t threads, double seconds) const = 0;
};

Support cudnn_available(const FamilyOptions& options);
Result<std::unique_ptr<CudnnFamily>> create_cudnn(const FamilyOptions& options);
// Calls create_cudnn(), with the result type that the table of families needs.
Result<std::unique_ptr<Family>> make_cudnn(const FamilyOptions& options);

// The row of the table of families.
const FamilyEntry& cudnn_family();

}  // namespace foretune
