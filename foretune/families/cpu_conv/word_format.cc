#include "foretune/families/cpu_conv/word_format.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace foretune::cpu_conv {
namespace {

std::size_t size(std::ptrdiff_t value) { return static_cast<std::size_t>(value); }

// Copies points whose channels keep their type.
void copy_points(const WordFormat& format, const WordSource& source, const std::byte* from,
                 std::ptrdiff_t points, float* to) {
  const std::ptrdiff_t bytes = source.inputs * format.element_bytes();
  const std::ptrdiff_t step = source.channels * format.element_bytes();
  const std::ptrdiff_t words = format.words_of(source.inputs);
  constexpr std::ptrdiff_t kWordBytes = sizeof(float);
  if (bytes == words * kWordBytes && bytes == step) {
    std::memcpy(to, from, size(points * bytes));
    return;
  }
  // Some points are read by whole words, of which the last may reach into the points behind it.
  const std::ptrdiff_t last = bytes == words * kWordBytes ? 0 : 4;
  const std::uint32_t mask =
      0xffffffffU >> (8U * static_cast<unsigned>(words * kWordBytes - bytes));
  const auto copy = [&](auto copied_words) {
    constexpr std::ptrdiff_t kWords = decltype(copied_words)::value;
    for (; points > last; --points, from += step, to += kWords) {
      std::uint32_t point[std::size_t{kWords}];  // NOLINT(*-avoid-c-arrays)
      std::memcpy(point, from, sizeof point);
      point[kWords - 1] &= mask;
      std::memcpy(to, point, sizeof point);
    }
  };
  using std::integral_constant;
  switch (words) {
    case 1:
      copy(integral_constant<std::ptrdiff_t, 1>());
      break;
    case 2:
      copy(integral_constant<std::ptrdiff_t, 2>());
      break;
    case 4:
      copy(integral_constant<std::ptrdiff_t, 4>());
      break;
    case 8:
      copy(integral_constant<std::ptrdiff_t, 8>());
      break;
    case 16:
      copy(integral_constant<std::ptrdiff_t, 16>());
      break;
    default:
      break;
  }
  for (std::ptrdiff_t point = 0; point < points; ++point) {
    to[words - 1] = 0;
    std::memcpy(to, from, size(bytes));
    from += step;
    to += words;
  }
}

void widen_bf16(const WordSource& source, const std::byte* from, std::ptrdiff_t points, float* to) {
  for (std::ptrdiff_t point = 0; point < points; ++point) {
    for (std::ptrdiff_t channel = 0; channel < source.inputs; ++channel) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, from + 2 * channel, sizeof bits);
      to[channel] = bf16_value(bits);
    }
    from += 2 * source.channels;
    to += source.inputs;
  }
}

void widen_i8(const WordFormat& format, const WordSource& source, const std::byte* from,
              std::ptrdiff_t points, float* to) {
  const std::ptrdiff_t words = format.words_of(source.inputs);
  for (std::ptrdiff_t point = 0; point < points; ++point) {
    to[words - 1] = 0;
    auto* const at = reinterpret_cast<std::byte*>(to);
    for (std::ptrdiff_t channel = 0; channel < source.inputs; ++channel) {
      // The sign of a byte fills the higher one.
      const int byte = std::to_integer<int>(from[channel]);
      const auto wide = static_cast<std::int16_t>(byte < 128 ? byte : byte - 256);
      std::memcpy(at + 2 * channel, &wide, sizeof wide);
    }
    from += source.channels;
    to += words;
  }
}

}  // namespace

Result<WordFormat> WordFormat::of(DataType dtype, CpuIsa isa, bool in_tiles) {
  const auto has = [isa](KernelMath math) { return tap_kernel_set(isa, math) != nullptr; };
  if (in_tiles && dtype == DataType::kBf16) {
    return WordFormat{KernelMath::kBf16Tiles, PackedWords::kBf16Pairs};
  }
  if (in_tiles && dtype == DataType::kI8) {
    return WordFormat{KernelMath::kI8Tiles, PackedWords::kI8Quads};
  }
  if (dtype == DataType::kBf16) {
    return has(KernelMath::kBf16Pairs) ? WordFormat{KernelMath::kBf16Pairs, PackedWords::kBf16Pairs}
                                       : WordFormat{KernelMath::kF32, PackedWords::kBf16AsF32};
  }
  if (dtype == DataType::kI8) {
    return has(KernelMath::kI8Shifted)
               ? WordFormat{KernelMath::kI8Shifted, PackedWords::kI8Quads}
               : WordFormat{KernelMath::kI16Pairs, PackedWords::kI8AsI16Pairs};
  }
  return fail(ErrorCode::kUnsupported, "there are no words of ", to_string(dtype));
}

std::uint32_t WordFormat::bits_of(std::int8_t weight, std::ptrdiff_t index) const {
  const auto bits = static_cast<std::uint32_t>(std::int32_t{weight});
  return words == PackedWords::kI8Quads ? (bits & 0xffU) << (8 * index)
                                        : (bits & 0xffffU) << (16 * index);
}

std::uint32_t WordFormat::bits_of(std::uint16_t weight, std::ptrdiff_t index) const {
  const std::uint32_t bits = weight;
  return words == PackedWords::kBf16AsF32 ? bits << 16U : bits << (16 * index);
}

std::uint32_t WordFormat::repeated(std::int32_t element) const {
  const auto bits = static_cast<std::uint32_t>(element);
  return words == PackedWords::kI8Quads ? (bits & 0xffU) * 0x01010101U
                                        : (bits & 0xffffU) * 0x00010001U;
}

void copy_word_row(const WordFormat& format, const WordSource& source, const CopiedRow& row) {
  const std::ptrdiff_t words = format.words_of(source.inputs);
  const std::uint32_t bits = format.is_integer() ? format.repeated(source.zero) : 0;
  const auto clear = [&](float* to, std::ptrdiff_t points) {
    for (std::ptrdiff_t word = 0; word < points * words; ++word) {
      std::memcpy(to + word, &bits, sizeof bits);
    }
  };
  const std::ptrdiff_t left = row.length == 0 ? row.points : row.left;
  clear(row.to, left);
  if (row.length == 0) {
    return;
  }
  const std::byte* const from =
      source.values + row.first * source.channels * format.element_bytes();
  float* const to = row.to + left * words;
  if (format.words == PackedWords::kBf16AsF32) {
    widen_bf16(source, from, row.length, to);
  } else if (format.words == PackedWords::kI8AsI16Pairs) {
    widen_i8(format, source, from, row.length, to);
  } else {
    copy_points(format, source, from, row.length, to);
  }
  clear(to + row.length * words, row.points - left - row.length);
}

}  // namespace foretune::cpu_conv
