#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/kernels/kernels_isa.h"
#include "foretune/kernels/micro_kernel.h"

namespace foretune {
namespace {

const KernelSet* built_kernel_set(CpuIsa isa, KernelMath math) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return avx512_kernel_set(math);
    case CpuIsa::kAvx2:
      return avx2_kernel_set(math);
    case CpuIsa::kGeneric:
      return generic_kernel_set(math);
  }
  return nullptr;
}

// Instructions that not every CPU with AVX-512 has.
bool cpu_multiplies(KernelMath math) {
  static const std::vector<std::string> kFeatures = read_cpu_facts().features;
  const auto has = [](std::string_view name) {
    return std::find(kFeatures.begin(), kFeatures.end(), name) != kFeatures.end();
  };
  switch (math) {
    case KernelMath::kBf16Pairs: {
      static const bool kHas = has("avx512_bf16");
      return kHas;
    }
    case KernelMath::kI8Quads: {
      static const bool kHas = has("avx512_vnni");
      return kHas;
    }
    case KernelMath::kF32:
    case KernelMath::kI16Pairs:
      break;
  }
  return true;
}

bool cpu_runs(CpuIsa isa) {
  // Asked once: the answer takes system calls on some machines.
  static const CpuIsa kBest = best_cpu_isa();
  return static_cast<int>(isa) <= static_cast<int>(kBest);
}

}  // namespace

const KernelSet* kernel_set(CpuIsa isa, KernelMath math) {
  return cpu_runs(isa) && cpu_multiplies(math) ? built_kernel_set(isa, math) : nullptr;
}

Support kernel_set_support(CpuIsa isa) {
  if (built_kernel_set(isa, KernelMath::kF32) == nullptr) {
    return Support::no("this build has no ", to_string(isa), " kernels");
  }
  if (!cpu_runs(isa)) {
    return Support::no("this CPU or operating system does not run ", to_string(isa));
  }
  return Support::yes();
}

}  // namespace foretune
