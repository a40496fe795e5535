// How elements of bf16 and i8 become the 32-bit words that kernels multiply. Words lie along the
// channels of a group: two bf16 or four i8 are one word. Where the CPU multiplies such words, a
// tensor whose groups have whole words of channels is read where it is. Elsewhere elements are
// widened while they are copied: bf16 to f32, i8 to 16 bits.
//
// Thread safety: plain values and free functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/families/cpu_conv/input_slab.h"
#include "foretune/hardware/cpu.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/kernels/packing.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::cpu_conv {

struct WordFormat {
  KernelMath math = KernelMath::kF32;
  PackedWords words = PackedWords::kF32;

  // Returns the kernels' words for a type on this CPU; `in_tiles`: those in the tiles of AMX.
  // Errors: kUnsupported for a type other than bf16 and i8.
  static Result<WordFormat> of(DataType dtype, CpuIsa isa, bool in_tiles = false);

  [[nodiscard]] bool is_integer() const {
    return words == PackedWords::kI8Quads || words == PackedWords::kI8AsI16Pairs;
  }
  // Returns true when elements become others in a word.
  [[nodiscard]] bool widens() const {
    return words == PackedWords::kBf16AsF32 || words == PackedWords::kI8AsI16Pairs;
  }
  // Returns how much the kernels add to each element of an input.
  [[nodiscard]] std::int32_t shift() const { return math == KernelMath::kI8Shifted ? 128 : 0; }
  [[nodiscard]] std::ptrdiff_t element_bytes() const { return is_integer() ? 1 : 2; }
  // Returns the number of words of so many channels.
  [[nodiscard]] std::ptrdiff_t words_of(std::ptrdiff_t channels) const {
    return packed_depth(words, channels);
  }
  // Returns the bits of a weight as element `index` of a word.
  [[nodiscard]] std::uint32_t bits_of(std::int8_t weight, std::ptrdiff_t index) const;
  [[nodiscard]] std::uint32_t bits_of(std::uint16_t weight, std::ptrdiff_t index) const;
  // Returns the bits of a word of equal integers.
  [[nodiscard]] std::uint32_t repeated(std::int32_t element) const;
};

// Where the channels of a group are in a tensor.
struct WordSource {
  const std::byte* values = nullptr;  // of the group
  std::ptrdiff_t inputs = 1;          // channels of the group
  std::ptrdiff_t channels = 1;        // of all groups
  std::int32_t zero = 0;              // the element that stands for zero around the image
};

// Writes a row of a slab's copy. Elements that fill up a word are zero bits.
void copy_word_row(const WordFormat& format, const WordSource& source, const CopiedRow& row);

}  // namespace foretune::cpu_conv
