// Problems made larger so that a kernel can compute them: Composable Kernel's kernels are built
// with or without support for edges, and one without needs sizes that its tile divides. The caller
// copies the operands into larger ones filled with zeros; the result's corner is what was asked
// for.
//
//   FORETUNE_TRY(const GemmProblem larger, padded_for_pool(gemm, pool, *space, hardware));
//
// Thread safety: free functions. Cost: no allocation for one kernel.
#pragma once

#include <cstdint>
#include <span>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/config.h"
#include "foretune/space/parametric_space.h"

namespace foretune {

// The smallest problem that contains `gemm` and whose sizes suit the kernel, a config of
// "ck-gemm": multiples of the tile where it pads nothing and memory is contiguous, and of its
// vector widths. `gemm` itself when that suits. Errors: kInvalidArgument for a config of another
// schema or sizes below 1, or when the result were too large a problem.
Result<GemmProblem> padded_for(const GemmProblem& gemm, const Config& kernel);

// `gemm` itself when the space lets a kernel of the pool compute it as it is. Else the one with the
// least work among what padded_for() makes of it for each kernel, if the space allows that; among
// equals the first. Errors: kUnsupported when the pool has no kernel for it even so.
Result<GemmProblem> padded_for_pool(const GemmProblem& gemm, std::span<const Config> pool,
                                    const CompiledSpace& space, const Hardware& hardware);

// The convolution with the channels and the filters of each group rounded up: a kernel without
// support for edges reads whole vectors of channels. Errors: kInvalidArgument for a multiple below
// 1, or when the result were too large a problem.
Result<ConvProblem> padded_channels(const ConvProblem& conv, std::int64_t multiple);

// `conv` itself when the space lets a kernel of the pool compute it as it is. Else
// padded_channels() for the smallest power of two with which it does, up to 64. Errors:
// kUnsupported when there is none.
Result<ConvProblem> padded_for_pool(const ConvProblem& conv, std::span<const Config> pool,
                                    const CompiledSpace& space, const Hardware& hardware);

}  // namespace foretune
