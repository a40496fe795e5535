// The one micro-kernel template, included once by each instruction set's file, which passes its
// vector operations as `Isa`. Everything is in an unnamed namespace and calls nothing of the
// standard library: an inline function compiled here with wide instructions must never be the copy
// that the linker keeps for the rest of the program.
// Thread safety: free functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/kernels/internal/dot_kernel_inl.h"
#include "foretune/kernels/internal/kernel_macros.h"
#include "foretune/kernels/micro_kernel.h"

namespace foretune {
namespace {

template <class Isa, int kRows, int kVectors, bool kByColumns, bool kTail, KernelLoop kLoop>
struct Block {
  using Vector = typename Isa::Vector;
  using Mask = typename Isa::Mask;
  using Sums =
      Vector[std::size_t{kRows}][std::size_t{kVectors}];  // NOLINT(modernize-avoid-c-arrays)

  FORETUNE_KERNEL_INLINE static Vector load(const float* row, int vector, Mask mask) {
    return kTail && vector == kVectors - 1 ? Isa::load_part(row + vector * Isa::kLanes, mask)
                                           : Isa::load(row + vector * Isa::kLanes);
  }

  FORETUNE_KERNEL_INLINE static void store(float* row, int vector, Mask mask, Vector value) {
    if (kTail && vector == kVectors - 1) {
      Isa::store_part(row + vector * Isa::kLanes, mask, value);
    } else {
      Isa::store(row + vector * Isa::kLanes, value);
    }
  }

  // Where A is stored by rows, one pointer serves three rows: an address can hold a pointer plus
  // once or twice the stride, and there are not enough registers for one pointer per row.
  static constexpr int kRowsOfPointer = kByColumns ? kRows : 3;
  static constexpr int kPointers = (kRows + kRowsOfPointer - 1) / kRowsOfPointer;
  using Pointers = const float * [std::size_t{kPointers}];  // NOLINT(modernize-avoid-c-arrays)

  // Returns the address of the row's element, `ahead` columns further.
  FORETUNE_KERNEL_INLINE static const float* element(const Pointers& a, std::ptrdiff_t a_stride,
                                                     int row, int ahead) {
    const float* const first = a[row / kRowsOfPointer];
    return kByColumns ? first + row + ahead * a_stride
                      : first + (row % kRowsOfPointer) * a_stride + ahead;
  }

  FORETUNE_KERNEL_INLINE static void advance(Pointers& a, std::ptrdiff_t a_step) {
    FORETUNE_UNROLL
    for (int i = 0; i < kPointers; ++i) {
      a[i] += a_step;
      // Hides from the compiler that all pointers move alike; it would keep their distances
      // instead.
      asm("" : "+r"(a[i]));
    }
  }

  // A multiply-add takes four cycles, and two begin in each. An unrolled loop of fewer than eight
  // sums therefore keeps several sets of sums, one for each of the steps in turn.
  static constexpr int kSets = kRows * kVectors <= 2 ? 4 : kRows * kVectors < 8 ? 2 : 1;

  FORETUNE_KERNEL_INLINE static void add(Sums& sums, const Sums& others) {
    FORETUNE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        sums[i][j] = Isa::add(sums[i][j], others[i][j]);
      }
    }
  }

  // Adds an element of A times a row of B. A factor that only one vector multiplies is an operand
  // of the multiplication itself where the instruction set has that.
  template <class Row>
  FORETUNE_KERNEL_INLINE static void add_row(const float* from, const Row& row, Row& sums) {
    if constexpr (kLoop == KernelLoop::kTaps && kVectors == 1 && Isa::kMath == KernelMath::kF32) {
      Isa::accumulate_times(sums[0], row[0], from);
    } else {
      const Vector factor = Isa::broadcast(from);
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        Isa::accumulate(sums[j], factor, row[j]);
      }
    }
  }

  // Multiplies one column of A by one row of B.
  FORETUNE_KERNEL_INLINE static void step(const Pointers& a, std::ptrdiff_t a_stride, int ahead,
                                          const float* b, Mask mask, Sums& sums) {
    if constexpr (kVectors <= kRows) {
      Vector row[std::size_t{kVectors}];  // NOLINT(modernize-avoid-c-arrays)
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        row[j] = load(b, j, mask);
      }
      FORETUNE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        add_row(element(a, a_stride, i, ahead), row, sums[i]);
      }
    } else {
      Vector factors[std::size_t{kRows}];  // NOLINT(modernize-avoid-c-arrays)
      FORETUNE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        factors[i] = Isa::broadcast(element(a, a_stride, i, ahead));
      }
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        const Vector row = load(b, j, mask);
        FORETUNE_UNROLL
        for (int i = 0; i < kRows; ++i) {
          Isa::accumulate(sums[i][j], factors[i], row);
        }
      }
    }
  }

  // As step(), for the rows of A that exist.
  FORETUNE_KERNEL_INLINE static void step_of_rows(const Pointers& a, std::ptrdiff_t a_stride,
                                                  std::uint32_t rows, const float* b, Mask mask,
                                                  Sums& sums) {
    Vector row[std::size_t{kVectors}];  // NOLINT(modernize-avoid-c-arrays)
    FORETUNE_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      row[j] = load(b, j, mask);
    }
    FORETUNE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      if ((rows >> static_cast<unsigned>(i) & 1U) != 0) {
        add_row(element(a, a_stride, i, 0), row, sums[i]);
      }
    }
  }

  FORETUNE_KERNEL_INLINE static void begin_sums(const float* row, Mask mask, Sums& sums) {
    FORETUNE_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const Vector first = row == nullptr ? Isa::zero() : load(row, j, mask);
      FORETUNE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        sums[i][j] = first;
      }
    }
  }

  FORETUNE_KERNEL_INLINE static void multiply(const MicroKernelCall& call, Mask mask, Sums& sums) {
    if constexpr (Isa::kMath == KernelMath::kI8Quads) {
      begin_sums(call.b, mask, sums);
    } else {
      begin_sums(kLoop == KernelLoop::kTaps ? call.bias : nullptr, mask, sums);
    }
    const float* b = call.b;
    if constexpr (Isa::kMath == KernelMath::kI8Quads) {
      b += call.b_stride;
    }
    if constexpr (kLoop == KernelLoop::kTaps) {
      for (int tap = 0; tap < call.taps; ++tap) {
        if (call.b_offsets != nullptr) {
          b = call.b + call.b_offsets[tap];
        }
        const float* const a = call.a + call.a_offsets[tap];
        const std::uint32_t rows = call.tap_rows == nullptr ? kAllRows : call.tap_rows[tap];
        b = kByColumns || rows == kAllRows ? multiply_place(call, a, b, mask, sums)
                                           : multiply_rows(call, a, rows, b, mask, sums);
      }
    } else {
      multiply_place(call, call.a, b, mask, sums);
    }
  }

  static constexpr std::uint32_t kAllRows = (1U << static_cast<unsigned>(kRows)) - 1U;

  FORETUNE_KERNEL_INLINE static void begin_pointers(const MicroKernelCall& call, const float* first,
                                                    Pointers& a) {
    FORETUNE_UNROLL
    for (int i = 0; i < kPointers; ++i) {
      a[i] = first + i * kRowsOfPointer * call.a_stride;
    }
  }

  // As multiply_place(), for the rows of A that exist.
  FORETUNE_KERNEL_INLINE static const float* multiply_rows(const MicroKernelCall& call,
                                                           const float* first, std::uint32_t rows,
                                                           const float* b, Mask mask, Sums& sums) {
    if (rows == 0) {
      return b + call.k * call.b_stride;
    }
    Pointers a;
    begin_pointers(call, first, a);
    for (std::ptrdiff_t steps = call.k; steps > 0; --steps) {
      step_of_rows(a, call.a_stride, rows, b, mask, sums);
      advance(a, 1);
      b += call.b_stride;
    }
    return b;
  }

  // Adds the product of the A that begins at `first` and the next rows of B; returns the row of B
  // behind them.
  FORETUNE_KERNEL_INLINE static const float* multiply_place(const MicroKernelCall& call,
                                                            const float* first, const float* b,
                                                            Mask mask, Sums& sums) {
    Pointers a;
    begin_pointers(call, first, a);
    const std::ptrdiff_t a_step = kByColumns ? call.a_stride : 1;
    std::ptrdiff_t steps = call.k;
    if constexpr (kLoop == KernelLoop::kUnrolled || kLoop == KernelLoop::kTaps) {
      Sums others[std::size_t{kSets}] = {};  // NOLINT(modernize-avoid-c-arrays)
      for (; steps >= 4; steps -= 4) {
        FORETUNE_UNROLL
        for (int u = 0; u < 4; ++u) {
          step(a, call.a_stride, u, b, mask, u % kSets == 0 ? sums : others[u % kSets]);
          b += call.b_stride;
        }
        advance(a, 4 * a_step);
      }
      FORETUNE_UNROLL
      for (int set = 1; set < kSets; ++set) {
        add(sums, others[set]);
      }
    }
    const std::ptrdiff_t ahead = call.rows_ahead * call.b_stride;
    for (; steps > 0; --steps) {
      if constexpr (kLoop == KernelLoop::kPrefetching) {
        // A prefetch never faults, so the rows behind the last one need no special case.
        FORETUNE_UNROLL
        for (int j = 0; j < kVectors; ++j) {
          __builtin_prefetch(b + ahead + j * Isa::kLanes, 0, 3);
        }
      }
      step(a, call.a_stride, 0, b, mask, sums);
      advance(a, a_step);
      b += call.b_stride;
    }
    return b;
  }

  FORETUNE_KERNEL_INLINE static void prefetch_c(const MicroKernelCall& call) {
    constexpr int kLineFloats = 16;
    FORETUNE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float* row = call.c + i * call.c_stride;
      FORETUNE_UNROLL
      for (int at = 0; at < kVectors * Isa::kLanes; at += kLineFloats) {
        __builtin_prefetch(row + at, 1, 3);
      }
    }
  }

  template <bool kAdds, bool kFloors>
  FORETUNE_KERNEL_INLINE static void store_sums(const MicroKernelCall& call, Mask mask,
                                                const Sums& sums) {
    const Vector floor = kFloors ? Isa::broadcast(&call.floor) : Isa::zero();
    FORETUNE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float* in = kAdds ? call.c_in + i * call.c_in_stride : nullptr;
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        Vector value = sums[i][j];
        if constexpr (kAdds) {
          value = Isa::add(load(in, j, mask), value);
        }
        if constexpr (kFloors) {
          value = Isa::at_least(floor, value);
        }
        store(call.c + i * call.c_stride, j, mask, value);
      }
    }
  }
};

// Returns true for words whose sums are rounded to a narrower type in registers.
template <class Isa>
constexpr bool can_round() {
  return requires { Isa::kRoundsTo; };
}

FORETUNE_KERNEL_INLINE inline bool has_floor(const MicroKernelCall& call) {
  return call.floor != -__builtin_inff();
}

// Computes C = A * B, plus C_in where beta is not 0.
template <class Isa, int kRows, int kVectors, bool kByColumns, bool kTail, KernelLoop kLoop>
__attribute__((noinline)) void compute_block(const MicroKernelCall& call, typename Isa::Mask mask) {
  using Registers = Block<Isa, kRows, kVectors, kByColumns, kTail, kLoop>;
  if (call.prefetch_c) {
    Registers::prefetch_c(call);
  }
  typename Registers::Sums sums;
  Registers::multiply(call, mask, sums);
  if constexpr (kLoop == KernelLoop::kTaps && can_round<Isa>()) {
    if (call.rounding != nullptr) {
      FORETUNE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        if (call.beta != 0.0F) {
          FORETUNE_UNROLL
          for (int j = 0; j < kVectors; ++j) {
            sums[i][j] =
                Isa::add(Registers::load(call.c_in + i * call.c_in_stride, j, mask), sums[i][j]);
          }
        }
        Isa::template store_rounded<kVectors, kTail>(*call.rounding, i, sums[i], mask);
      }
      return;
    }
  }
  if constexpr (kLoop == KernelLoop::kTaps && Isa::kMath == KernelMath::kF32) {
    if (has_floor(call)) {
      if (call.beta == 0.0F) {
        Registers::template store_sums<false, true>(call, mask, sums);
      } else {
        Registers::template store_sums<true, true>(call, mask, sums);
      }
      return;
    }
  }
  if (call.beta == 0.0F) {
    Registers::template store_sums<false, false>(call, mask, sums);
  } else {
    Registers::template store_sums<true, false>(call, mask, sums);
  }
}

// Where a block begins, from the first one.
struct BlockPlace {
  std::ptrdiff_t a = 0;
  std::ptrdiff_t c = 0;
};
FORETUNE_KERNEL_INLINE inline BlockPlace block_place(const MicroKernelCall& call,
                                                     std::ptrdiff_t block) {
  if (call.row_blocks == 0) {
    return {block * call.a_block, block * call.c_block};
  }
  const std::ptrdiff_t row = block / call.row_blocks;
  const std::ptrdiff_t column = block % call.row_blocks;
  return {row * call.a_row + column * call.a_block, row * call.c_row + column * call.c_block};
}

// Computes the blocks of a kernel with taps.
template <class Isa, int kRows, int kVectors, bool kByColumns, bool kTail>
void tap_kernel(const MicroKernelCall& call) {
  const auto mask = Isa::mask(kTail ? call.last_columns : Isa::kLanes);
  constexpr auto kCompute =
      &compute_block<Isa, kRows, kVectors, kByColumns, kTail, KernelLoop::kTaps>;
  if (call.blocks == 1) {
    kCompute(call, mask);
    return;
  }
  MicroKernelCall own = call;
  for (std::ptrdiff_t block = 0; block < call.blocks; ++block) {
    const BlockPlace place = block_place(call, block);
    own.a = call.a + place.a;
    if constexpr (can_round<Isa>()) {
      if (call.rounding != nullptr) {
        OutputStageCall rounding = *call.rounding;
        const std::ptrdiff_t bytes = place.c * bytes_of(Isa::kRoundsTo);
        rounding.output = static_cast<std::byte*>(rounding.output) + bytes;
        rounding.addend = rounding.addend == nullptr
                              ? nullptr
                              : static_cast<const std::byte*>(rounding.addend) + bytes;
        own.rounding = &rounding;
        kCompute(own, mask);
        continue;
      }
    }
    own.c = call.c + place.c;
    own.c_in = call.c_in_stride == 0 ? call.c_in : call.c_in + place.c;
    kCompute(own, mask);
  }
}

// Scales a block for which A * B is computed already. Unrolled into each kernel, this would take
// longer to compile than all the rest, and few products scale.
template <class Isa>
__attribute__((noinline)) void compute_scaled(const MicroKernelCall& call,
                                              void (*compute)(const MicroKernelCall& call,
                                                              typename Isa::Mask mask),
                                              int rows, int vectors, int last_columns) {
  using Vector = typename Isa::Vector;
  constexpr int kMaxVectors = kernel_limits(Isa::kIsa).registers;
  alignas(64) float products[kMaxVectors * Isa::kLanes];  // NOLINT(*-avoid-c-arrays)
  MicroKernelCall plain = call;
  plain.c = products;
  plain.c_stride = std::ptrdiff_t{vectors} * Isa::kLanes;
  plain.beta = 0;
  plain.prefetch_c = false;
  compute(plain, Isa::mask(last_columns));
  const Vector alpha = Isa::broadcast(&call.alpha);
  const Vector beta = Isa::broadcast(&call.beta);
  const Vector floor = Isa::broadcast(&call.floor);
  const float* from = products;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < vectors; ++j) {
      const auto mask = Isa::mask(j == vectors - 1 ? last_columns : Isa::kLanes);
      Vector value = Isa::multiply(alpha, Isa::load_part(from, mask));
      if (call.beta != 0.0F) {
        const float* const in = call.c_in + i * call.c_in_stride + j * Isa::kLanes;
        value = Isa::fma(beta, Isa::load_part(in, mask), value);
      }
      Isa::store_part(call.c + i * call.c_stride + j * Isa::kLanes, mask,
                      Isa::at_least(floor, value));
      from += Isa::kLanes;
    }
  }
}

template <class Isa, int kRows, int kVectors, bool kByColumns, bool kTail, KernelLoop kLoop>
void micro_kernel(const MicroKernelCall& call) {
  // A tail is one column of blocks, or a thin matrix: it is not worth separate kernels for each
  // loop.
  constexpr bool kIsPlain = kTail && (kLoop == KernelLoop::kPrefetching || Isa::kTailsAreSlow);
  constexpr auto kCompute = &compute_block < Isa, kRows, kVectors, kByColumns, kTail,
                 kIsPlain ? KernelLoop::kPlain : kLoop > ;
  constexpr bool kIsExact = Isa::kMath == KernelMath::kI8Quads ||
                            Isa::kMath == KernelMath::kI16Pairs ||
                            Isa::kMath == KernelMath::kI8Shifted;
  const int last_columns = kTail ? call.last_columns : Isa::kLanes;
  // Scaling and the floor occupy the multiply-add units. They are left out where they change
  // nothing, which shows in products of little depth.
  if (kIsExact ||
      (call.alpha == 1.0F && !has_floor(call) && (call.beta == 0.0F || call.beta == 1.0F))) {
    kCompute(call, Isa::mask(last_columns));
  } else {
    compute_scaled<Isa>(call, kCompute, kRows, kVectors, last_columns);
  }
}

template <class Isa, int kRows, int kVectors, KernelLoop kLoop>
constexpr void add_loop(KernelSet& set) {
  auto& of_loop = set.table[static_cast<int>(kLoop)];
  of_loop[0][0][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, false, false, kLoop>;
  of_loop[1][0][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, true, false, kLoop>;
  of_loop[0][1][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, false, true, kLoop>;
  of_loop[1][1][kVectors - 1][kRows - 1] = &micro_kernel<Isa, kRows, kVectors, true, true, kLoop>;
}

template <class Isa, int kRows, int kVectors>
constexpr void add_shape(KernelSet& set) {
  if constexpr (Isa::kMath != KernelMath::kF32) {
    auto& panels = set.table[static_cast<int>(KernelLoop::kPlain)][1];
    panels[0][kVectors - 1][kRows - 1] =
        &micro_kernel<Isa, kRows, kVectors, true, false, KernelLoop::kPlain>;
    panels[1][kVectors - 1][kRows - 1] =
        &micro_kernel<Isa, kRows, kVectors, true, true, KernelLoop::kPlain>;
  } else {
    add_loop<Isa, kRows, kVectors, KernelLoop::kPlain>(set);
    add_loop<Isa, kRows, kVectors, KernelLoop::kUnrolled>(set);
    add_loop<Isa, kRows, kVectors, KernelLoop::kPrefetching>(set);
  }
}

template <class Isa, int kVectors, int kRows>
constexpr void add_rows(KernelSet& set) {
  if constexpr (kRows > 0) {
    add_shape<Isa, kRows, kVectors>(set);
    add_rows<Isa, kVectors, kRows - 1>(set);
  }
}

template <class Isa, int kVectors = 1>
constexpr void add_vectors(KernelSet& set) {
  if constexpr (kVectors <= kMaxKernelVectors) {
    add_rows<Isa, kVectors, max_kernel_rows(Isa::kIsa, kVectors)>(set);
    add_vectors<Isa, kVectors + 1>(set);
  }
}

template <class Isa, int kVectors, int kRows>
constexpr void add_tap_rows(TapKernelSet& set) {
  if constexpr (kRows > 0) {
    auto& table = set.table;
    table[0][0][kVectors - 1][kRows - 1] = &tap_kernel<Isa, kRows, kVectors, false, false>;
    table[0][1][kVectors - 1][kRows - 1] = &tap_kernel<Isa, kRows, kVectors, false, true>;
    if constexpr (Isa::kMath == KernelMath::kF32) {
      table[1][0][kVectors - 1][kRows - 1] = &tap_kernel<Isa, kRows, kVectors, true, false>;
      table[1][1][kVectors - 1][kRows - 1] = &tap_kernel<Isa, kRows, kVectors, true, true>;
    }
    add_tap_rows<Isa, kVectors, kRows - 1>(set);
  }
}

template <class Isa, int kVectors = 1>
constexpr void add_tap_vectors(TapKernelSet& set) {
  if constexpr (kVectors <= kMaxTapVectors) {
    add_tap_rows<Isa, kVectors, max_kernel_rows(Isa::kIsa, kVectors)>(set);
    add_tap_vectors<Isa, kVectors + 1>(set);
  }
}

template <class Isa>
constexpr TapKernelSet make_tap_kernel_set() {
  TapKernelSet set;
  set.lanes = Isa::kLanes;
  if constexpr (can_round<Isa>()) {
    set.rounds_to = Isa::kRoundsTo;
  }
  add_tap_vectors<Isa>(set);
  return set;
}

template <class Isa>
constexpr KernelSet make_kernel_set() {
  KernelSet set;
  set.isa = Isa::kIsa;
  set.math = Isa::kMath;
  static_assert(Isa::kLanes == kernel_limits(Isa::kIsa).lanes);
  set.lanes = Isa::kLanes;
  add_vectors<Isa>(set);
  if constexpr (Isa::kMath == KernelMath::kF32) {
    add_dot_kernels<Isa>(set);
  }
  return set;
}

}  // namespace
}  // namespace foretune
