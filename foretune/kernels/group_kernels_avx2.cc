// Defines the kernels of narrow groups, in a separate file because kernels take long to compile.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "foretune/kernels/internal/avx2_inl.h"
#include "foretune/kernels/internal/group_inl.h"

namespace foretune {
namespace {

constexpr GroupKernelSet kKernels = make_group_kernel_set<Avx2>();

}  // namespace

const GroupKernelSet* avx2_group_kernel_set() { return &kKernels; }

}  // namespace foretune

#else

namespace foretune {

const GroupKernelSet* avx2_group_kernel_set() { return nullptr; }

}  // namespace foretune

#endif
