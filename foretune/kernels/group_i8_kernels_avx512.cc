// Defines the kernels of narrow groups in i8, in a separate file because kernels take long to
// compile.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_groups_inl.h"

namespace foretune {
namespace {

constexpr GroupKernelSet kFused = GroupTables<Avx512, I8Groups<true>, I8Groups<true>>::make();
constexpr GroupKernelSet kPlain = GroupTables<Avx512, I8Groups<false>, I8Groups<false>>::make();

}  // namespace

const GroupKernelSet* avx512_i8_group_kernel_set(bool is_fused) {
  return is_fused ? &kFused : &kPlain;
}

}  // namespace foretune

#else

namespace foretune {

const GroupKernelSet* avx512_i8_group_kernel_set(bool /*is_fused*/) { return nullptr; }

}  // namespace foretune

#endif
