#include "foretune/kernels/internal/generic_inl.h"
#include "foretune/kernels/internal/pruned_inl.h"
#include "foretune/kernels/kernels_isa.h"

namespace foretune {

const PrunedKernels* generic_pruned_kernels() { return &Pruned<Generic, 8>::kKernels; }

}  // namespace foretune
