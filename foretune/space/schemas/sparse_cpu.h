// A config of the sparse-cpu family as a struct. The schema is named "sparse-cpu", and its words
// stand in this order:
//
//   isa        generic, avx2, avx512: which kernels
//   format     csr, or sell: SELL-C-sigma, which is packed before the first run
//   vector     what lies in a vector: columns of the dense operands (spmm, sddmm), the entries of a
//              row, the rows of a slice (sell), or none
//   vectors    spmm: vectors of columns in a register block, 1 to 8. The columns are cut into
//              blocks of nearly equal numbers of vectors, up to this
//   unroll     non-zeros that are summed apart: 1, 2, 4 (spmm, spmv); slices' vectors of rows at
//              once (sell); non-zeros that share loads (sddmm: 1, 2, 4, 8)
//   group      spmm: rows that are summed side by side, for short rows: 1, 2, 4
//   row_tile   spmm: rows that pass all blocks of columns before the next rows begin; the loop over
//              blocks of columns is the outermost one where the tile covers the matrix
//   height     sell: rows of a slice, C; else 1
//   window     sell: rows that are sorted by their lengths together, sigma; else 1
//   threads    how many share the work
//   partition  what each of them gets: as many rows, as many non_zeros, a share of the columns
//              (spmm), or chunks of rows as they come (dynamic); rows when there is one thread
//   chunk      rows of a dynamic chunk; else 1
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"
#include "foretune/space/config.h"

namespace foretune {

// Words of configs: never renumber.
enum class SparseFormat : std::uint8_t { kCsr = 0, kSell = 1 };
enum class SparseVector : std::uint8_t { kColumns = 0, kEntries = 1, kRows = 2, kNone = 3 };
enum class SparsePartition : std::uint8_t { kRows = 0, kNonZeros = 1, kColumns = 2, kDynamic = 3 };

// Positions of the words.
enum class SparseCpuField : std::uint8_t {
  kIsa,
  kFormat,
  kVector,
  kVectors,
  kUnroll,
  kGroup,
  kRowTile,
  kHeight,
  kWindow,
  kThreads,
  kPartition,
  kChunk,
};
inline constexpr std::size_t kSparseCpuWords = 12;

struct SparseCpuConfig {
  CpuIsa isa = CpuIsa::kGeneric;
  SparseFormat format = SparseFormat::kCsr;
  SparseVector vector = SparseVector::kColumns;
  std::int32_t vectors = 1;
  std::int32_t unroll = 1;
  std::int32_t group = 1;
  std::int32_t row_tile = 1;
  std::int32_t height = 1;
  std::int32_t window = 1;
  std::int32_t threads = 1;
  SparsePartition partition = SparsePartition::kRows;
  std::int32_t chunk = 1;

  // Errors: kMismatch for a config of another schema, kInvalidArgument for values that no kernel
  // understands.
  static Result<SparseCpuConfig> from(const Config& config);
  [[nodiscard]] Config to_config() const;
  bool operator==(const SparseCpuConfig&) const = default;
};

const ConfigSchema& sparse_cpu_schema();

}  // namespace foretune
