// Transposing a panel in registers, included once by each instruction set's file, which passes its
// vector operations as `Isa`. As in micro_kernel_inl.h, everything is in an unnamed namespace and
// calls nothing of the standard library.
// Thread safety: free functions.
#pragma once

#include <cstddef>

namespace foretune {
namespace {

// Tiles of lanes x lanes: a tile takes whole cache lines of its rows, each once, so that rows whose
// distance is a power of two do not push each other out of the L1 cache before they are used up.
// `Isa` has
//   Vector load_quads(const float* const* rows)  the four floats of every fourth row, one after
//                                                the other
//   Vector load_quads(const float* const* rows, int count)  the first `count` of them, then zeros;
//                                                           reads nothing else
//   void transpose_quads(Vector (&v)[4])         4 x 4 within each quad of lanes
template <class Isa>
struct PanelTranspose {
  using Vector = typename Isa::Vector;
  static constexpr int kLanes = Isa::kLanes;
  static constexpr int kQuads = kLanes / 4;
  static constexpr std::size_t kSide = std::size_t{kLanes};  // of arrays

  // rows[r] + 0 to depth - 1 are column r of the result, whose row q goes to packed + q * width.
  template <bool kWhole>
  __attribute__((always_inline)) static void tile(const float* const* rows, std::ptrdiff_t width,
                                                  int columns, int depth, float* packed) {
    const auto mask = Isa::mask(columns);
    _Pragma("GCC unroll 4") for (int quad = 0; quad < kQuads; ++quad) {
      const int here = depth - 4 * quad;
      if (!kWhole && here <= 0) {
        return;
      }
      Vector v[4];                      // NOLINT(*-avoid-c-arrays)
      const float* from[4][kSide / 4];  // NOLINT(*-avoid-c-arrays)
      _Pragma("GCC unroll 4") for (int j = 0; j < 4; ++j) {
        _Pragma("GCC unroll 4") for (int lane = 0; lane < kQuads; ++lane) {
          from[j][lane] = rows[4 * lane + j] + 4 * quad;
        }
        v[j] = kWhole || here >= 4 ? Isa::load_quads(from[j]) : Isa::load_quads(from[j], here);
      }
      Isa::transpose_quads(v);
      _Pragma("GCC unroll 4") for (int q = 0; q < 4; ++q) {
        float* const to = packed + (4 * quad + q) * width;
        if constexpr (kWhole) {
          Isa::store(to, v[q]);
        } else if (q < here) {
          Isa::store_part(to, mask, v[q]);
        }
      }
    }
  }

  static void run(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t count,
                  std::ptrdiff_t k, std::ptrdiff_t width, float* packed) {
    alignas(64) static constexpr float kZeros[kSide] = {};  // NOLINT(*-avoid-c-arrays)
    const float* rows[kSide];                               // NOLINT(*-avoid-c-arrays)
    for (std::ptrdiff_t i = 0; i < width; i += kLanes) {
      const std::ptrdiff_t high = count - i;
      const int columns = static_cast<int>(width - i < kLanes ? width - i : kLanes);
      const float* const base = from + i * from_stride;
      for (std::ptrdiff_t p = 0; p < k; p += kLanes) {
        _Pragma("GCC unroll 16") for (int r = 0; r < kLanes; ++r) {
          rows[r] = r < high ? base + r * from_stride + p : kZeros;
        }
        if (high >= kLanes && p + kLanes <= k) {
          tile<true>(rows, width, kLanes, kLanes, packed + p * width + i);
        } else {
          const int depth = static_cast<int>(k - p < kLanes ? k - p : kLanes);
          tile<false>(rows, width, columns, depth, packed + p * width + i);
        }
      }
    }
  }
};

}  // namespace
}  // namespace foretune
