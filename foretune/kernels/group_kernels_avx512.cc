// Defines the kernels of narrow groups, in a separate file because kernels take long to compile.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_inl.h"
#include "foretune/kernels/internal/group_inl.h"

namespace foretune {
namespace {

constexpr GroupKernelSet kKernels = make_group_kernel_set<Avx512>();

}  // namespace

const GroupKernelSet* avx512_group_kernel_set() { return &kKernels; }

}  // namespace foretune

#else

namespace foretune {

const GroupKernelSet* avx512_group_kernel_set() { return nullptr; }

}  // namespace foretune

#endif
