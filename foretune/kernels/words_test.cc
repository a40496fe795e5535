// Packing of elements that are not f32, and the kernels for their words, against the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/kernels/packing.h"
#include "foretune/kernels/testing/guarded_buffer.h"

namespace foretune {
namespace {

constexpr std::uint64_t kWordsSeed = 21;

std::ptrdiff_t draw_size(Rng& rng, std::int64_t low, std::int64_t high) {
  return static_cast<std::ptrdiff_t>(rng.between(low, high));
}

std::size_t element_bytes(PackedWords words) {
  return words == PackedWords::kI8AsI16Pairs || words == PackedWords::kI8Quads ? 1 : 2;
}

// Elements in a buffer that ends at a guard page.
class Elements {
 public:
  Elements(std::size_t count, std::size_t bytes, Rng& rng)
      : bytes_(bytes), buffer_(count * bytes, GuardSide::kEnd) {
    for (std::byte& byte : buffer_.view()) {
      byte = static_cast<std::byte>(rng.next());
    }
  }
  [[nodiscard]] const float* data() const { return reinterpret_cast<const float*>(buffer_.data()); }
  // The element's bits.
  [[nodiscard]] std::uint32_t bits(std::ptrdiff_t index) const {
    std::uint32_t value = 0;
    std::memcpy(&value, buffer_.data() + static_cast<std::size_t>(index) * bytes_, bytes_);
    return value;
  }

 private:
  std::size_t bytes_;
  GuardedArray<std::byte> buffer_;
};

// Returns the word at depth `word` of a line whose elements are `bits(p)`.
template <class Bits>
std::uint32_t expected_word(PackedWords words, bool is_a, std::ptrdiff_t word, std::ptrdiff_t k,
                            const Bits& bits) {
  std::uint32_t value = 0;
  for (std::ptrdiff_t q = 0; q < elements_per_word(words); ++q) {
    const std::ptrdiff_t p = word * elements_per_word(words) + q;
    if (p >= k) {
      break;
    }
    switch (words) {
      case PackedWords::kBf16AsF32:
        value |= bits(p) << 16U;
        break;
      case PackedWords::kBf16Pairs:
        value |= bits(p) << (16 * q);
        break;
      case PackedWords::kI8AsI16Pairs:
        value |= (static_cast<std::uint32_t>(
                      static_cast<std::int32_t>(static_cast<std::int8_t>(bits(p)))) &
                  0xffffU)
                 << (16 * q);
        break;
      case PackedWords::kI8Quads:
        value |= ((bits(p) + (is_a ? 128U : 0U)) & 0xffU) << (8 * q);
        break;
      case PackedWords::kF32:
        break;
    }
  }
  return value;
}

constexpr PackedWords kAllWords[] = {PackedWords::kBf16AsF32, PackedWords::kBf16Pairs,
                                     PackedWords::kI8AsI16Pairs, PackedWords::kI8Quads};

TEST(WordsTest, PanelsHoldEachElementInItsWord) {
  Rng rng(kWordsSeed);
  for (int trial = 0; trial < 4000; ++trial) {
    const PackedWords words = kAllWords[rng.below(4)];
    const bool is_a = rng.below(2) == 0;
    const std::ptrdiff_t lines = draw_size(rng, 1, 60);
    const std::ptrdiff_t k = draw_size(rng, 1, 40);
    const std::ptrdiff_t lanes = std::ptrdiff_t{4} << rng.below(3);
    const std::ptrdiff_t panel = is_a ? draw_size(rng, 1, 16) : lanes * draw_size(rng, 1, 4);
    const bool by_columns = rng.below(2) == 0;
    const bool depth_is_contiguous = by_columns != is_a;
    const std::ptrdiff_t length = depth_is_contiguous ? k : lines;
    const std::ptrdiff_t stride = length + draw_size(rng, 0, 5);
    const std::ptrdiff_t count = ((depth_is_contiguous ? lines : k) - 1) * stride + length;
    const Elements elements(static_cast<std::size_t>(count), element_bytes(words), rng);
    const std::ptrdiff_t size =
        is_a ? packed_a_size(words, lines, k) : packed_b_size(words, k, lines, lanes);
    GuardedBuffer packed(static_cast<std::size_t>(size), GuardSide::kEnd);
    if (is_a) {
      pack_a_panels(words, {elements.data(), stride, by_columns}, lines, k, panel, packed.data());
    } else {
      pack_b_panels(words, {elements.data(), stride, by_columns}, k, lines, panel, lanes,
                    packed.data());
    }
    const float* at = packed.data();
    for (std::ptrdiff_t first = 0; first < lines; first += panel) {
      const std::ptrdiff_t here = std::min(panel, lines - first);
      const std::ptrdiff_t width = is_a ? here : (here + lanes - 1) / lanes * lanes;
      const auto bits = [&](std::ptrdiff_t line, std::ptrdiff_t p) {
        return elements.bits(depth_is_contiguous ? line * stride + p : p * stride + line);
      };
      for (std::ptrdiff_t j = 0; !is_a && words == PackedWords::kI8Quads && j < width; ++j) {
        std::int32_t sum = 0;
        for (std::ptrdiff_t p = 0; j < here && p < k; ++p) {
          sum += static_cast<std::int8_t>(bits(first + j, p));
        }
        ASSERT_EQ(std::bit_cast<std::int32_t>(at[j]), -128 * sum);
      }
      at += (is_a ? 0 : extra_rows(words)) * width;
      for (std::ptrdiff_t word = 0; word < packed_depth(words, k); ++word) {
        for (std::ptrdiff_t i = 0; i < width; ++i) {
          const std::uint32_t expected =
              i < here
                  ? expected_word(
                        words, is_a, word, k, [&](std::ptrdiff_t p) { return bits(first + i, p); })
                  : 0;
          ASSERT_EQ(std::bit_cast<std::uint32_t>(*at++), expected)
              << "seed " << kWordsSeed << " trial " << trial << " words " << static_cast<int>(words)
              << " k " << k << " lines " << lines << " at " << first + i << ", word " << word;
        }
      }
    }
    ASSERT_EQ(at - packed.data(), size);
  }
}

// Multiplies one word of A by one of B, as the kernels define it.
double product(KernelMath math, std::uint32_t a, std::uint32_t b) {
  double sum = 0;
  if (math == KernelMath::kI8Quads) {
    for (unsigned q = 0; q < 4; ++q) {
      sum += static_cast<double>(static_cast<std::uint8_t>(a >> (8 * q))) *
             static_cast<double>(static_cast<std::int8_t>(b >> (8 * q)));
    }
    return sum;
  }
  for (unsigned q = 0; q < 2; ++q) {
    const auto left = static_cast<std::uint16_t>(a >> (16 * q));
    const auto right = static_cast<std::uint16_t>(b >> (16 * q));
    sum += math == KernelMath::kI16Pairs
               ? static_cast<double>(static_cast<std::int16_t>(left)) *
                     static_cast<double>(static_cast<std::int16_t>(right))
               : static_cast<double>(std::bit_cast<float>(std::uint32_t{left} << 16U)) *
                     static_cast<double>(std::bit_cast<float>(std::uint32_t{right} << 16U));
  }
  return sum;
}

// Returns a word whose products and sums are exact in each type.
std::uint32_t random_word(KernelMath math, Rng& rng) {
  if (math == KernelMath::kI8Quads) {
    return static_cast<std::uint32_t>(rng.next());
  }
  std::uint32_t word = 0;
  for (unsigned q = 0; q < 2; ++q) {
    const auto whole = static_cast<std::int32_t>(rng.between(-128, 127));
    const std::uint32_t half = math == KernelMath::kI16Pairs
                                   ? static_cast<std::uint32_t>(whole) & 0xffffU
                                   : std::bit_cast<std::uint32_t>(static_cast<float>(whole)) >> 16U;
    word |= half << (16 * q);
  }
  return word;
}

void check_kernel(const KernelSet& set, int rows, int vectors, int last_columns,
                  std::ptrdiff_t words, bool adds, Rng& rng) {
  const bool tail = last_columns < set.lanes;
  const MicroKernel kernel =
      set.find({.rows = rows, .vectors = vectors, .a_by_columns = true, .tail = tail});
  ASSERT_NE(kernel, nullptr);
  const bool is_integer = set.math != KernelMath::kBf16Pairs;
  const std::ptrdiff_t columns = (vectors - 1) * set.lanes + last_columns;
  // As packed: whole vectors.
  const std::ptrdiff_t width = static_cast<std::ptrdiff_t>(vectors) * set.lanes;
  const std::ptrdiff_t starts = set.math == KernelMath::kI8Quads ? 1 : 0;
  const std::ptrdiff_t c_stride = columns + 3;
  GuardedBuffer a(static_cast<std::size_t>(rows * words), GuardSide::kEnd);
  GuardedBuffer b(static_cast<std::size_t>(width * (words + starts)), GuardSide::kEnd);
  GuardedBuffer c(static_cast<std::size_t>((rows - 1) * c_stride + columns), GuardSide::kEnd);
  for (float& value : a.view()) {
    value = std::bit_cast<float>(random_word(set.math, rng));
  }
  for (std::size_t i = 0; i < b.view().size(); ++i) {
    const bool is_start = static_cast<std::ptrdiff_t>(i) < starts * width;
    b.data()[i] =
        std::bit_cast<float>(is_start ? static_cast<std::uint32_t>(rng.between(-5000, 5000))
                                      : random_word(set.math, rng));
  }
  const auto value_of = [&](float bits) {
    return is_integer ? static_cast<double>(std::bit_cast<std::int32_t>(bits))
                      : static_cast<double>(bits);
  };
  for (float& value : c.view()) {
    const auto whole = static_cast<std::int32_t>(rng.between(-100, 100));
    value = is_integer ? std::bit_cast<float>(whole) : static_cast<float>(whole);
  }
  std::vector<double> expected;
  for (std::ptrdiff_t i = 0; i < rows; ++i) {
    for (std::ptrdiff_t j = 0; j < columns; ++j) {
      double sum = starts > 0 ? value_of(b.data()[j]) : 0;
      for (std::ptrdiff_t p = 0; p < words; ++p) {
        sum += product(set.math, std::bit_cast<std::uint32_t>(a.data()[p * rows + i]),
                       std::bit_cast<std::uint32_t>(b.data()[(p + starts) * width + j]));
      }
      expected.push_back(sum + (adds ? value_of(c.data()[i * c_stride + j]) : 0));
    }
  }
  const float gap = rows > 1 ? c.data()[columns] : 0;
  kernel({.a = a.data(),
          .a_stride = rows,
          .b = b.data(),
          .b_stride = width,
          .c_in = adds ? c.data() : nullptr,
          .c_in_stride = c_stride,
          .c = c.data(),
          .c_stride = c_stride,
          .k = words,
          .beta = adds ? 1.0F : 0.0F,
          .prefetch_c = true,
          .last_columns = last_columns});
  std::size_t at = 0;
  for (std::ptrdiff_t i = 0; i < rows; ++i) {
    for (std::ptrdiff_t j = 0; j < columns; ++j, ++at) {
      ASSERT_EQ(value_of(c.data()[i * c_stride + j]), expected[at])
          << to_string(set.isa) << " math " << static_cast<int>(set.math) << " " << rows << "x"
          << vectors << " columns " << columns << " words " << words << " at (" << i << ", " << j
          << ")";
    }
  }
  if (rows > 1) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(c.data()[columns]), std::bit_cast<std::uint32_t>(gap));
  }
}

TEST(WordsTest, EveryKernelAgreesWithTheDefinition) {
  Rng rng(kWordsSeed);
  int sets = 0;
  for (const CpuIsa isa : {CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    for (const KernelMath math :
         {KernelMath::kBf16Pairs, KernelMath::kI8Quads, KernelMath::kI16Pairs}) {
      const KernelSet* const set = kernel_set(isa, math);
      if (set == nullptr) {
        continue;
      }
      ++sets;
      EXPECT_EQ(set->math, math);
      for (int vectors = 1; vectors <= kMaxKernelVectors; ++vectors) {
        for (int rows = 1; rows <= max_kernel_rows(isa, vectors); ++rows) {
          for (const int last : {set->lanes, static_cast<int>(rng.between(1, set->lanes - 1))}) {
            for (const std::ptrdiff_t words :
                 {std::ptrdiff_t{0}, std::ptrdiff_t{1}, draw_size(rng, 2, 40)}) {
              check_kernel(*set, rows, vectors, last, words, rng.below(2) == 0, rng);
              ASSERT_FALSE(HasFatalFailure());
            }
          }
        }
      }
    }
  }
  // Every instruction set has kernels for pairs of 16-bit integers.
  EXPECT_GE(sets, kernel_set(CpuIsa::kAvx2) != nullptr ? 2 : 1);
}

}  // namespace
}  // namespace foretune
