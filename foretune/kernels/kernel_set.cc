#include <sys/syscall.h>
#include <unistd.h>

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

// Asks the operating system for the state of matrix tiles, which no process has unless it asks. All
// threads of this process then have it.
bool may_use_tiles() {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // the state's bit in XCR0
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// Checks for instructions that not every CPU with AVX-512 has.
bool cpu_multiplies(KernelMath math) {
  const auto has = [](std::string_view name) {
    const std::vector<std::string> features = read_cpu_facts().features;
    return std::find(features.begin(), features.end(), name) != features.end();
  };
  // Computed once, because it reads files.
  static const bool kHasBf16 = has("avx512_bf16");
  static const bool kHasVnni = has("avx512_vnni");
  static const bool kHasTiles = has("amx_bf16") && has("amx_int8") && may_use_tiles();
  switch (math) {
    case KernelMath::kBf16Pairs:
      return kHasBf16;
    case KernelMath::kI8Quads:
    case KernelMath::kI8Shifted:
      return kHasVnni;
    case KernelMath::kI8Tiles:
    case KernelMath::kBf16Tiles:
      return kHasTiles;
    case KernelMath::kF32:
    case KernelMath::kI16Pairs:
      break;
  }
  return true;
}

bool cpu_runs(CpuIsa isa) {
  // Computed once, because it takes system calls on some machines.
  static const CpuIsa kBest = best_cpu_isa();
  return static_cast<int>(isa) <= static_cast<int>(kBest);
}

}  // namespace

const KernelSet* kernel_set(CpuIsa isa, KernelMath math) {
  return cpu_runs(isa) && cpu_multiplies(math) ? built_kernel_set(isa, math) : nullptr;
}

const TapKernelSet* tap_kernel_set(CpuIsa isa, KernelMath math) {
  if (!cpu_runs(isa) || !cpu_multiplies(math)) {
    return nullptr;
  }
  switch (isa) {
    case CpuIsa::kAvx512:
      return avx512_tap_kernel_set(math);
    case CpuIsa::kAvx2:
      return avx2_tap_kernel_set(math);
    case CpuIsa::kGeneric:
      return generic_tap_kernel_set(math);
  }
  return nullptr;
}

const GroupKernelSet* group_kernel_set(CpuIsa isa, OutputType element) {
  if (!cpu_runs(isa)) {
    return nullptr;
  }
  if (element != OutputType::kF32) {
    return isa != CpuIsa::kAvx512         ? nullptr
           : element == OutputType::kBf16 ? avx512_bf16_group_kernel_set()
           : element != OutputType::kI8
               ? nullptr
               : avx512_i8_group_kernel_set(cpu_multiplies(KernelMath::kI8Quads));
  }
  switch (isa) {
    case CpuIsa::kAvx512:
      return avx512_group_kernel_set();
    case CpuIsa::kAvx2:
      return avx2_group_kernel_set();
    case CpuIsa::kGeneric:
      return generic_group_kernel_set();
  }
  return nullptr;
}

const WinogradKernels* winograd_kernels(CpuIsa isa, bool large) {
  if (!cpu_runs(isa)) {
    return nullptr;
  }
  switch (isa) {
    case CpuIsa::kAvx512:
      return avx512_winograd_kernels(large);
    case CpuIsa::kAvx2:
      return avx2_winograd_kernels(large);
    case CpuIsa::kGeneric:
      return generic_winograd_kernels(large);
  }
  return nullptr;
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
