// The template of Winograd's transforms, under the rules of micro_kernel_inl.h.
// Thread safety: free functions.
#pragma once

#include "foretune/kernels/internal/micro_kernel_inl.h"
#include "foretune/kernels/winograd_kernel.h"

namespace foretune {
namespace {

// The matrices B^T, G and A^T times a line of a tile. The interpolation points are 0, 1, -1, for
// tiles of 4 x 4 also 2 and -2, and infinity.
template <class Isa, int kPoints>
struct WinogradLines {
  using Vector = typename Isa::Vector;
  static constexpr int kSize = kPoints + 2;
  static constexpr std::size_t kTile = std::size_t{kSize};
  static constexpr std::size_t kOutputs = std::size_t{kPoints};
  using Line = Vector[kTile];           // NOLINT(modernize-avoid-c-arrays)
  using FilterLine = Vector[3];         // NOLINT(modernize-avoid-c-arrays)
  using OutputLine = Vector[kOutputs];  // NOLINT(modernize-avoid-c-arrays)

  // Returns factor * a + b.
  FORETUNE_KERNEL_INLINE static Vector plus(float factor, Vector a, Vector b) {
    return Isa::fma(Isa::broadcast(&factor), a, b);
  }
  FORETUNE_KERNEL_INLINE static Vector times(float factor, Vector a) {
    return Isa::multiply(Isa::broadcast(&factor), a);
  }

  FORETUNE_KERNEL_INLINE static void input(const Line& d, Line& out) {
    if constexpr (kPoints == 2) {
      out[0] = d[0] - d[2];
      out[1] = d[1] + d[2];
      out[2] = d[2] - d[1];
      out[3] = d[1] - d[3];
    } else {
      const Vector even = plus(-4, d[2], d[4]);
      const Vector odd = plus(-4, d[1], d[3]);
      const Vector even_near = d[4] - d[2];
      const Vector odd_near = d[3] - d[1];
      out[0] = plus(4, d[0], plus(-5, d[2], d[4]));
      out[1] = even + odd;
      out[2] = even - odd;
      out[3] = plus(2, odd_near, even_near);
      out[4] = plus(-2, odd_near, even_near);
      out[5] = plus(4, d[1], plus(-5, d[3], d[5]));
    }
  }

  FORETUNE_KERNEL_INLINE static void weights(const FilterLine& w, Line& out) {
    if constexpr (kPoints == 2) {
      const Vector outer = w[0] + w[2];
      out[0] = w[0];
      out[1] = times(0.5F, outer + w[1]);
      out[2] = times(0.5F, outer - w[1]);
      out[3] = w[2];
    } else {
      const Vector outer = w[0] + w[2];
      const Vector far = plus(4, w[2], w[0]);
      out[0] = times(0.25F, w[0]);
      out[1] = times(-1.0F / 6, outer + w[1]);
      out[2] = times(-1.0F / 6, outer - w[1]);
      out[3] = times(1.0F / 24, plus(2, w[1], far));
      out[4] = times(1.0F / 24, plus(-2, w[1], far));
      out[5] = w[2];
    }
  }

  FORETUNE_KERNEL_INLINE static void output(const Line& m, OutputLine& out) {
    if constexpr (kPoints == 2) {
      out[0] = m[0] + m[1] + m[2];
      out[1] = m[1] - m[2] - m[3];
    } else {
      const Vector sum = m[1] + m[2];
      const Vector difference = m[1] - m[2];
      const Vector far_sum = m[3] + m[4];
      const Vector far_difference = m[3] - m[4];
      out[0] = m[0] + sum + far_sum;
      out[1] = plus(2, far_difference, difference);
      out[2] = plus(4, far_sum, sum);
      out[3] = plus(8, far_difference, difference) + m[5];
    }
  }
};

template <class Isa, int kPoints>
struct Winograd {
  using Lines = WinogradLines<Isa, kPoints>;
  using Vector = typename Isa::Vector;
  using Mask = typename Isa::Mask;
  static constexpr int kSize = Lines::kSize;

  template <bool kPart>
  FORETUNE_KERNEL_INLINE static Vector load(const float* from, Mask mask) {
    return kPart ? Isa::load_part(from, mask) : Isa::load(from);
  }
  template <bool kPart>
  FORETUNE_KERNEL_INLINE static void store(float* to, Mask mask, Vector value) {
    if constexpr (kPart) {
      Isa::store_part(to, mask, value);
    } else {
      Isa::store(to, value);
    }
  }

  // Calls vector(part, channel, mask) for each vector of channels; part is true for one not full.
  template <class Visit>
  FORETUNE_KERNEL_INLINE static void for_each_vector(std::ptrdiff_t channels, const Visit& visit) {
    std::ptrdiff_t channel = 0;
    for (; channel + Isa::kLanes <= channels; channel += Isa::kLanes) {
      visit.template operator()<false>(channel, Isa::mask(Isa::kLanes));
    }
    if (channel < channels) {
      visit.template operator()<true>(channel, Isa::mask(static_cast<int>(channels - channel)));
    }
  }

  // Transforms the columns of a matrix of kRows x kRows points, then the rows of the result.
  template <bool kPart, int kRows, class Transform>
  FORETUNE_KERNEL_INLINE static void transform(const float* const* points, std::ptrdiff_t channel,
                                               Mask mask, float* to, std::ptrdiff_t step,
                                               const Transform& line) {
    constexpr std::size_t kFrom = std::size_t{kRows};
    Vector columns[std::size_t{kSize}][kFrom];  // NOLINT(*-avoid-c-arrays)
    FORETUNE_UNROLL
    for (int j = 0; j < kRows; ++j) {
      Vector from[kFrom];  // NOLINT(*-avoid-c-arrays)
      FORETUNE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        from[i] = load<kPart>(points[i * kRows + j] + channel, mask);
      }
      typename Lines::Line out;
      line(from, out);
      FORETUNE_UNROLL
      for (int i = 0; i < kSize; ++i) {
        columns[i][j] = out[i];
      }
    }
    FORETUNE_UNROLL
    for (int i = 0; i < kSize; ++i) {
      typename Lines::Line out;
      line(columns[i], out);
      FORETUNE_UNROLL
      for (int j = 0; j < kSize; ++j) {
        store<kPart>(to + (i * kSize + j) * step + channel, mask, out[j]);
      }
    }
  }

  static void input(const float* const* points, std::ptrdiff_t channels, float* to,
                    std::ptrdiff_t step) {
    for_each_vector(channels, [&]<bool kPart>(std::ptrdiff_t channel, Mask mask) {
      transform<kPart, kSize>(points, channel, mask, to, step,
                              [](const auto& from, auto& out)
                                  FORETUNE_KERNEL_INLINE { Lines::input(from, out); });
    });
  }

  static void weights(const float* const* points, std::ptrdiff_t channels, float* to,
                      std::ptrdiff_t step) {
    for_each_vector(channels, [&]<bool kPart>(std::ptrdiff_t channel, Mask mask) {
      transform<kPart, 3>(points, channel, mask, to, step,
                          [](const auto& from, auto& out)
                              FORETUNE_KERNEL_INLINE { Lines::weights(from, out); });
    });
  }

  template <bool kPart>
  FORETUNE_KERNEL_INLINE static void output_vector(const WinogradOutput& tile,
                                                   std::ptrdiff_t channel, Mask mask) {
    Vector columns[std::size_t{kPoints}][std::size_t{kSize}];  // NOLINT(*-avoid-c-arrays)
    FORETUNE_UNROLL
    for (int j = 0; j < kSize; ++j) {
      typename Lines::Line from;
      FORETUNE_UNROLL
      for (int i = 0; i < kSize; ++i) {
        from[i] = load<kPart>(tile.from + (i * kSize + j) * tile.step + channel, mask);
      }
      typename Lines::OutputLine out;
      Lines::output(from, out);
      FORETUNE_UNROLL
      for (int i = 0; i < kPoints; ++i) {
        columns[i][j] = out[i];
      }
    }
    const Vector floor = Isa::broadcast(&tile.floor);
    const Vector bias = tile.bias == nullptr ? Isa::zero() : load<kPart>(tile.bias + channel, mask);
    FORETUNE_UNROLL
    for (int i = 0; i < kPoints; ++i) {
      if (i >= tile.rows) {
        break;
      }
      typename Lines::OutputLine out;
      Lines::output(columns[i], out);
      FORETUNE_UNROLL
      for (int j = 0; j < kPoints; ++j) {
        if (j < tile.columns) {
          const std::ptrdiff_t place = i * tile.row_step + j * tile.point_step + channel;
          Vector value = Isa::add(out[j], bias);
          if (tile.addend != nullptr) {
            value = Isa::add(value, load<kPart>(tile.addend + place, mask));
          }
          store<kPart>(tile.output + place, mask, Isa::at_least(floor, value));
        }
      }
    }
  }

  static void output(const WinogradOutput& tile) {
    for_each_vector(tile.channels, [&]<bool kPart>(std::ptrdiff_t channel, Mask mask) {
      output_vector<kPart>(tile, channel, mask);
    });
  }

  static constexpr WinogradKernels kKernels{
      .input = &input, .weights = &weights, .output = &output};
};

template <class Isa>
const WinogradKernels* winograd_kernels_of(bool large) {
  return large ? &Winograd<Isa, 4>::kKernels : &Winograd<Isa, 2>::kKernels;
}

}  // namespace
}  // namespace foretune
