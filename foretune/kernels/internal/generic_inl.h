// The vector operations of any CPU for micro_kernel_inl.h, under the same rules: vectors of four
// floats in the compiler's portable vector type, which SSE2 and NEON have as registers.
// Thread safety: free functions.
#pragma once

#include "foretune/kernels/internal/micro_kernel_inl.h"

namespace foretune {
namespace {

struct Generic {
  using Vector = float __attribute__((vector_size(16)));
  using Mask = int;  // columns that exist
  using Index = const std::int32_t*;
  static constexpr CpuIsa kIsa = CpuIsa::kGeneric;
  static constexpr KernelMath kMath = KernelMath::kF32;
  static constexpr int kLanes = 4;
  static constexpr bool kTailsAreSlow = true;

  FORETUNE_KERNEL_INLINE static Mask mask(int columns) { return columns; }
  FORETUNE_KERNEL_INLINE static Vector zero() { return Vector{}; }
  FORETUNE_KERNEL_INLINE static Vector load(const float* from) {
    Vector value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
  }
  FORETUNE_KERNEL_INLINE static Vector load_part(const float* from, Mask columns) {
    return Vector{from[0], columns > 1 ? from[1] : 0.0F, columns > 2 ? from[2] : 0.0F,
                  columns > 3 ? from[3] : 0.0F};
  }
  FORETUNE_KERNEL_INLINE static void store(float* to, Vector value) {
    __builtin_memcpy(to, &value, sizeof value);
  }
  FORETUNE_KERNEL_INLINE static void store_part(float* to, Mask columns, Vector value) {
    for (int lane = 0; lane < columns; ++lane) {
      to[lane] = value[lane];
    }
  }
  FORETUNE_KERNEL_INLINE static Index index(const std::int32_t* lanes) { return lanes; }
  // Returns the lanes of a vector that the index names.
  FORETUNE_KERNEL_INLINE static Vector gather(Vector from, Index index) {
    return Vector{from[index[0]], from[index[1]], from[index[2]], from[index[3]]};
  }
  FORETUNE_KERNEL_INLINE static Vector broadcast(const float* from) {
    return Vector{*from, *from, *from, *from};
  }
  // A NaN is not below the floor, so it stays.
  FORETUNE_KERNEL_INLINE static Vector at_least(Vector floor, Vector value) {
    return value < floor ? floor : value;
  }
  FORETUNE_KERNEL_INLINE static Vector add(Vector a, Vector b) { return a + b; }
  FORETUNE_KERNEL_INLINE static Vector multiply(Vector a, Vector b) { return a * b; }
  // Contracted to one instruction where the target has it.
  FORETUNE_KERNEL_INLINE static Vector fma(Vector a, Vector b, Vector c) { return a * b + c; }
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    sum = fma(a, b, sum);
  }
  FORETUNE_KERNEL_INLINE static void accumulate_times(Vector& sum, Vector a, const float* b) {
    accumulate(sum, a, broadcast(b));
  }
  FORETUNE_KERNEL_INLINE static float sum(Vector value) {
    return (value[0] + value[2]) + (value[1] + value[3]);
  }
  // to[i] becomes the sum of the lanes of the i-th vector.
  FORETUNE_KERNEL_INLINE static void sum_four(Vector a, Vector b, Vector c, Vector d, float* to) {
    to[0] = sum(a);
    to[1] = sum(b);
    to[2] = sum(c);
    to[3] = sum(d);
  }
};

struct GenericPairs : Generic {
  static constexpr KernelMath kMath = KernelMath::kI16Pairs;
  using Integers = int __attribute__((vector_size(16)));
  using Bits = unsigned __attribute__((vector_size(16)));
  // Sums wrap, as they do in the instructions of other sets.
  FORETUNE_KERNEL_INLINE static Vector add(Vector a, Vector b) {
    return reinterpret_cast<Vector>(reinterpret_cast<Bits>(a) + reinterpret_cast<Bits>(b));
  }
  FORETUNE_KERNEL_INLINE static Integers low(Vector value) {
    return reinterpret_cast<Integers>(reinterpret_cast<Bits>(value) << 16) >> 16;
  }
  FORETUNE_KERNEL_INLINE static Integers high(Vector value) {
    return reinterpret_cast<Integers>(value) >> 16;
  }
  FORETUNE_KERNEL_INLINE static void accumulate(Vector& sum, Vector a, Vector b) {
    sum = add(sum, add(reinterpret_cast<Vector>(low(a) * low(b)),
                       reinterpret_cast<Vector>(high(a) * high(b))));
  }
};

}  // namespace
}  // namespace foretune
