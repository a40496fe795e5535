// The space of the family triton (the schema and its struct are in space/schemas/triton.h), and the
// kernels behind its configs. One is compiled for a type, a layout, an epilogue, and what
// is known of the sizes when it is compiled; its key says all of that:
//
//   template=1 dtype=bf16 layout=rcr epilogue=none even_k=1 aligned=1 block_m=128 block_n=256
//   block_k=64 group_m=8 num_stages=3 num_warps=8
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/parametric_space.h"
#include "foretune/space/schemas/triton.h"

namespace foretune {

SpaceDefinition triton_matmul_space();
// The same, compiled once.
const std::shared_ptr<const CompiledSpace>& compiled_triton_matmul_space();

// Leading dimensions that are multiples of this many elements are promised to the compiler, which
// then loads 16 bytes at a time.
inline constexpr std::int64_t kTritonAlignment = 8;

// Distances between rows, or columns where stored by columns, in elements, of operands without
// gaps.
struct LeadingDimensions {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t d = 0;
};
LeadingDimensions leading_dimensions(const GemmProblem& problem);

// The key of the kernel that a config (not the library's choice) needs for a problem.
std::string triton_kernel_key(const GemmProblem& problem, const TritonConfig& config);
// Keys of all kernels that the legal configs of a problem need, in the order of the space. Errors:
// none for a problem that GemmProblem accepts.
Result<std::vector<std::string>> triton_kernel_keys(const GemmProblem& problem,
                                                    const Hardware& hardware);

}  // namespace foretune
