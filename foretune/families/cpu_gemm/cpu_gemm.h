// The cpu-gemm family: f32 row-major matrix products (mm, addmm, bmm) on the CPU it runs on, with
// our own kernels for AVX-512, AVX2 and everything else. A config says which register block, which
// cache blocks, what is packed, in which order and on how many threads (cpu_gemm_config.h); packing
// is part of the measured time.
//
//   FORETUNE_TRY(auto family, make_cpu_gemm({.fingerprint = fingerprint}));
//
// Thread safety: as Family; all runs of one family share a thread pool and take turns on it.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/family/family.h"

namespace foretune {

// The space follows from the fingerprint's hardware: instruction set, cores, caches. Errors:
// kInvalidArgument for any parameter, there are none.
Result<std::unique_ptr<Family>> make_cpu_gemm(const FamilyOptions& options);
Support cpu_gemm_available(const FamilyOptions& options);

}  // namespace foretune
