// Defines the kernels of narrow groups in bf16, in a separate file because kernels take long to
// compile.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_groups_inl.h"

namespace foretune {
namespace {

constexpr GroupKernelSet kKernels = GroupTables<Avx512, Bf16Groups, Bf16Groups>::make();

}  // namespace

const GroupKernelSet* avx512_bf16_group_kernel_set() { return &kKernels; }

}  // namespace foretune

#else

namespace foretune {

const GroupKernelSet* avx512_bf16_group_kernel_set() { return nullptr; }

}  // namespace foretune

#endif
