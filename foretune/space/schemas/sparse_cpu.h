// A config of the sparse-cpu family as a struct. The schema is named "sparse-cpu", and its words
// stand in this order:
//
//   isa        generic, avx2, avx512: which kernels
//   format     csr; or, packed before the first run, sell: SELL-C-sigma, bcsr: blocks, and
//              diagonals: those of blocks of rows (spmv)
//   vector     what lies in a vector: columns of the dense operands (spmm, sddmm), the entries of a
//              row, the rows of a slice or of a block (sell, bcsr, diagonals), or none
//   vectors    spmm, mttkrp: vectors of columns in a register block, 1 to 8. The columns are cut
//              into blocks of nearly equal numbers of vectors, up to this
//   unroll     non-zeros that are summed apart: 1, 2, 4 (spmm and spmv of csr; blocks or
//              diagonals in spmv); slices' vectors of rows at once (sell); non-zeros that share
//              loads (sddmm: 1, 2, 4, 8)
//   group      spmm of csr: rows that are summed side by side, for short rows: 1, 2, 4
//   row_tile   spmm, mttkrp: rows that pass all blocks of columns before the next rows begin; the
//              loop over blocks of columns is the outermost one where the tile covers the matrix
//   height     sell: rows of a slice, C, which spmm sums side by side; bcsr, diagonals: rows of a
//              block; else 1
//   window     sell: rows that are sorted by their lengths together, sigma; else 1
//   threads    how many share the work
//   partition  what each thread gets: as many rows, as many non_zeros, a share of the columns
//              (spmm, mttkrp), or chunks of rows as they come (dynamic); rows for one thread
//   chunk      rows of a dynamic chunk; else 1
//   width      bcsr: columns of a block; else 1
//   gather     how a vector of x is filled where vectors lie along entries or the rows of a slice:
//              by the CPU's instruction, or by loads of single values, which some CPUs do faster
//   store      spmm, plus2, plus3: plain, or stream: past the caches, for results that do not fit
//              them
//   sums       spmm: where the sums of a row lie: in registers, some columns at a time, or in a
//              buffer, all columns at once (csr); vectors is then 1, and unroll the non-zeros that
//              are added at once
//   prefetch   buffered sums: non-zeros ahead whose row of B is fetched into the caches; 0: none
//
// gespmv and gespmm have the words of spmv and spmm. A tensor in csr has its rows as fibres (CSF).
// mmadd, plus2 and plus3 know threads, partition, chunk and store.
//
// Version 1 of the schema ends at chunk; the words after it had the values 1, instruction, plain,
// registers, 0.
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"
#include "foretune/space/config.h"

namespace foretune {

// Words of configs: never renumber.
enum class SparseFormat : std::uint8_t { kCsr = 0, kSell = 1, kBcsr = 2, kDiagonals = 3 };
enum class SparseVector : std::uint8_t { kColumns = 0, kEntries = 1, kRows = 2, kNone = 3 };
enum class SparsePartition : std::uint8_t { kRows = 0, kNonZeros = 1, kColumns = 2, kDynamic = 3 };
enum class SparseGather : std::uint8_t { kInstruction = 0, kLoads = 1 };
enum class SparseSums : std::uint8_t { kRegisters = 0, kBuffer = 1 };
enum class SparseStore : std::uint8_t { kPlain = 0, kStream = 1 };

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
  kWidth,
  kGather,
  kStore,
  kSums,
  kPrefetch,
};
inline constexpr std::size_t kSparseCpuWords = 17;

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
  std::int32_t width = 1;
  SparseGather gather = SparseGather::kInstruction;
  SparseStore store = SparseStore::kPlain;
  SparseSums sums = SparseSums::kRegisters;
  std::int32_t prefetch = 0;

  // Takes configs of version 1 as well. Errors: kMismatch for a config of another schema,
  // kInvalidArgument for values that no kernel understands.
  static Result<SparseCpuConfig> from(const Config& config);
  [[nodiscard]] Config to_config() const;
  bool operator==(const SparseCpuConfig&) const = default;
};

const ConfigSchema& sparse_cpu_schema();
// Version 1, which older files hold.
const ConfigSchema& sparse_cpu_schema_v1();

}  // namespace foretune
