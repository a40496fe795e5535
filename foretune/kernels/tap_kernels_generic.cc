// Defines the kernels of convolutions, in a separate file because kernels take long to compile.
#include "foretune/kernels/internal/generic_inl.h"
#include "foretune/kernels/kernels_isa.h"

namespace foretune {
namespace {

constexpr TapKernelSet kKernels = make_tap_kernel_set<Generic>();
constexpr TapKernelSet kPairKernels = make_tap_kernel_set<GenericPairs>();

}  // namespace

const TapKernelSet* generic_tap_kernel_set(KernelMath math) {
  return math == KernelMath::kF32        ? &kKernels
         : math == KernelMath::kI16Pairs ? &kPairKernels
                                         : nullptr;
}

}  // namespace foretune
