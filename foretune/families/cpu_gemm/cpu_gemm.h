// The family "cpu-gemm": C = A * B, optionally with a bias and a ReLU, for one product or a batch,
// in all four layouts; f32, bf16 with sums in f32, or i8 with sums in i32; any instruction set of
// this CPU, any number of threads. Its space follows the machine in the fingerprint: cache sizes,
// vector width and cores. FamilyOptions::threads (or the parameter threads=N, which says the same)
// and the parameter isa=avx512|avx2|generic take less than the machine has. A problem's payload is
// B (gemm_weights.h) where it is measured; kernels multiply what their callers give them.
//
//   const Fingerprint machine = cpu_fingerprint(read_cpu_facts(), measure_cpu_peaks());
//   FORETUNE_TRY(const auto family, create_cpu_gemm({.fingerprint = machine}));
//   FORETUNE_TRY(const auto kernel, family->kernel(problem, config));
//   FORETUNE_TRY_STATUS(kernel->run({.a = a, .a_stride = k, .b = b, .b_stride = n,
//                                    .c = c, .c_stride = n}));
//
// Thread safety: as Family. Kernels may be run by any number of threads at once; those of several
// threads take turns. Also in a forked child, whatever other threads were running at the fork.
#pragma once

#include <memory>

#include "foretune/base/result.h"
#include "foretune/families/cpu_gemm/blocked_gemm.h"
#include "foretune/family/family.h"

namespace foretune {

// One problem and config, ready for a caller's operands. Of a problem's operation only the sizes
// and the layout matter: bias, ReLU, alpha and beta are what the operands say.
class CpuGemmKernel {
 public:
  virtual ~CpuGemmKernel() = default;
  // The operands' types must be those of the problem, C must not overlap A or B. Errors:
  // kInvalidArgument for other types, kUnsupported when there is no memory to pack into; C is then
  // as it was. Cost: packing buffers are shared by all kernels of the family and kept.
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
// The space follows from the fingerprint's hardware, and the family's fingerprint says what the
// options take away. Errors: kInvalidArgument for any other parameter, for more threads or wider
// instructions than the machine has, and for two numbers of threads.
Result<std::unique_ptr<CpuGemm>> create_cpu_gemm(const FamilyOptions& options);
// The same for the table of families.
Result<std::unique_ptr<Family>> make_cpu_gemm(const FamilyOptions& options);

// The row of the table of families.
const FamilyEntry& cpu_gemm_family();

}  // namespace foretune
