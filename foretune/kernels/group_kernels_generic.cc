// Defines the kernels of narrow groups, in a separate file because kernels take long to compile.
#include "foretune/kernels/internal/generic_inl.h"
#include "foretune/kernels/internal/group_inl.h"
#include "foretune/kernels/kernels_isa.h"

namespace foretune {
namespace {

constexpr GroupKernelSet kKernels = make_group_kernel_set<Generic>();

}  // namespace

const GroupKernelSet* generic_group_kernel_set() { return &kKernels; }

}  // namespace foretune
