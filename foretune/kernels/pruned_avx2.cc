#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "foretune/kernels/internal/avx2_inl.h"
#include "foretune/kernels/internal/pruned_inl.h"

namespace foretune {

const PrunedKernels* avx2_pruned_kernels() { return &Pruned<Avx2, 12>::kKernels; }

}  // namespace foretune

#else

namespace foretune {

const PrunedKernels* avx2_pruned_kernels() { return nullptr; }

}  // namespace foretune

#endif
