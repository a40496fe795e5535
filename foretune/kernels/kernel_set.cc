#include "foretune/kernels/kernels_isa.h"
#include "foretune/kernels/micro_kernel.h"

namespace foretune {
namespace {

const KernelSet* built_kernel_set(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return avx512_kernel_set();
    case CpuIsa::kAvx2:
      return avx2_kernel_set();
    case CpuIsa::kGeneric:
      return generic_kernel_set();
  }
  return nullptr;
}

bool cpu_runs(CpuIsa isa) {
  // Asked once: the answer takes system calls on some machines.
  static const CpuIsa kBest = best_cpu_isa();
  return static_cast<int>(isa) <= static_cast<int>(kBest);
}

}  // namespace

const KernelSet* kernel_set(CpuIsa isa) { return cpu_runs(isa) ? built_kernel_set(isa) : nullptr; }

Support kernel_set_support(CpuIsa isa) {
  if (built_kernel_set(isa) == nullptr) {
    return Support::no("this build has no ", to_string(isa), " kernels");
  }
  if (!cpu_runs(isa)) {
    return Support::no("this CPU or operating system does not run ", to_string(isa));
  }
  return Support::yes();
}

}  // namespace foretune
