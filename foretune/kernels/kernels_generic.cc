// Defines kernels that need no special instruction set.
#include "foretune/kernels/internal/generic_inl.h"
#include "foretune/kernels/kernels_isa.h"

namespace foretune {
namespace {

constexpr KernelSet kKernels = make_kernel_set<Generic>();
constexpr KernelSet kPairKernels = make_kernel_set<GenericPairs>();

}  // namespace

const KernelSet* generic_kernel_set(KernelMath math) {
  return math == KernelMath::kF32        ? &kKernels
         : math == KernelMath::kI16Pairs ? &kPairKernels
                                         : nullptr;
}

}  // namespace foretune
