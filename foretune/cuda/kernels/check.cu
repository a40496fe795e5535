// Kernels of gpu::Device, as CUDA C++. What is built into the library is the PTX made of them by
// scripts/make_gpu_kernels.sh (check.txt beside this file), so that building needs no CUDA.
// One thread an element, in a loop over the grid. Types are numbered as foretune::DataType.
#include <cstdint>

namespace {

constexpr unsigned kF16 = 1;
constexpr unsigned kBf16 = 2;
constexpr unsigned kTf32 = 4;
constexpr unsigned kF8e4m3 = 5;

// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// 2014).
__device__ uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

__device__ uint64_t position() { return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ uint64_t step() { return uint64_t(gridDim.x) * blockDim.x; }

__device__ float half_to_float(uint16_t bits) {
  float value;
  asm("{ .reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(value) : "h"(bits));
  return value;
}
__device__ uint16_t float_to_half(float value) {
  uint16_t bits;
  asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(bits) : "f"(value));
  return bits;
}
__device__ float f8_to_float(uint8_t bits) {
  const unsigned exponent = (bits >> 3) & 15;
  const unsigned mantissa = bits & 7;
  const float sign = (bits & 128) != 0 ? -1.0f : 1.0f;
  if (exponent == 15 && mantissa == 7) {
    return __int_as_float(0x7fffffff);
  }
  if (exponent == 0) {
    return sign * float(mantissa) * 0x1p-9f;
  }
  return sign * __int_as_float(int((exponent + 120) << 23 | mantissa << 20));
}
// Of multiples of 1/8 in [-1, 1), all of which are normal numbers or 0.
__device__ uint8_t float_to_f8(float value) {
  const unsigned bits = __float_as_uint(value);
  if (value == 0) {
    return 0;
  }
  return uint8_t((bits >> 24 & 128) | ((bits >> 23 & 255) - 120) << 3 | (bits >> 20 & 7));
}

__device__ float load(const void* from, unsigned type, uint64_t i) {
  switch (type) {
    case kF16:
      return half_to_float(static_cast<const uint16_t*>(from)[i]);
    case kBf16:
      return __uint_as_float(unsigned(static_cast<const uint16_t*>(from)[i]) << 16);
    case kF8e4m3:
      return f8_to_float(static_cast<const uint8_t*>(from)[i]);
    default:
      return static_cast<const float*>(from)[i];
  }
}

__device__ int value_bits(unsigned type) {
  switch (type) {
    case kF16:
    case kTf32:
      return 11;
    case kBf16:
      return 8;
    case kF8e4m3:
      return 4;
    default:
      return 24;
  }
}

struct Difference {
  unsigned long long count;
  unsigned long long first;
};

}  // namespace

extern "C" __global__ void foretune_fill(void* to, unsigned type, uint64_t count, uint64_t seed) {
  const int bits = value_bits(type);
  const float scale = 1.0f / float(1 << (bits - 1));
  for (uint64_t i = position(); i < count; i += step()) {
    const int whole = int(mix(seed + i) >> (64 - bits)) - (1 << (bits - 1));
    const float value = float(whole) * scale;
    switch (type) {
      case kF16:
        static_cast<uint16_t*>(to)[i] = float_to_half(value);
        break;
      case kBf16:
        static_cast<uint16_t*>(to)[i] = uint16_t(__float_as_uint(value) >> 16);
        break;
      case kF8e4m3:
        static_cast<uint8_t*>(to)[i] = float_to_f8(value);
        break;
      default:
        static_cast<float*>(to)[i] = value;
    }
  }
}

extern "C" __global__ void foretune_widen(const void* from, unsigned type, uint64_t count,
                                          float* to) {
  for (uint64_t i = position(); i < count; i += step()) {
    to[i] = load(from, type, i);
  }
}

// GELU in its tanh form: x / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))).
extern "C" __global__ void foretune_gelu(float* values, uint64_t count) {
  for (uint64_t i = position(); i < count; i += step()) {
    const float x = values[i];
    values[i] = x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
  }
}

extern "C" __global__ void foretune_compare(const void* found, unsigned type, const float* wanted,
                                            uint64_t count, float absolute, float relative,
                                            Difference* difference) {
  for (uint64_t i = position(); i < count; i += step()) {
    const float value = load(found, type, i);
    const bool near = fabsf(value - wanted[i]) <= absolute + relative * fabsf(wanted[i]);
    if (!near) {
      atomicAdd(&difference->count, 1ULL);
      atomicMin(&difference->first, (unsigned long long)i);
    }
  }
}
