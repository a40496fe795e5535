// The loops of vector_ops.h, compiled once for each instruction set: the including file's flags
// decide, and its compiler vectorises. Everything is in an unnamed namespace, so that no linker
// takes a function of another file. Thread safety: free functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "foretune/graph/run/vector_ops.h"

namespace foretune::graph {
namespace {

// Returns e^x: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2], the Taylor series to the 7th term.
inline float fast_exp(float x) {
  const float bounded = std::min(std::max(x, -87.3F), 88.7F);
  const float whole = std::floor(bounded * 1.44269504F + 0.5F);
  // ln 2 in two parts, the first of few bits, so that the product is exact.
  const float rest = (bounded - whole * 0.693359375F) + whole * 2.12194440e-4F;
  float sum = 1.0F / 5040;
  sum = sum * rest + 1.0F / 720;
  sum = sum * rest + 1.0F / 120;
  sum = sum * rest + 1.0F / 24;
  sum = sum * rest + 1.0F / 6;
  sum = sum * rest + 0.5F;
  sum = sum * rest + 1.0F;
  sum = sum * rest + 1.0F;
  const auto exponent = static_cast<std::int32_t>(whole);
  // 2^128 is no f32: half of it, twice.
  const float power = std::bit_cast<float>((exponent - 1 + 127) << 23);
  return x > 88.7F ? std::bit_cast<float>(0x7f800000) : 2 * (sum * power);
}

inline float fast_sigmoid(float x) { return 1.0F / (1.0F + fast_exp(-x)); }

// Near 0 the quotient of exponentials loses digits; there it is the series.
inline float fast_tanh(float x) {
  const float size = std::abs(x);
  const float square = x * x;
  const float series =
      x * (1.0F + square * (-1.0F / 3 + square * (2.0F / 15 + square * (-17.0F / 315))));
  const float quotient = 1.0F - 2.0F / (1.0F + fast_exp(2 * std::min(size, 10.0F)));
  return size < 0.25F ? series : std::copysign(quotient, x);
}

// Up to 1 the Taylor series, above formula 7.1.26 of Abramowitz and Stegun (1964).
inline float fast_erf(float x) {
  const float size = std::abs(x);
  const float square = x * x;
  float series = 1.0F / 76204800;
  series = 1.0F / 6894720 - square * series;
  series = 1.0F / 685440 - square * series;
  series = 1.0F / 75600 - square * series;
  series = 1.0F / 9360 - square * series;
  series = 1.0F / 1320 - square * series;
  series = 1.0F / 216 - square * series;
  series = 1.0F / 42 - square * series;
  series = 0.1F - square * series;
  series = 1.0F / 3 - square * series;
  series = 1.0F - square * series;
  const float near = 1.12837917F * x * series;
  const float t = 1.0F / (1.0F + 0.3275911F * size);
  float tail = 1.061405429F;
  tail = tail * t - 1.453152027F;
  tail = tail * t + 1.421413741F;
  tail = tail * t - 0.284496736F;
  tail = tail * t + 0.254829592F;
  const float far = 1.0F - tail * t * fast_exp(-std::min(square, 80.0F));
  return size < 1.0F ? near : std::copysign(far, x);
}

// log(1 + e^-|x|) by the series of atanh: log(1 + z) = 2 atanh(z / (2 + z)) with z in (0, 1].
inline float fast_softplus(float x) {
  const float z = fast_exp(-std::abs(x));
  const float s = z / (2.0F + z);
  const float square = s * s;
  float sum = 1.0F / 13;
  sum = sum * square + 1.0F / 11;
  sum = sum * square + 1.0F / 9;
  sum = sum * square + 1.0F / 7;
  sum = sum * square + 1.0F / 5;
  sum = sum * square + 1.0F / 3;
  sum = sum * square + 1.0F;
  return std::max(x, 0.0F) + 2 * s * sum;
}

inline float op_relu(float x, float /*p*/, float /*q*/) { return x < 0 ? 0.0F : x; }
inline float op_sigmoid(float x, float /*p*/, float /*q*/) { return fast_sigmoid(x); }
inline float op_tanh(float x, float /*p*/, float /*q*/) { return fast_tanh(x); }
inline float op_erf(float x, float /*p*/, float /*q*/) { return fast_erf(x); }
inline float op_exp(float x, float /*p*/, float /*q*/) { return fast_exp(x); }
inline float op_sqrt(float x, float /*p*/, float /*q*/) { return std::sqrt(x); }
inline float op_abs(float x, float /*p*/, float /*q*/) { return std::abs(x); }
inline float op_neg(float x, float /*p*/, float /*q*/) { return -x; }
inline float op_gelu(float x, float /*p*/, float /*q*/) {
  return 0.5F * x * (1.0F + fast_erf(x * 0.707106781F));
}
inline float op_gelu_tanh(float x, float /*p*/, float /*q*/) {
  return 0.5F * x * (1.0F + fast_tanh(0.797884561F * (x + 0.044715F * x * x * x)));
}
inline float op_silu(float x, float /*p*/, float /*q*/) { return x * fast_sigmoid(x); }
inline float op_hard_sigmoid(float x, float p, float q) {
  return std::min(std::max(p * x + q, 0.0F), 1.0F);
}
inline float op_hard_swish(float x, float /*p*/, float /*q*/) {
  return x * op_hard_sigmoid(x, 1.0F / 6, 0.5F);
}
inline float op_softplus(float x, float /*p*/, float /*q*/) { return fast_softplus(x); }
inline float op_clip(float x, float p, float q) { return std::min(std::max(x, p), q); }
inline float op_leaky_relu(float x, float p, float /*q*/) { return x < 0 ? p * x : x; }

template <float (*kFunction)(float, float, float)>
void each(const float* x, float* y, std::size_t count, float p, float q) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = kFunction(x[i], p, q);
  }
}

inline float op_add(float a, float b) { return a + b; }
inline float op_sub(float a, float b) { return a - b; }
inline float op_mul(float a, float b) { return a * b; }
inline float op_div(float a, float b) { return a / b; }
inline float op_max(float a, float b) { return a < b ? b : a; }
inline float op_min(float a, float b) { return b < a ? b : a; }

template <float (*kFunction)(float, float)>
void each_pair(const float* a, const float* b, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = kFunction(a[i], b[i]);
  }
}

void largest_of_rows(const float* const* rows, std::size_t count, std::size_t channels, float* y) {
  std::copy_n(rows[0], channels, y);
  for (std::size_t row = 1; row < count; ++row) {
    const float* const x = rows[row];
    for (std::size_t i = 0; i < channels; ++i) {
      y[i] = op_max(y[i], x[i]);
    }
  }
}

template <std::size_t kChannels>
void largest_of_windows_of(const float* line, std::size_t width, std::size_t step,
                           std::size_t count, std::size_t channels, float* y) {
  const std::size_t own = kChannels == 0 ? channels : kChannels;
  for (std::size_t window = 0; window < count; ++window) {
    const float* const x = line + window * step * own;
    float* const to = y + window * own;
    for (std::size_t i = 0; i < own; ++i) {
      float most = x[i];
      for (std::size_t point = 1; point < width; ++point) {
        most = op_max(most, x[point * own + i]);
      }
      to[i] = most;
    }
  }
}

// A constant number of channels lets the compiler keep a whole window in registers.
void largest_of_windows(const float* line, std::size_t width, std::size_t step, std::size_t count,
                        std::size_t channels, float* y) {
  switch (channels) {
    case 16:
      largest_of_windows_of<16>(line, width, step, count, channels, y);
      break;
    case 32:
      largest_of_windows_of<32>(line, width, step, count, channels, y);
      break;
    default:
      largest_of_windows_of<0>(line, width, step, count, channels, y);
      break;
  }
}

void scaled_sum_of_rows(const float* const* rows, std::size_t count, std::size_t channels,
                        float factor, float* y) {
  std::fill_n(y, channels, 0.0F);
  for (std::size_t row = 0; row < count; ++row) {
    const float* const x = rows[row];
    for (std::size_t i = 0; i < channels; ++i) {
      y[i] += x[i];
    }
  }
  for (std::size_t i = 0; i < channels; ++i) {
    y[i] *= factor;
  }
}

// Sums 32 channels at a time, in registers.
void scaled_sum_of_dense_rows(const float* x, std::size_t rows, std::size_t channels, float factor,
                              float* y) {
  constexpr std::size_t kBlock = 32;
  std::size_t first = 0;
  for (; first + kBlock <= channels; first += kBlock) {
    float sums[kBlock] = {};
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const from = x + row * channels + first;
      for (std::size_t i = 0; i < kBlock; ++i) {
        sums[i] += from[i];
      }
    }
    for (std::size_t i = 0; i < kBlock; ++i) {
      y[first + i] = sums[i] * factor;
    }
  }
  for (; first < channels; ++first) {
    float sum = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      sum += x[row * channels + first];
    }
    y[first] = sum * factor;
  }
}

void scaled_sum_of_dense_i8_rows(const std::int8_t* x, std::size_t rows, std::size_t channels,
                                 std::int32_t zero, float factor, float* y) {
  constexpr std::size_t kBlock = 64;
  for (std::size_t first = 0; first < channels; first += kBlock) {
    const std::size_t count = std::min(kBlock, channels - first);
    std::int32_t sums[kBlock] = {};
    for (std::size_t row = 0; row < rows; ++row) {
      const std::int8_t* const from = x + row * channels + first;
      for (std::size_t i = 0; i < count; ++i) {
        sums[i] += from[i];
      }
    }
    const std::int32_t shift = static_cast<std::int32_t>(rows) * zero;
    for (std::size_t i = 0; i < count; ++i) {
      y[first + i] = static_cast<float>(sums[i] - shift) * factor;
    }
  }
}

// Sums in 16 lanes, whatever the width of a vector, so that every instruction set has the same
// result.
template <class Term>
float sum_of(std::size_t count, const Term& term) {
  constexpr std::size_t kLanes = 16;
  float sums[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += term(i + lane);
    }
  }
  for (; i < count; ++i) {
    sums[i % kLanes] += term(i);
  }
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) {
      sums[lane] += sums[lane + width];
    }
  }
  return sums[0];
}

void softmax_row(const float* x, float* y, std::size_t count) {
  float most = x[0];
  for (std::size_t i = 1; i < count; ++i) {
    most = op_max(most, x[i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = fast_exp(x[i] - most);
  }
  const float factor = 1.0F / sum_of(count, [&](std::size_t i) { return y[i]; });
  for (std::size_t i = 0; i < count; ++i) {
    y[i] *= factor;
  }
}

void normalise_row(const float* x, const float* scale, const float* shift, float epsilon, float* y,
                   std::size_t count) {
  const float share = 1.0F / static_cast<float>(count);
  const float mean = share * sum_of(count, [&](std::size_t i) { return x[i]; });
  const float variance =
      share * sum_of(count, [&](std::size_t i) { return (x[i] - mean) * (x[i] - mean); });
  const float factor = 1.0F / std::sqrt(variance + epsilon);
  if (scale != nullptr && shift != nullptr) {
    for (std::size_t i = 0; i < count; ++i) {
      y[i] = (x[i] - mean) * factor * scale[i] + shift[i];
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = (x[i] - mean) * factor * (scale != nullptr ? scale[i] : 1.0F) +
           (shift != nullptr ? shift[i] : 0.0F);
  }
}

void quantise(const float* x, std::int8_t* y, std::size_t count, float scale, std::int32_t zero) {
  const float factor = 1.0F / scale;
  const auto shift = static_cast<float>(zero);
  for (std::size_t i = 0; i < count; ++i) {
    const float whole = std::nearbyint(x[i] * factor + shift);
    y[i] = static_cast<std::int8_t>(
        static_cast<std::int32_t>(std::min(std::max(whole, -128.0F), 127.0F)));
  }
}

void dequantise(const std::int8_t* x, float* y, std::size_t count, float scale, std::int32_t zero) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = static_cast<float>(x[i] - zero) * scale;
  }
}

// Not for NaNs, whose bits might become those of an infinity.
inline std::uint16_t bf16_of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}
inline float f32_of(std::uint16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16U);
}

void narrow_to_bf16(const float* x, std::uint16_t* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = bf16_of(x[i]);
  }
}

inline float op_round_f16(float x, float /*p*/, float /*q*/) {
  constexpr float kLeastNormal = 0x1p-14F;
  constexpr float kOverflow = 65520.0F;
  const float size = std::abs(x);
  const auto bits = std::bit_cast<std::uint32_t>(size);
  const float normal = std::bit_cast<float>((bits + 0x0fffU + ((bits >> 13U) & 1U)) & ~0x1fffU);
  // Around 0.75 neighbours in f32 are as far apart as those near 0 in f16.
  const float tiny = (size + 0.75F) - 0.75F;
  const float rounded = size < kLeastNormal ? tiny : normal;
  return std::copysign(size >= kOverflow ? std::bit_cast<float>(0x7f800000) : rounded, x);
}

void widen_bf16(const std::uint16_t* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = f32_of(x[i]);
  }
}

void scaled_sums(const std::int32_t* x, const float* scales, float* y, std::size_t rows,
                 std::size_t channels, float floor) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < channels; ++i) {
      const float value = static_cast<float>(x[row * channels + i]) * scales[i];
      y[row * channels + i] = value < floor ? floor : value;
    }
  }
}

void largest_of_i8_rows(const std::int8_t* const* rows, std::size_t count, std::size_t channels,
                        std::int8_t* y) {
  std::copy_n(rows[0], channels, y);
  for (std::size_t row = 1; row < count; ++row) {
    const std::int8_t* const x = rows[row];
    for (std::size_t i = 0; i < channels; ++i) {
      y[i] = y[i] < x[i] ? x[i] : y[i];
    }
  }
}

void mean_of_f32(const float* a, const float* b, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = 0.5F * (a[i] + b[i]);
  }
}

void mean_of_i8(const std::int8_t* a, const std::int8_t* b, std::int8_t* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = static_cast<std::int8_t>((a[i] + b[i] + 1) >> 1);
  }
}

void mean_of_bf16(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* y,
                  std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = bf16_of(0.5F * (f32_of(a[i]) + f32_of(b[i])));
  }
}

// In the order of the enumerations.
constexpr VectorOps all_vector_ops() {
  return {.unary = {&each<op_relu>, &each<op_sigmoid>, &each<op_tanh>, &each<op_erf>, &each<op_exp>,
                    &each<op_sqrt>, &each<op_abs>, &each<op_neg>, &each<op_gelu>,
                    &each<op_gelu_tanh>, &each<op_silu>, &each<op_hard_swish>, &each<op_softplus>,
                    &each<op_clip>, &each<op_leaky_relu>, &each<op_hard_sigmoid>},
          .binary = {&each_pair<op_add>, &each_pair<op_sub>, &each_pair<op_mul>, &each_pair<op_div>,
                     &each_pair<op_max>, &each_pair<op_min>},
          .max_rows = &largest_of_rows,
          .max_windows = &largest_of_windows,
          .sum_rows = &scaled_sum_of_rows,
          .sum_dense = &scaled_sum_of_dense_rows,
          .sum_dense_i8 = &scaled_sum_of_dense_i8_rows,
          .softmax = &softmax_row,
          .normalise = &normalise_row,
          .to_i8 = &quantise,
          .from_i8 = &dequantise,
          .round_f16 = &each<op_round_f16>,
          .to_bf16 = &narrow_to_bf16,
          .from_bf16 = &widen_bf16,
          .from_sums = &scaled_sums,
          .max_rows_i8 = &largest_of_i8_rows,
          .mean_f32 = &mean_of_f32,
          .mean_i8 = &mean_of_i8,
          .mean_bf16 = &mean_of_bf16};
}

}  // namespace
}  // namespace foretune::graph
