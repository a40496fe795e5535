// Matrix products by Triton's kernels, compiled beforehand (foretune.triton of the Python package
// does that) and launched without Python, beside the choice of NVIDIA's library. Nothing of Triton
// or CUDA is needed to build this; the driver and cuBLASLt are loaded in workers only.
//
// Options: kernels=FILE (compiled kernels; without it nothing can be measured, but everything else
// works), and those of cublaslt::SessionOptions.
//
// Thread safety: as Family.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/families/triton/triton_config.h"
#include "foretune/family/family.h"

namespace foretune {

Support triton_available(const FamilyOptions& options);
Result<std::unique_ptr<Family>> make_triton(const FamilyOptions& options);

// The row of the table of families.
const FamilyEntry& triton_family();

}  // namespace foretune
