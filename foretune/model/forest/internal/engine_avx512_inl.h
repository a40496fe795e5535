// The operations that the engine's files for AVX-512 share; included by those alone, with the rules
// of engine_kernels_inl.h.
#pragma once

#include "foretune/model/forest/internal/engine_small_inl.h"

#if defined(__AVX512F__) && defined(__AVX512BW__)
#include <immintrin.h>

#include <type_traits>

namespace foretune {
namespace {

inline __m512i lanes_of(const EngineLanes& fields) {
  __m512i out;
  std::memcpy(&out, &fields, sizeof(out));
  return out;
}

// Values with NaN and what counts as zero replaced by 0.
inline __m512d load_without_missing(const double* values) {
  const __m512d value = _mm512_loadu_pd(values);
  const __mmask8 keep =
      _mm512_cmp_pd_mask(_mm512_abs_pd(value), _mm512_set1_pd(kEngineZero), _CMP_GT_OQ);
  return _mm512_maskz_mov_pd(keep, value);
}

// Leaf values by number. Up to 64 they live in registers; a permutation looks at the low bits of an
// index only, so that shifted lanes of fields need no masking.
template <unsigned Entries>
class Table {
 public:
  explicit Table(const double* table) : low_(table), high_(table + Entries / 2) {}
  [[nodiscard]] __m512d get(__m512i index) const {
    const __mmask8 is_high = _mm512_test_epi64_mask(index, _mm512_set1_epi64(Entries / 2));
    return _mm512_mask_mov_pd(low_.get(index), is_high, high_.get(index));
  }

 private:
  Table<Entries / 2> low_;
  Table<Entries / 2> high_;
};

template <>
class Table<16> {
 public:
  explicit Table(const double* table)
      : low_(_mm512_loadu_pd(table)), high_(_mm512_loadu_pd(table + 8)) {}
  [[nodiscard]] __m512d get(__m512i index) const {
    return _mm512_permutex2var_pd(low_, index, high_);
  }

 private:
  __m512d low_;
  __m512d high_;
};

// The lower (0) or upper (1) halves of doubles. A permutation looks at the low bits of an index.
template <unsigned Entries>
class Halves;

template <>
class Halves<32> {
 public:
  Halves(const double* table, int which)
      : first_(pick(table, which)), second_(pick(table + 16, which)) {}
  [[nodiscard]] __m512i get(__m512i index) const {
    return _mm512_permutex2var_epi32(first_, index, second_);
  }

 private:
  static __m512i pick(const double* table, int which) {
    const __m512i positions = _mm512_add_epi32(
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
        _mm512_set1_epi32(which));
    return _mm512_permutex2var_epi32(_mm512_loadu_si512(table), positions,
                                     _mm512_loadu_si512(table + 8));
  }
  __m512i first_;
  __m512i second_;
};

template <>
class Halves<64> {
 public:
  Halves(const double* table, int which) : low_(table, which), high_(table + 32, which) {}
  [[nodiscard]] __m512i get(__m512i index) const {
    const __mmask16 is_high = _mm512_test_epi32_mask(index, _mm512_set1_epi32(32));
    return _mm512_mask_mov_epi32(low_.get(index), is_high, high_.get(index));
  }

 private:
  Halves<32> low_;
  Halves<32> high_;
};

inline void add_to(double* sums, __m512d values) {
  _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), values));
}

// In memory, for fields of one byte and of two.
template <std::uint64_t Mask>
class TableInMemory {
 public:
  explicit TableInMemory(const double* table) : table_(table) {}
  [[nodiscard]] __m512d get(__m512i index) const {
    const __m512i field = _mm512_and_si512(index, _mm512_set1_epi64(Mask));
    return _mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, field, table_, 8);
  }

 private:
  const double* table_;
};
template <>
class Table<256> : public TableInMemory<0xff> {
  using TableInMemory::TableInMemory;
};
template <>
class Table<65536> : public TableInMemory<0xffff> {
  using TableInMemory::TableInMemory;
};

template <unsigned Width, unsigned Entries>
class WholeLookup {
 public:
  explicit WholeLookup(const double* table) : table_(table) {}
  void add(const EngineLanes& fields, double* sums) const {
    __m512i index = lanes_of(fields);
    for (unsigned field = 0; field < 64 / Width; ++field) {
      add_to(sums + field * Width * kEngineBlockWords, table_.get(index));
      index = _mm512_maskz_srli_epi64(0xff, index, Width);
    }
  }

 private:
  Table<Entries> table_;
};

// The halves of sixteen numbers are looked up at once.
template <unsigned Entries>
class HalvesLookup {
 public:
  explicit HalvesLookup(const double* table) : low_(table, 0), high_(table, 1) {}
  void add(const EngineLanes& fields, double* sums) const {
    constexpr __mmask16 kOdd = 0xaaaa;
    __m512i index = lanes_of(fields);
    for (unsigned field = 0; field < 4; ++field) {
      const __m512i low = low_.get(index);
      const __m512i high = high_.get(index);
      const __m512i even =
          _mm512_mask_mov_epi32(low, kOdd, _mm512_maskz_slli_epi64(0xff, high, 32));
      const __m512i odd = _mm512_mask_mov_epi32(_mm512_maskz_srli_epi64(0xff, low, 32), kOdd, high);
      double* out = sums + field * 8 * kEngineBlockWords;
      add_to(out, _mm512_castsi512_pd(even));
      add_to(out + 32 * kEngineBlockWords, _mm512_castsi512_pd(odd));
      index = _mm512_maskz_srli_epi64(0xff, index, 8);
    }
  }

 private:
  Halves<Entries> low_;
  Halves<Entries> high_;
};

struct Avx512Operations : PlainOperations {
  static constexpr const char* kName = "AVX-512";
  static constexpr unsigned kSmallSizes = 2;

  static void select(const std::uint64_t* predicate, const std::uint64_t* if_one,
                     const std::uint64_t* if_zero, std::size_t blocks, std::uint64_t* out) {
    for (std::size_t i = 0; i < blocks * kEngineBlockWords; i += kEngineBlockWords) {
      // 0xca: the first operand's bit chooses the second's or the third's.
      const __m512i chosen = _mm512_ternarylogic_epi64(_mm512_loadu_si512(predicate + i),
                                                       _mm512_loadu_si512(if_one + i),
                                                       _mm512_loadu_si512(if_zero + i), 0xca);
      _mm512_storeu_si512(out + i, chosen);
    }
  }

  static void at_most_bytes(const std::uint8_t* codes, std::uint8_t rank, std::size_t words,
                            std::uint64_t* out) {
    const __m512i ranks = _mm512_set1_epi8(static_cast<char>(rank));
    for (std::size_t word = 0; word < words; ++word) {
      out[word] = _mm512_cmple_epu8_mask(_mm512_loadu_si512(codes + word * 64), ranks);
    }
  }

  static void at_most_words(const std::uint8_t* codes, std::uint16_t rank, std::size_t words,
                            std::uint64_t* out) {
    const __m512i ranks = _mm512_set1_epi16(static_cast<short>(rank));
    for (std::size_t word = 0; word < words; ++word) {
      const std::uint64_t low =
          _mm512_cmple_epu16_mask(_mm512_loadu_si512(codes + word * 128), ranks);
      const std::uint64_t high =
          _mm512_cmple_epu16_mask(_mm512_loadu_si512(codes + word * 128 + 64), ranks);
      out[word] = low | (high << 32U);
    }
  }

  static constexpr unsigned kNarrowest = 4;
  template <unsigned Width, unsigned Entries>
  using Lookup = std::conditional_t<Width == 8 && (Entries == 32 || Entries == 64),
                                    HalvesLookup<Entries>, WholeLookup<Width, Entries>>;

  static EngineRange range(const double* values, std::size_t count) {
    if (count < 8) {
      return PlainOperations::range(values, count);
    }
    // Masked forms: the plain ones make g++ 12 warn about its own header.
    constexpr __mmask8 kAll = 0xff;
    __m512d low = load_without_missing(values + count - 8);
    __m512d high = low;
    for (std::size_t i = 0; i + 8 <= count; i += 8) {
      const __m512d value = load_without_missing(values + i);
      low = _mm512_mask_min_pd(low, kAll, low, value);
      high = _mm512_mask_max_pd(high, kAll, high, value);
    }
    double lows[8];   // NOLINT(modernize-avoid-c-arrays)
    double highs[8];  // NOLINT(modernize-avoid-c-arrays)
    _mm512_storeu_pd(lows, low);
    _mm512_storeu_pd(highs, high);
    return {PlainOperations::range(lows, 8).low, PlainOperations::range(highs, 8).high};
  }

  // The first four steps of the search probe fifteen pivots held in registers, the others memory.
  class Search {
   public:
    Search(const double* thresholds, std::uint32_t count) : thresholds_(thresholds) {
      top_ = std::uint32_t{1} << width_of(count) >> 1U;
      const std::uint32_t stride = top_ >= 8 ? top_ / 8 : 1;
      double pivots[16];  // NOLINT(modernize-avoid-c-arrays)
      for (std::uint32_t i = 0; i < 15; ++i) {
        const std::uint32_t position = (i + 1) * stride - 1;
        pivots[i] = position < 2 * top_ - 1 ? thresholds[position] : __builtin_inf();
      }
      pivots[15] = __builtin_inf();
      low_ = _mm512_loadu_pd(pivots);
      high_ = _mm512_loadu_pd(pivots + 8);
      shift_ = stride == 1 ? 0 : static_cast<unsigned>(__builtin_ctz(stride));
    }
    [[nodiscard]] __m512i count_below(__m512d value) const {
      __m512i below = _mm512_setzero_si512();
      for (long long step = 8; step > 0; step >>= 1) {
        const __m512i next = _mm512_add_epi64(below, _mm512_set1_epi64(step));
        const __m512i probe = _mm512_add_epi64(below, _mm512_set1_epi64(step - 1));
        const __mmask8 less =
            _mm512_cmp_pd_mask(_mm512_permutex2var_pd(low_, probe, high_), value, _CMP_LT_OQ);
        below = _mm512_mask_mov_epi64(below, less, next);
      }
      below = _mm512_maskz_slli_epi64(0xff, below, shift_);
      for (std::uint32_t step = top_ / 16; step > 0; step >>= 1U) {
        const __m512d probe =
            _mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, below, thresholds_ + (step - 1), 8);
        const __mmask8 less = _mm512_cmp_pd_mask(probe, value, _CMP_LT_OQ);
        below = _mm512_mask_add_epi64(below, less, below,
                                      _mm512_set1_epi64(static_cast<long long>(step)));
      }
      return below;
    }

   private:
    const double* thresholds_;
    std::uint32_t top_;
    unsigned shift_;
    __m512d low_;
    __m512d high_;
  };

  template <class Code>
  static void quantise(const double* values, std::size_t value_count, const double* thresholds,
                       std::uint32_t count, std::uint32_t low, Code* codes) {
    const Search search(thresholds, count);
    const __m512i lows = _mm512_set1_epi64(low);
    std::size_t i = 0;
    for (; i + 8 <= value_count; i += 8) {
      const __m512i code =
          _mm512_add_epi64(search.count_below(load_without_missing(values + i)), lows);
      __m128i narrowed;
      if constexpr (sizeof(Code) == 1) {
        narrowed = _mm512_maskz_cvtepi64_epi8(0xff, code);
      } else {
        narrowed = _mm512_maskz_cvtepi64_epi16(0xff, code);
      }
      std::memcpy(codes + i, &narrowed, 8 * sizeof(Code));
    }
    PlainOperations::quantise(values + i, value_count - i, thresholds, count, low, codes + i);
  }
};

}  // namespace

}  // namespace foretune
#endif
