#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_inl.h"
#include "foretune/kernels/internal/pruned_inl.h"

namespace foretune {

const PrunedKernels* avx512_pruned_kernels() { return &Pruned<Avx512, 12>::kKernels; }

}  // namespace foretune

#else

namespace foretune {

const PrunedKernels* avx512_pruned_kernels() { return nullptr; }

}  // namespace foretune

#endif
