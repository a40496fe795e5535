// Defines the kernels of convolutions in the matrix tiles of AMX: the sums of up to 16 points times
// 16 channels are a tile, to which one instruction adds the products of 16 words of each.
#include "foretune/kernels/kernels_isa.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include "foretune/kernels/internal/avx512_words_inl.h"

namespace foretune {
namespace {

// Four tiles hold sums. A and B have a tile of 16 words each, and one of the words left over.
constexpr int kSumTiles = 4;
constexpr int kATile = 4;
constexpr int kBTile = 5;
constexpr int kARest = 6;
constexpr int kBRest = 7;
constexpr int kTileWords = 16;  // of a row

// As the instruction ldtilecfg reads it.
struct TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};       // NOLINT(*-avoid-c-arrays)
  std::uint16_t bytes_of_row[16] = {};  // NOLINT(*-avoid-c-arrays)
  std::uint8_t rows[16] = {};           // NOLINT(*-avoid-c-arrays)
};
static_assert(sizeof(TileConfig) == 64);

// The rows of A and the words left over, as the tiles of this thread are configured; 0: not at all.
thread_local std::uint32_t configured = 0;

void configure(int rows, int rest) {
  const auto wanted = static_cast<std::uint32_t>(rows * kTileWords + rest);
  if (configured == wanted) {
    return;
  }
  TileConfig config;
  const auto set = [&](int tile, int tile_rows, int words) {
    config.rows[tile] = static_cast<std::uint8_t>(tile_rows);
    config.bytes_of_row[tile] = static_cast<std::uint16_t>(words * 4);
  };
  for (int tile = 0; tile < kSumTiles; ++tile) {
    set(tile, rows, kTileWords);
  }
  set(kATile, rows, kTileWords);
  set(kBTile, kTileWords, kTileWords);
  if (rest > 0) {
    set(kARest, rows, rest);
    set(kBRest, rest, kTileWords);
  }
  asm volatile("ldtilecfg %0" ::"m"(config) : "memory");
  configured = wanted;
}

// Written as assembler text, the instructions need no flag that would let the compiler use them
// elsewhere in this file. Strides are in floats.
template <int kTile>
FORETUNE_KERNEL_INLINE inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
FORETUNE_KERNEL_INLINE inline void load_tile(const float* from, std::ptrdiff_t stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kTile), "r"(from), "r"(stride * 4) : "memory");
}
template <int kTile>
FORETUNE_KERNEL_INLINE inline void store_tile(float* to, std::ptrdiff_t stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kTile), "r"(to), "r"(stride * 4) : "memory");
}

struct I8Tiles : Avx512Shifted {
  template <int kSum, int kA, int kB>
  FORETUNE_KERNEL_INLINE static void accumulate_tile() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
  }
};

struct Bf16Tiles : Avx512Bf16 {
  template <int kSum, int kA, int kB>
  FORETUNE_KERNEL_INLINE static void accumulate_tile() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
  }
};

// The sums of kBlocks neighbouring blocks, each of kVectors tiles.
template <class Words, int kVectors, int kBlocks>
struct TileSums {
  static constexpr std::ptrdiff_t kColumns = std::ptrdiff_t{kVectors} * kTileWords;

  template <int kIndex = 0>
  FORETUNE_KERNEL_INLINE static void clear() {
    if constexpr (kIndex < kBlocks * kVectors) {
      clear_tile<kIndex>();
      clear<kIndex + 1>();
    }
  }

  // Adds the products with the tile of B that is loaded, block by block.
  template <int kA, int kB, int kVector, int kBlock = 0>
  FORETUNE_KERNEL_INLINE static void add_blocks(const MicroKernelCall& call,
                                                const std::ptrdiff_t* blocks, const float* a) {
    if constexpr (kBlock < kBlocks) {
      // With one block, its A stays in the tile for all vectors.
      if constexpr (kBlocks > 1 || kVector == 0) {
        load_tile<kA>(a + blocks[kBlock], call.a_stride);
      }
      Words::template accumulate_tile<kBlock * kVectors + kVector, kA, kB>();
      add_blocks<kA, kB, kVector, kBlock + 1>(call, blocks, a);
    }
  }

  template <int kA, int kB, int kVector = 0>
  FORETUNE_KERNEL_INLINE static void add(const MicroKernelCall& call, const std::ptrdiff_t* blocks,
                                         const float* a, const float* b) {
    if constexpr (kVector < kVectors) {
      load_tile<kB>(b + kVector * kTileWords, call.b_stride);
      add_blocks<kA, kB, kVector>(call, blocks, a);
      add<kA, kB, kVector + 1>(call, blocks, a, b);
    }
  }

  template <int kIndex = 0>
  FORETUNE_KERNEL_INLINE static void store(float* to) {
    if constexpr (kIndex < kBlocks * kVectors) {
      store_tile<kIndex>(
          to + (kIndex / kVectors * kTileWords * kColumns) + kIndex % kVectors * kTileWords,
          kColumns);
      store<kIndex + 1>(to);
    }
  }

  // Writes the sums of the blocks that begin at `first` to `to`: [block][16 rows][columns].
  static void compute(const MicroKernelCall& call, std::ptrdiff_t first, float* to) {
    std::ptrdiff_t blocks[std::size_t{kBlocks}];  // NOLINT(*-avoid-c-arrays)
    FORETUNE_UNROLL
    for (int i = 0; i < kBlocks; ++i) {
      blocks[i] = block_place(call, first + i).a;
    }
    clear();
    const float* b = call.b;
    for (int tap = 0; tap < call.taps; ++tap) {
      if (call.b_offsets != nullptr) {
        b = call.b + call.b_offsets[tap];
      }
      const float* a = call.a + call.a_offsets[tap];
      std::ptrdiff_t words = call.k;
      for (; words >= kTileWords; words -= kTileWords) {
        add<kATile, kBTile>(call, blocks, a, b);
        a += kTileWords;
        b += kTileWords * call.b_stride;
      }
      if (words > 0) {
        add<kARest, kBRest>(call, blocks, a, b);
        b += words * call.b_stride;
      }
    }
    store(to);
  }
};

// Stores the rows of bytes that lie in a vector one behind the other. Bits of `columns` say, for
// each row, which exist.
template <int kVectors>
FORETUNE_KERNEL_INLINE inline void store_rows(__m512i bytes, std::int8_t* to, std::ptrdiff_t stride,
                                              const std::uint64_t* columns) {
  if constexpr (kVectors == 1) {
    const auto mask = [&](int row) { return static_cast<__mmask16>(columns[row]); };
    _mm_mask_storeu_epi8(to, mask(0), _mm512_maskz_extracti32x4_epi32(0xf, bytes, 0));
    _mm_mask_storeu_epi8(to + stride, mask(1), _mm512_maskz_extracti32x4_epi32(0xf, bytes, 1));
    _mm_mask_storeu_epi8(to + 2 * stride, mask(2), _mm512_maskz_extracti32x4_epi32(0xf, bytes, 2));
    _mm_mask_storeu_epi8(to + 3 * stride, mask(3), _mm512_maskz_extracti32x4_epi32(0xf, bytes, 3));
  } else if constexpr (kVectors == 2) {
    const auto mask = [&](int row) { return static_cast<__mmask32>(columns[row]); };
    _mm256_mask_storeu_epi8(to, mask(0), _mm512_maskz_extracti64x4_epi64(0xf, bytes, 0));
    _mm256_mask_storeu_epi8(to + stride, mask(1), _mm512_maskz_extracti64x4_epi64(0xf, bytes, 1));
  } else {
    _mm512_mask_storeu_epi8(to, columns[0], bytes);
  }
}

// Stores the sums of a block, to which it adds what they begin with.
template <class Words, int kVectors, bool kTail>
struct Finish {
  using Vector = typename Words::Vector;
  using Mask = typename Words::Mask;
  static constexpr int kLanes = Words::kLanes;

  FORETUNE_KERNEL_INLINE Finish(const MicroKernelCall& given, Mask tail)
      : call_(given), mask_(tail) {
    const bool has_row = call_.beta != 0.0F && call_.c_in_stride == 0;
    FORETUNE_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      start_[j] = call_.bias == nullptr ? Words::zero()
                                        : Words::load_part(call_.bias + j * kLanes, columns(j));
      if (has_row) {
        start_[j] = Words::add(Words::load_part(call_.c_in + j * kLanes, columns(j)), start_[j]);
      }
    }
  }

  FORETUNE_KERNEL_INLINE void block(std::ptrdiff_t number, int rows, const float* sums) const {
    const std::ptrdiff_t place = block_place(call_, number).c;
    if (call_.rounding == nullptr) {
      store(place, rows, sums);
    } else if constexpr (Words::kRoundsTo == OutputType::kI8) {
      round_to_bytes(place, rows, sums);
    } else {
      round_rows(place, rows, sums);
    }
  }

 private:
  [[nodiscard]] FORETUNE_KERNEL_INLINE Mask columns(int vector) const {
    return kTail && vector == kVectors - 1 ? mask_ : static_cast<Mask>(0xffff);
  }

  [[nodiscard]] FORETUNE_KERNEL_INLINE Vector sum(const float* sums, int row, int vector) const {
    return Words::add(start_[vector], Words::load(sums + (row * kVectors + vector) * kLanes));
  }

  FORETUNE_KERNEL_INLINE void store(std::ptrdiff_t place, int rows, const float* sums) const {
    const float* const in =
        call_.beta == 0.0F || call_.c_in_stride == 0 ? nullptr : call_.c_in + place;
    for (int row = 0; row < rows; ++row) {
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        Vector value = sum(sums, row, j);
        if (in != nullptr) {
          value = Words::add(
              Words::load_part(in + row * call_.c_in_stride + j * kLanes, columns(j)), value);
        }
        Words::store_part(call_.c + place + row * call_.c_stride + j * kLanes, columns(j), value);
      }
    }
  }

  FORETUNE_KERNEL_INLINE void round_rows(std::ptrdiff_t place, int rows, const float* sums) const {
    OutputStageCall stage = *call_.rounding;
    const std::ptrdiff_t bytes = place * bytes_of(Words::kRoundsTo);
    stage.output = static_cast<std::byte*>(stage.output) + bytes;
    stage.addend =
        stage.addend == nullptr ? nullptr : static_cast<const std::byte*>(stage.addend) + bytes;
    const float* const in =
        call_.beta == 0.0F || call_.c_in_stride == 0 ? nullptr : call_.c_in + place;
    for (int row = 0; row < rows; ++row) {
      Vector values[std::size_t{kVectors}];  // NOLINT(*-avoid-c-arrays)
      FORETUNE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        values[j] = sum(sums, row, j);
        if (in != nullptr) {
          values[j] = Words::add(
              Words::load_part(in + row * call_.c_in_stride + j * kLanes, columns(j)), values[j]);
        }
      }
      Words::template store_rounded<kVectors, kTail>(stage, row, values, mask_);
    }
  }

  // Rounds as many rows at once as are four vectors. The last ones may not all exist: their sums
  // are any numbers, and they are not stored.
  FORETUNE_KERNEL_INLINE void round_to_bytes(std::ptrdiff_t place, int rows,
                                             const float* sums) const {
    if (call_.beta != 0.0F && call_.c_in_stride != 0) {
      round_rows(place, rows, sums);
      return;
    }
    constexpr int kRows = kVectors <= 2 ? 4 / kVectors : 1;
    const OutputStageCall& stage = *call_.rounding;
    Vector scales[std::size_t{kVectors}];  // NOLINT(*-avoid-c-arrays)
    FORETUNE_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      scales[j] = Words::load_part(stage.scales + j * kLanes, columns(j));
    }
    const std::uint64_t all = (std::uint64_t{columns(kVectors - 1)} << (16 * (kVectors - 1))) |
                              ((std::uint64_t{1} << (16 * (kVectors - 1))) - 1);
    const std::ptrdiff_t stride = stage.output_stride;
    auto* to = static_cast<std::int8_t*>(stage.output) + place;
    const auto* addend =
        stage.addend == nullptr ? nullptr : static_cast<const std::int8_t*>(stage.addend) + place;
    const std::int32_t low = stage.relu ? stage.zero : -128;
    for (int row = 0; row < rows; row += kRows) {
      std::uint64_t exist[std::size_t{kRows}];  // NOLINT(*-avoid-c-arrays)
      __m512i rounded[4];                       // NOLINT(*-avoid-c-arrays)
      FORETUNE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        exist[i] = row + i < rows ? all : 0;
        FORETUNE_UNROLL
        for (int j = 0; j < kVectors; ++j) {
          __m512 scaled = scaled_sums(_mm512_castps_si512(sum(sums, row + i, j)), scales[j]);
          if (addend != nullptr) {
            scaled =
                _mm512_add_ps(scaled, scaled_bytes(static_cast<__mmask16>(exist[i] >> (16 * j)),
                                                   addend + i * stride + j * kLanes,
                                                   stage.addend_zero, stage.addend_scale));
          }
          rounded[i * kVectors + j] = rounded_to_i32(scaled);
        }
      }
      store_rows<kVectors>(bytes_of_integers < kVectors == 3 ? 3 : 4 > (rounded, stage.zero, low),
                           to, stride, exist);
      to += kRows * stride;
      addend = addend == nullptr ? nullptr : addend + kRows * stride;
    }
  }

  const MicroKernelCall& call_;
  Mask mask_;
  Vector start_[std::size_t{kVectors}];  // NOLINT(*-avoid-c-arrays)
};

template <class Words, int kVectors, bool kTail>
__attribute__((noinline)) void compute_blocks(const MicroKernelCall& call, int rows) {
  configure(rows, static_cast<int>(call.k % kTileWords));
  const Finish<Words, kVectors, kTail> finish(
      call, Words::mask(kTail ? call.last_columns : Words::kLanes));
  constexpr int kMost = kSumTiles / kVectors;
  constexpr std::ptrdiff_t kBlockSums = std::ptrdiff_t{kTileWords} * kTileWords * kVectors;
  // A product takes long, and does not wait for the stores of others: the sums of some blocks are
  // stored while those of the next are computed.
  alignas(64) float sums[2][std::size_t{kMost * kBlockSums}];  // NOLINT(*-avoid-c-arrays)
  std::ptrdiff_t stored = 0;
  std::ptrdiff_t waiting = 0;  // blocks of which the sums are computed, but not stored
  const auto store = [&](const float* from) {
    for (; waiting > 0; --waiting, ++stored, from += kBlockSums) {
      finish.block(stored, rows, from);
    }
  };
  int turn = 0;
  for (std::ptrdiff_t block = 0; block < call.blocks; turn ^= 1) {
    const std::ptrdiff_t left = call.blocks - block;
    std::ptrdiff_t count = 1;
    if (kMost >= 4 && left >= 4) {
      count = 4;
      TileSums<Words, kVectors, kMost>::compute(call, block, sums[turn]);
    } else if (kMost >= 2 && left >= 2) {
      count = 2;
      TileSums<Words, kVectors, kMost >= 2 ? 2 : 1>::compute(call, block, sums[turn]);
    } else {
      TileSums<Words, kVectors, 1>::compute(call, block, sums[turn]);
    }
    store(sums[turn ^ 1]);
    waiting = count;
    block += count;
  }
  store(sums[turn ^ 1]);
}

template <class Words, int kRows, int kVectors, bool kTail>
void tile_kernel(const MicroKernelCall& call) {
  compute_blocks<Words, kVectors, kTail>(call, kRows);
}

template <class Words, int kVectors, int kRows>
constexpr void add_tile_rows(TapKernelSet& set) {
  if constexpr (kRows > 0) {
    set.table[0][0][kVectors - 1][kRows - 1] = &tile_kernel<Words, kRows, kVectors, false>;
    set.table[0][1][kVectors - 1][kRows - 1] = &tile_kernel<Words, kRows, kVectors, true>;
    add_tile_rows<Words, kVectors, kRows - 1>(set);
  }
}

template <class Words>
constexpr TapKernelSet make_tile_kernel_set() {
  TapKernelSet set;
  set.lanes = Words::kLanes;
  set.rounds_to = Words::kRoundsTo;
  set.in_tiles = true;
  add_tile_rows<Words, 1, kMaxKernelRows>(set);
  add_tile_rows<Words, 2, kMaxKernelRows>(set);
  add_tile_rows<Words, 3, kMaxKernelRows>(set);
  add_tile_rows<Words, 4, kMaxKernelRows>(set);
  return set;
}

constexpr TapKernelSet kI8Kernels = make_tile_kernel_set<I8Tiles>();
constexpr TapKernelSet kBf16Kernels = make_tile_kernel_set<Bf16Tiles>();

}  // namespace

const TapKernelSet* avx512_tile_tap_kernel_set(KernelMath math) {
  return math == KernelMath::kI8Tiles     ? &kI8Kernels
         : math == KernelMath::kBf16Tiles ? &kBf16Kernels
                                          : nullptr;
}

void avx512_begin_tiles() { configured = 0; }

void avx512_end_tiles() {
  if (configured != 0) {
    asm volatile("tilerelease" ::: "memory");
    configured = 0;
  }
}

}  // namespace foretune

#else

namespace foretune {

const TapKernelSet* avx512_tile_tap_kernel_set(KernelMath /*math*/) { return nullptr; }
void avx512_begin_tiles() {}
void avx512_end_tiles() {}

}  // namespace foretune

#endif
