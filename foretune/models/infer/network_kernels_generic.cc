#include "foretune/models/infer/network_kernels_inl.h"

namespace foretune {
namespace {

// One float at a time. Where the compiler may not use the instruction, the multiply-add is a call
// of the C library, which rounds once as well: slow, and the same bits.
struct Plain {
  struct V {
    float value;
  };
  static constexpr std::size_t kWidth = 1;
  static constexpr std::size_t kVectors = 4;
  static constexpr std::size_t kOutputs = 4;
  static V load(const float* from) { return {*from}; }
  static void store(float* to, V value) { *to = value.value; }
  static V set(float value) { return {value}; }
  static V add(V a, V b) { return {a.value + b.value}; }
  static V max0(V a) { return {a.value > 0 ? a.value : 0}; }
  static V fma(V a, V b, V c) { return {__builtin_fmaf(a.value, b.value, c.value)}; }
};

}  // namespace

const NetworkKernels* network_kernels_generic() {
  static constexpr NetworkKernels kKernels{"generic", &dense<Plain>, &towers<Plain>};
  return &kKernels;
}

const NetworkKernels* network_kernels(CpuIsa isa) {
  const NetworkKernels* found = isa == CpuIsa::kAvx512 ? network_kernels_avx512()
                                : isa == CpuIsa::kAvx2 ? network_kernels_avx2()
                                                       : nullptr;
  return found != nullptr ? found : network_kernels_generic();
}

}  // namespace foretune
