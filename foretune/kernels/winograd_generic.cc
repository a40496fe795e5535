#include "foretune/kernels/internal/generic_inl.h"
#include "foretune/kernels/internal/winograd_inl.h"
#include "foretune/kernels/kernels_isa.h"

namespace foretune {

const WinogradKernels* generic_winograd_kernels(bool large) {
  return winograd_kernels_of<Generic>(large);
}

}  // namespace foretune
