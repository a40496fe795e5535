// Packing copies a block of A or B in the order in which a micro-kernel reads it, so that the
// kernel walks through memory once, without strides that collide in the caches. Elements of types
// other than f32 become the 32-bit words that the kernels multiply.
// Thread safety: free functions. Cost: memory-bound; no allocation.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "foretune/hardware/cpu.h"

namespace foretune {

// The upper half of a float: 8 bits of exponent, 7 of fraction.
struct Bf16 {
  std::uint16_t bits = 0;
};

// Returns the bits of the nearest bf16, the even one of two; a NaN stays one.
constexpr std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded =
      value == value ? bits + 0x7fffU + (bits >> 16U & 1U) : bits | 0x400000U;
  return static_cast<std::uint16_t>(rounded >> 16U);
}
constexpr float bf16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

// The contents of a word of a packed panel, and the type of the elements it is made from. Several
// elements in one word follow each other along the depth, the first in the lowest bits; missing
// elements at the end are zero.
enum class PackedWords : std::uint8_t {
  kF32,           // one float
  kBf16AsF32,     // one float, from bf16
  kBf16Pairs,     // two bf16
  kI8AsI16Pairs,  // two 16-bit integers, from i8
  // Four bytes. Those of A are unsigned, the element plus 128, since the instruction multiplies
  // unsigned by signed bytes. Panels of B have an additional first row, -128 times the sums of
  // their columns, with which the kernel starts.
  kI8Quads,
};

// Returns the number of elements of a word.
constexpr std::ptrdiff_t elements_per_word(PackedWords words) {
  switch (words) {
    case PackedWords::kBf16Pairs:
    case PackedWords::kI8AsI16Pairs:
      return 2;
    case PackedWords::kI8Quads:
      return 4;
    case PackedWords::kF32:
    case PackedWords::kBf16AsF32:
      break;
  }
  return 1;
}
// Returns the number of words along a depth of k elements.
constexpr std::ptrdiff_t packed_depth(PackedWords words, std::ptrdiff_t k) {
  return (k + elements_per_word(words) - 1) / elements_per_word(words);
}
// Returns the number of additional rows in front of a panel of B.
constexpr std::ptrdiff_t extra_rows(PackedWords words) {
  return words == PackedWords::kI8Quads ? 1 : 0;
}

// A block of a matrix: row-major, with element (i, j) at values[i * stride + j], or by columns, at
// values[j * stride + i]. Elements of other types are passed as if they were floats; strides count
// elements.
struct PackingSource {
  const float* values = nullptr;
  std::ptrdiff_t stride = 0;
  bool by_columns = false;
};

// Writes a panel of `width` floats a row from `count` lines of `k` floats each: line i of the
// source becomes column i of the panel, and columns from `count` on become zero.
using TransposePanel = void (*)(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t count,
                                std::ptrdiff_t k, std::ptrdiff_t width, float* packed);
// Returns the function that uses the registers of `isa`, which this CPU must have.
TransposePanel transpose_panel_of(CpuIsa isa);

// Packs a block of `rows` x `k` of A as panels of `panel_rows` rows; word (i, p) of a panel with r
// rows lies at p * r + i. The last panel has the remaining rows and no padding: the whole takes
// packed_a_size() words. `a` points to elements of the type that `words` says.
void pack_a_panels(PackedWords words, const PackingSource& a, std::ptrdiff_t rows, std::ptrdiff_t k,
                   std::ptrdiff_t panel_rows, float* packed,
                   TransposePanel transpose = transpose_panel_of(CpuIsa::kGeneric));

// Packs a block of `k` x `columns` of B as panels of `panel_columns` (a multiple of `lanes`); word
// (p, j) of a panel lies at p * width + j. The width of the last panel is rounded up to whole
// vectors of `lanes` words and filled with zeros.
void pack_b_panels(PackedWords words, const PackingSource& b, std::ptrdiff_t k,
                   std::ptrdiff_t columns, std::ptrdiff_t panel_columns, std::ptrdiff_t lanes,
                   float* packed, TransposePanel transpose = transpose_panel_of(CpuIsa::kGeneric));

// Return the number of words that the two functions write.
constexpr std::ptrdiff_t packed_a_size(PackedWords words, std::ptrdiff_t rows, std::ptrdiff_t k) {
  return rows * packed_depth(words, k);
}
constexpr std::ptrdiff_t packed_b_size(PackedWords words, std::ptrdiff_t k, std::ptrdiff_t columns,
                                       std::ptrdiff_t lanes) {
  return (packed_depth(words, k) + extra_rows(words)) * ((columns + lanes - 1) / lanes * lanes);
}

}  // namespace foretune
