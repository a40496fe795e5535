#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

#include "foretune/kernels/micro_kernel_inl.h"

namespace foretune {
namespace {

// A window of eight into this table is a mask with the wanted number of leading lanes.
alignas(64) constexpr int kMaskWindow[16] = {-1, -1, -1, -1, -1, -1, -1, -1,  // NOLINT
                                             0,  0,  0,  0,  0,  0,  0,  0};

struct Avx2 {
  using Vector = __m256;
  using Mask = __m256i;
  static constexpr CpuIsa kIsa = CpuIsa::kAvx2;
  static constexpr int kLanes = 8;

  FORETUNE_KERNEL_INLINE static Mask mask(int columns) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(kMaskWindow + kLanes - columns));
  }
  FORETUNE_KERNEL_INLINE static Vector zero() { return _mm256_setzero_ps(); }
  FORETUNE_KERNEL_INLINE static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  // Masked-out lanes are not accessed: no fault beyond the end.
  FORETUNE_KERNEL_INLINE static Vector load_part(const float* from, Mask mask) {
    return _mm256_maskload_ps(from, mask);
  }
  FORETUNE_KERNEL_INLINE static void store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
  FORETUNE_KERNEL_INLINE static void store_part(float* to, Mask mask, Vector value) {
    _mm256_maskstore_ps(to, mask, value);
  }
  FORETUNE_KERNEL_INLINE static Vector broadcast(const float* from) {
    return _mm256_broadcast_ss(from);
  }
  // A NaN is the second operand, which the instruction returns.
  FORETUNE_KERNEL_INLINE static Vector at_least(Vector floor, Vector value) {
    return _mm256_max_ps(floor, value);
  }
  FORETUNE_KERNEL_INLINE static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  FORETUNE_KERNEL_INLINE static Vector fma(Vector a, Vector b, Vector c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  FORETUNE_KERNEL_INLINE static float sum(Vector value) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
};

constexpr KernelSet kKernels = make_kernel_set<Avx2>();

}  // namespace

const KernelSet* avx2_kernel_set() { return &kKernels; }

}  // namespace foretune

#else

namespace foretune {

const KernelSet* avx2_kernel_set() { return nullptr; }

}  // namespace foretune

#endif
