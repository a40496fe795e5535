#include "foretune/model/network/internal/network_int8_inl.h"

namespace foretune {
namespace {

// One float at a time. Where the compiler may not use the instruction, the multiply-add is a call
// of the C library, which rounds once as well: slow, and the same bits.
struct Plain {
  static constexpr const char* kName = "generic";
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

  using I = std::int32_t;
  struct Quads {
    const std::uint8_t* four;
  };
  struct Weights {
    const std::int8_t* four;
  };
  static constexpr std::size_t kInt8Vectors = 4;
  static constexpr std::size_t kInt8Outputs = 4;
  static I zero() { return 0; }
  static Quads load_quads(const std::uint8_t* from) { return {from}; }
  static Weights set_weights(const std::int8_t* from) { return {from}; }
  static I dot(I sum, Quads values, Weights weights) {
    for (std::size_t i = 0; i < kNetworkQuad; ++i) {
      sum += I{values.four[i]} * I{weights.four[i]};
    }
    return sum;
  }
  static V to_float(I a) { return {static_cast<float>(a)}; }
  static V sub(V a, V b) { return {a.value - b.value}; }
  static V mul(V a, V b) { return {a.value * b.value}; }
  static V div(V a, V b) { return {a.value / b.value}; }
  static V least(V a, V b) { return {a.value < b.value ? a.value : b.value}; }
  static V most(V a, V b) { return {a.value > b.value ? a.value : b.value}; }
  static V div_where_above(V a, V b, V bound) {
    return {b.value > bound.value ? a.value / b.value : 0};
  }
  static void to_quads(std::uint8_t* to, const V (&values)[kNetworkQuad]) {
    for (std::size_t i = 0; i < kNetworkQuad; ++i) {
      to[i] = static_cast<std::uint8_t>(__builtin_lrintf(values[i].value));
    }
  }
};

const NetworkKernels* best_of_avx512() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni") != 0 && network_kernels_vnni() != nullptr) {
    return network_kernels_vnni();
  }
#endif
  return network_kernels_avx512();
}

}  // namespace

const NetworkKernels* network_kernels_generic() { return kernels_of<Plain>(); }

const NetworkKernels* network_kernels(CpuIsa isa) {
  const NetworkKernels* found = isa == CpuIsa::kAvx512 ? best_of_avx512()
                                : isa == CpuIsa::kAvx2 ? network_kernels_avx2()
                                                       : nullptr;
  return found != nullptr ? found : network_kernels_generic();
}

}  // namespace foretune
