// The family "cpu-gemm": C = A * B, optionally with a bias and a ReLU, for one product or a batch,
// in all four layouts; f32, bf16 with sums in f32, or i8 with sums in i32; any instruction set of
// this CPU, any number of threads. Its space follows the machine in the fingerprint: cache sizes,
// vector width and cores. FamilyOptions::threads (or the parameter threads=N, which means the same)
// and the parameter isa=avx512|avx2|generic restrict it to less than the machine has. When a
// problem is measured, its payload is B (gemm_weights.h); kernels multiply their callers' operands.
//
//   const Fingerprint machine = cpu_fingerprint(read_cpu_facts(), measure_cpu_peaks());
//   FORETUNE_TRY(const auto family, create_cpu_gemm({.fingerprint = machine}));
//   FORETUNE_TRY(const auto kernel, family->kernel(problem, config));
//   FORETUNE_TRY_STATUS(kernel->run({.a = a, .a_stride = k, .b = b, .b_stride = n,
//                                    .c = c, .c_stride = n}));
//
// Thread safety: as Family. Any number of threads may run kernels at once; kernels that use several
// threads take turns. The same holds in a forked child, whatever other threads were running at the
// fork.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/families/cpu_gemm/blocked_gemm.h"
#include "foretune/family/family.h"

namespace foretune {

// One problem and config, ready for a caller's operands. The problem gives the sizes and the
// layout; the operands, not the problem's operation, give bias, ReLU, alpha and beta.
class CpuGemmKernel {
 public:
  virtual ~CpuGemmKernel() = default;
  // The operands' types must be those of the problem, and C must not overlap A or B. Errors:
  // kInvalidArgument for other types, kUnsupported when there is no memory to pack into; C is then
  // unchanged. Cost: all kernels of the family share the packing buffers, which are kept.
  virtual Status run(const GemmOperands& operands) const = 0;
  virtual Status run(const Bf16GemmOperands& operands) const = 0;
  virtual Status run(const I8GemmOperands& operands) const = 0;
};

class CpuGemm : public Family {
 public:
  // The kernel may outlive the family. Errors: as prepare().
  [[nodiscard]] virtual Result<std::shared_ptr<const CpuGemmKernel>> kernel(
      const Problem& problem, const Config& config) const = 0;
};

Support cpu_gemm_available(const FamilyOptions& options);
// The space follows from the fingerprint's hardware; the family's fingerprint contains the
// restrictions of the options. Errors: kInvalidArgument for any other parameter, for more threads
// or wider instructions than the machine has, and for two different numbers of threads.
Result<std::unique_ptr<CpuGemm>> create_cpu_gemm(const FamilyOptions& options);
// Calls create_cpu_gemm(), with the result type that the table of families needs.
Result<std::unique_ptr<Family>> make_cpu_gemm(const FamilyOptions& options);

// The row of the table of families.
const FamilyEntry& cpu_gemm_family();

}  // namespace foretune
