// Defines the kernels of convolutions, in a separate file because kernels take long to compile.
#include "foretune/kernels/internal/generic_inl.h"
#include "foretune/kernels/kernels_isa.h"

namespace foretune {
namespace {

constexpr TapKernelSet kKernels = make_tap_kernel_set<Generic>();

}  // namespace

const TapKernelSet* generic_tap_kernel_set(KernelMath math) {
  return math == KernelMath::kF32 ? &kKernels : nullptr;
}

}  // namespace foretune
