#include "foretune/kernels/packing.h"

#include <algorithm>
#include <cstring>

#include "foretune/kernels/kernels_isa.h"

namespace foretune {
namespace {

using Four = float __attribute__((vector_size(16)));

Four load_four(const float* from) {
  Four value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void store_four(float* to, Four value) { std::memcpy(to, &value, sizeof value); }

// Transposes four rows by four columns in registers. Element by element, packing would cost a cycle
// an element, which a 14-row kernel hides only for n > 500.
void transpose_four(const float* from, std::ptrdiff_t from_stride, float* to,
                    std::ptrdiff_t to_stride) {
  const Four row0 = load_four(from);
  const Four row1 = load_four(from + from_stride);
  const Four row2 = load_four(from + 2 * from_stride);
  const Four row3 = load_four(from + 3 * from_stride);
  const Four low01 = __builtin_shufflevector(row0, row1, 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(row0, row1, 2, 6, 3, 7);
  const Four low23 = __builtin_shufflevector(row2, row3, 0, 4, 1, 5);
  const Four high23 = __builtin_shufflevector(row2, row3, 2, 6, 3, 7);
  store_four(to, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
  store_four(to + to_stride, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
  store_four(to + 2 * to_stride, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
  store_four(to + 3 * to_stride, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
}

// Makes a panel from the rows of the source: row i of the source becomes column i of the panel.
// Columns from `count` on are zero.
void transpose_panel(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t count,
                     std::ptrdiff_t k, std::ptrdiff_t width, float* packed) {
  const std::ptrdiff_t whole_count = count / 4 * 4;
  const std::ptrdiff_t whole_k = k / 4 * 4;
  for (std::ptrdiff_t p = 0; p < whole_k; p += 4) {
    for (std::ptrdiff_t i = 0; i < whole_count; i += 4) {
      transpose_four(from + i * from_stride + p, from_stride, packed + p * width + i, width);
    }
    for (std::ptrdiff_t i = whole_count; i < count; ++i) {
      const float* row = from + i * from_stride + p;
      float* to = packed + p * width + i;
      to[0] = row[0];
      to[width] = row[1];
      to[2 * width] = row[2];
      to[3 * width] = row[3];
    }
  }
  for (std::ptrdiff_t p = whole_k; p < k; ++p) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      packed[p * width + i] = from[i * from_stride + p];
    }
  }
  if (count < width) {
    for (std::ptrdiff_t p = 0; p < k; ++p) {
      std::fill_n(packed + p * width + count, width - count, 0.0F);
    }
  }
}

// With a width known at compile time, copying a row is a few vector moves instead of a call.
template <std::size_t kWidth>
void copy_panel(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t k, float* packed) {
  for (std::ptrdiff_t p = 0; p < k; ++p) {
    std::memcpy(packed, from, kWidth * sizeof(float));
    packed += kWidth;
    from += from_stride;
  }
}

// Copies a panel whose rows are contiguous in the source, `count` elements each, and fills the rest
// of each row with zeros.
void copy_panel(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t count,
                std::ptrdiff_t k, std::ptrdiff_t width, float* packed) {
  if (count == width) {
    switch (width) {
      case 8:
        return copy_panel<8>(from, from_stride, k, packed);
      case 12:
        return copy_panel<12>(from, from_stride, k, packed);
      case 14:
        return copy_panel<14>(from, from_stride, k, packed);
      case 16:
        return copy_panel<16>(from, from_stride, k, packed);
      case 24:
        return copy_panel<24>(from, from_stride, k, packed);
      case 32:
        return copy_panel<32>(from, from_stride, k, packed);
      case 48:
        return copy_panel<48>(from, from_stride, k, packed);
      case 64:
        return copy_panel<64>(from, from_stride, k, packed);
      default:
        break;
    }
  }
  for (std::ptrdiff_t p = 0; p < k; ++p) {
    std::copy_n(from + p * from_stride, count, packed);
    std::fill_n(packed + count, width - count, 0.0F);
    packed += width;
  }
}

// Each format makes a word from elements that follow each other along the depth. Positions are
// below kElements. NOLINTBEGIN(clang-analyzer-core.BitwiseShift)
struct Bf16ToF32 {
  using Element = std::uint16_t;
  static constexpr std::ptrdiff_t kElements = 1;
  static std::uint32_t add(std::uint32_t word, Element element, std::ptrdiff_t /*position*/) {
    return word | static_cast<std::uint32_t>(element) << 16U;
  }
};
struct Bf16ToPairs {
  using Element = std::uint16_t;
  static constexpr std::ptrdiff_t kElements = 2;
  static std::uint32_t add(std::uint32_t word, Element element, std::ptrdiff_t position) {
    return word | static_cast<std::uint32_t>(element) << (16 * position);
  }
};
struct I8ToI16Pairs {
  using Element = std::int8_t;
  static constexpr std::ptrdiff_t kElements = 2;
  static std::uint32_t add(std::uint32_t word, Element element, std::ptrdiff_t position) {
    return word | (static_cast<std::uint32_t>(static_cast<std::int32_t>(element)) & 0xffffU)
                      << (16 * position);
  }
};
struct I8ToQuads {
  using Element = std::int8_t;
  static constexpr std::ptrdiff_t kElements = 4;
  static std::uint32_t add(std::uint32_t word, Element element, std::ptrdiff_t position) {
    return word | static_cast<std::uint32_t>(static_cast<std::uint8_t>(element)) << (8 * position);
  }
};
struct I8ToBiasedQuads : I8ToQuads {
  static std::uint32_t add(std::uint32_t word, Element element, std::ptrdiff_t position) {
    return I8ToQuads::add(word, element, position) ^ (0x80U << (8 * position));
  }
};

// NOLINTEND(clang-analyzer-core.BitwiseShift)

// Packs a panel of words: element (i, p) of the source, i below `count` and p below `k`, is at
// values[i * along + p * deep]. One of the two strides is 1.
template <class Format>
void pack_words(const typename Format::Element* values, std::ptrdiff_t along, std::ptrdiff_t deep,
                std::ptrdiff_t count, std::ptrdiff_t k, std::ptrdiff_t width, float* packed) {
  const auto store = [&](std::ptrdiff_t word, std::ptrdiff_t i, std::uint32_t value) {
    std::memcpy(packed + word * width + i, &value, sizeof value);
  };
  const std::ptrdiff_t whole = k / Format::kElements;
  const auto gather = [&](std::ptrdiff_t word, std::ptrdiff_t i, std::ptrdiff_t elements) {
    const typename Format::Element* from = values + i * along + word * Format::kElements * deep;
    std::uint32_t value = 0;
    for (std::ptrdiff_t q = 0; q < elements; ++q) {
      value = Format::add(value, from[q * deep], q);
    }
    return value;
  };
  for (std::ptrdiff_t word = 0; word < whole; ++word) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      store(word, i, gather(word, i, Format::kElements));
    }
  }
  const std::ptrdiff_t rest = k - whole * Format::kElements;
  for (std::ptrdiff_t i = 0; rest > 0 && i < count; ++i) {
    store(whole, i, gather(whole, i, rest));
  }
  const std::ptrdiff_t words = whole + (rest > 0 ? 1 : 0);
  for (std::ptrdiff_t word = 0; word < words && count < width; ++word) {
    std::fill_n(packed + word * width + count, width - count, 0.0F);
  }
}

template <class Format>
void pack_words(const PackingSource& source, bool depth_is_contiguous, std::ptrdiff_t first,
                std::ptrdiff_t count, std::ptrdiff_t k, std::ptrdiff_t width, float* packed) {
  const auto* const values = reinterpret_cast<const typename Format::Element*>(source.values);
  if (depth_is_contiguous) {
    pack_words<Format>(values + first * source.stride, source.stride, 1, count, k, width, packed);
  } else {
    pack_words<Format>(values + first, 1, source.stride, count, k, width, packed);
  }
}

// Writes the values with which the kernel starts: -128 times the sum of each column, because 128
// was added to A.
void write_compensation(const float* panel, std::ptrdiff_t words, std::ptrdiff_t width,
                        float* row) {
  for (std::ptrdiff_t j = 0; j < width; ++j) {
    std::int32_t sum = 0;
    for (std::ptrdiff_t word = 0; word < words; ++word) {
      std::int8_t four[4];  // NOLINT(*-avoid-c-arrays)
      std::memcpy(four, panel + word * width + j, sizeof four);
      sum += four[0] + four[1] + four[2] + four[3];
    }
    const std::int32_t start = -128 * sum;
    std::memcpy(row + j, &start, sizeof start);
  }
}

// Packs `count` lines of the source from `first` on, each `k` elements deep.
void pack_panel(PackedWords words, bool is_a, const PackingSource& source, std::ptrdiff_t first,
                std::ptrdiff_t count, std::ptrdiff_t k, std::ptrdiff_t width, float* packed,
                TransposePanel transpose) {
  const bool depth_is_contiguous = source.by_columns != is_a;
  switch (words) {
    case PackedWords::kF32:
      if (depth_is_contiguous) {
        transpose(source.values + first * source.stride, source.stride, count, k, width, packed);
      } else {
        copy_panel(source.values + first, source.stride, count, k, width, packed);
      }
      return;
    case PackedWords::kBf16AsF32:
      return pack_words<Bf16ToF32>(source, depth_is_contiguous, first, count, k, width, packed);
    case PackedWords::kBf16Pairs:
      return pack_words<Bf16ToPairs>(source, depth_is_contiguous, first, count, k, width, packed);
    case PackedWords::kI8AsI16Pairs:
      return pack_words<I8ToI16Pairs>(source, depth_is_contiguous, first, count, k, width, packed);
    case PackedWords::kI8Quads:
      if (is_a) {
        return pack_words<I8ToBiasedQuads>(source, depth_is_contiguous, first, count, k, width,
                                           packed);
      }
      pack_words<I8ToQuads>(source, depth_is_contiguous, first, count, k, width, packed + width);
      return write_compensation(packed + width, packed_depth(words, k), width, packed);
  }
}

}  // namespace

TransposePanel transpose_panel_of(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return avx512_transpose_panel();
    case CpuIsa::kAvx2:
      return avx2_transpose_panel();
    case CpuIsa::kGeneric:
      break;
  }
  return &transpose_panel;
}

void pack_a_panels(PackedWords words, const PackingSource& a, std::ptrdiff_t rows, std::ptrdiff_t k,
                   std::ptrdiff_t panel_rows, float* packed, TransposePanel transpose) {
  for (std::ptrdiff_t i = 0; i < rows; i += panel_rows) {
    const std::ptrdiff_t here = std::min(panel_rows, rows - i);
    pack_panel(words, true, a, i, here, k, here, packed, transpose);
    packed += packed_a_size(words, here, k);
  }
}

void pack_b_panels(PackedWords words, const PackingSource& b, std::ptrdiff_t k,
                   std::ptrdiff_t columns, std::ptrdiff_t panel_columns, std::ptrdiff_t lanes,
                   float* packed, TransposePanel transpose) {
  for (std::ptrdiff_t j = 0; j < columns; j += panel_columns) {
    const std::ptrdiff_t here = std::min(panel_columns, columns - j);
    const std::ptrdiff_t width = (here + lanes - 1) / lanes * lanes;
    pack_panel(words, false, b, j, here, k, width, packed, transpose);
    packed += packed_b_size(words, k, here, lanes);
  }
}

}  // namespace foretune
