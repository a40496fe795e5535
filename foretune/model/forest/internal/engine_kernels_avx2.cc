#include "foretune/model/forest/internal/engine_small_inl.h"

#if defined(__AVX2__)
#include <immintrin.h>

namespace foretune {
namespace {

struct Avx2Operations : PlainOperations {
  static constexpr const char* kName = "AVX2";
  static constexpr unsigned kSmallSizes = 4;

  static void at_most_bytes(const std::uint8_t* codes, std::uint8_t rank, std::size_t words,
                            std::uint64_t* out) {
    const __m256i ranks = _mm256_set1_epi8(static_cast<char>(rank));
    for (std::size_t word = 0; word < words; ++word) {
      std::uint64_t bits = 0;
      for (unsigned half = 0; half < 2; ++half) {
        __m256i value;
        std::memcpy(&value, codes + word * 64 + half * 32, sizeof(value));
        const __m256i at_most = _mm256_cmpeq_epi8(_mm256_min_epu8(value, ranks), value);
        const auto mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(at_most));
        bits |= static_cast<std::uint64_t>(mask) << (half * 32);
      }
      out[word] = bits;
    }
  }

  // Four loads and shuffles: a gather of four doubles takes several times as long here.
  template <unsigned Width, unsigned Entries>
  class Lookup {
   public:
    explicit Lookup(const double* table) : table_(table) {}
    void add(const EngineLanes& fields, double* sums) const {
      for (unsigned index = 0; index < 64 / Width; ++index) {
        for (unsigned lane = 0; lane < kEngineBlockWords; lane += 4) {
          double* out = sums + index * Width * kEngineBlockWords + lane;
          const __m256d value = _mm256_set_pd(table_[field<Width>(fields, lane + 3, index)],
                                              table_[field<Width>(fields, lane + 2, index)],
                                              table_[field<Width>(fields, lane + 1, index)],
                                              table_[field<Width>(fields, lane, index)]);
          _mm256_storeu_pd(out, _mm256_add_pd(_mm256_loadu_pd(out), value));
        }
      }
    }

   private:
    const double* table_;
  };

  static bool is_any(std::uint64_t mask) { return mask != 0; }
  static bool is_any(const SmallMask<2>::Type& mask) {
    __m128i value;
    std::memcpy(&value, &mask, sizeof(value));
    return _mm_testz_si128(value, value) == 0;
  }
  static bool is_any(const SmallMask<4>::Type& mask) {
    __m256i value;
    std::memcpy(&value, &mask, sizeof(value));
    return _mm256_testz_si256(value, value) == 0;
  }
  static bool is_any(const SmallMask<8>::Type& mask) {
    __m256i value[2];  // NOLINT(modernize-avoid-c-arrays)
    std::memcpy(value, &mask, sizeof(value));
    const __m256i both = _mm256_or_si256(value[0], value[1]);
    return _mm256_testz_si256(both, both) == 0;
  }

  static void add_numbered(const double* table, const std::uint8_t* numbers, std::size_t count,
                           double* sums) {
    for (std::size_t i = 0; i < count; i += 4) {
      const __m256d value = _mm256_set_pd(table[numbers[i + 3]], table[numbers[i + 2]],
                                          table[numbers[i + 1]], table[numbers[i]]);
      _mm256_storeu_pd(sums + i, _mm256_add_pd(_mm256_loadu_pd(sums + i), value));
    }
  }

  template <class Code>
  static void quantise(const double* values, std::size_t value_count, const double* thresholds,
                       std::uint32_t count, std::uint32_t low, Code* codes) {
    const __m256d magnitude = _mm256_castsi256_pd(_mm256_set1_epi64x(INT64_MAX));
    const __m256d zero = _mm256_set1_pd(kEngineZero);
    const std::uint32_t top = std::uint32_t{1} << width_of(count) >> 1U;
    std::size_t i = 0;
    for (; i + 4 <= value_count; i += 4) {
      __m256d value = _mm256_loadu_pd(values + i);
      value =
          _mm256_and_pd(value, _mm256_cmp_pd(_mm256_and_pd(value, magnitude), zero, _CMP_GT_OQ));
      __m256i below = _mm256_setzero_si256();
      for (std::uint32_t step = top; step > 0; step >>= 1U) {
        const __m256d probe = _mm256_i64gather_pd(thresholds + (step - 1), below, 8);
        const __m256i less = _mm256_castpd_si256(_mm256_cmp_pd(probe, value, _CMP_LT_OQ));
        below = _mm256_add_epi64(
            below, _mm256_and_si256(less, _mm256_set1_epi64x(static_cast<long long>(step))));
      }
      std::uint64_t counts[4];  // NOLINT(modernize-avoid-c-arrays)
      std::memcpy(counts, &below, sizeof(counts));
      for (unsigned lane = 0; lane < 4; ++lane) {
        codes[i + lane] = static_cast<Code>(low + counts[lane]);
      }
    }
    PlainOperations::quantise(values + i, value_count - i, thresholds, count, low, codes + i);
  }
};

}  // namespace

const EngineKernels* engine_kernels_avx2() { return kernels_of<Avx2Operations>(); }

}  // namespace foretune
#else
namespace foretune {
const EngineKernels* engine_kernels_avx2() { return nullptr; }
}  // namespace foretune
#endif
