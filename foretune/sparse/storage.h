// Storages of a sparse matrix beside its canonical form (csr.h): how large each is, and packing it.
//
//   const StorageSize size = count_bcsr(matrix.pattern(), {4, 4}, pool);  // allocates no storage
//   FORETUNE_TRY(const Bcsr<float> blocks, pack_bcsr(matrix, {4, 4}, {pool, size_limit}));
//
// A storage that is larger than the limit is refused with its bytes. Zeros that a storage adds have
// the value 0 and a column of their row where the row has any, else column 0, so that kernels may
// multiply by them. The content does not depend on the number of threads. Thread safety: free
// functions; a pool runs one at a time. Cost: counting is O(rows + non-zeros), packing in addition
// O(stored values); scratch memory is 4 bytes a row, or for each thread 4 bytes a column of blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/sparse/array.h"
#include "foretune/sparse/csr.h"

namespace foretune::sparse {

struct StorageSize {
  std::uint64_t values = 0;       // stored values, with the zeros that are added
  std::uint64_t index_bytes = 0;  // everything else

  [[nodiscard]] std::uint64_t bytes(std::size_t value_bytes) const {
    return values * value_bytes + index_bytes;
  }
};

struct PackOptions {
  ThreadPool& pool;
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
};

// Errors: kUnsupported for a storage above the limit, with its bytes.
Status check_fits(std::string_view storage, std::uint64_t bytes, std::uint64_t max_bytes);

// By columns: `by_columns` is the transposed matrix.
template <class T>
struct Csc {
  Csr<T> by_columns;
};

// Row and column of each non-zero, row by row.
template <class T>
struct Coo {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Array<std::int32_t> row_of;
  Array<std::int32_t> column_of;
  Array<T> values;
};

// Only the rows that have non-zeros.
template <class T>
struct Dcsr {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Array<std::int32_t> row_of;  // of each stored row, rising
  Array<std::int64_t> starts;  // stored rows + 1
  Array<std::int32_t> column_of;
  Array<T> values;
};

struct BlockShape {
  std::int32_t rows = 1;     // 1 to 64
  std::int32_t columns = 1;  // 1 to 64
  bool operator==(const BlockShape&) const = default;
};

// Blocks with at least one non-zero, row of blocks by row of blocks, their columns rising. Blocks
// at the lower and the right edge reach beyond the matrix, with zeros.
template <class T>
struct Bcsr {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  BlockShape block;
  Array<std::int64_t> starts;     // rows of blocks + 1
  Array<std::int32_t> column_of;  // of each block, in blocks
  Array<T> values;                // of each block, row by row
};

// Diagonals of blocks of rows: element h of a block is in row h of its row of blocks, and in column
// column_of + h - (height - 1). Diagonals with at least one non-zero, their columns rising; those
// at the edges reach beyond the matrix, with zeros. A block of a banded matrix names few diagonals.
template <class T>
struct BlockDiagonals {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int32_t height = 1;        // 1 to 64
  Array<std::int64_t> starts;     // rows of blocks + 1
  Array<std::int32_t> column_of;  // of each diagonal's last element
  Array<T> values;                // of each diagonal, from its first row
};

// Every row with the same number of slots: slot s of row r at s * rows + r.
template <class T>
struct Ell {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t width = 0;  // slots of a row
  Array<std::int32_t> column_of;
  Array<T> values;
};

struct SliceShape {
  std::int32_t height = 1;  // rows of a slice, C; 1 to 256
  // Rows of a window within which rows are sorted by falling length; a multiple of the height. The
  // rows of a window of one slice keep their order, since sorting them would save nothing.
  std::int64_t window = 1;
  bool operator==(const SliceShape&) const = default;
};

// SELL-C-sigma: slices of rows of similar length, each as wide as its longest row. Slot s of the
// slice's row l is at starts[slice] + s * height + l.
template <class T>
struct Sell {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  SliceShape slice;
  Array<std::int64_t> starts;  // slices + 1, into column_of and values
  Array<std::int32_t> row_of;  // of each place of a slice; -1 after the last row
  Array<std::int32_t> column_of;
  Array<T> values;
};

// The first `ell.width` non-zeros of each row, and the rest of longer rows.
template <class T>
struct Hybrid {
  Ell<T> ell;
  Coo<T> rest;
};

StorageSize count_csr(const PatternView& pattern);
StorageSize count_csc(const PatternView& pattern);
StorageSize count_coo(const PatternView& pattern);
StorageSize count_dcsr(const PatternView& pattern);
StorageSize count_bcsr(const PatternView& pattern, BlockShape block, ThreadPool& pool);
StorageSize count_ell(const PatternView& pattern);
StorageSize count_sell(const PatternView& pattern, SliceShape slice);
StorageSize count_hybrid(const PatternView& pattern, std::int64_t width);
// Returns the width of a hybrid that a third of the rows fill: where a slot would be used by fewer
// rows, an entry of the rest takes less memory than the slot.
std::int64_t hybrid_width(const PatternView& pattern);

// Errors of all: kUnsupported above the limit, and where memory is lacking.
template <class T>
Result<Csc<T>> pack_csc(const Csr<T>& matrix, const PackOptions& options);
template <class T>
Result<Coo<T>> pack_coo(const Csr<T>& matrix, const PackOptions& options);
template <class T>
Result<Dcsr<T>> pack_dcsr(const Csr<T>& matrix, const PackOptions& options);
template <class T>
Result<Bcsr<T>> pack_bcsr(const Csr<T>& matrix, BlockShape block, const PackOptions& options);
// Scratch memory is that of a copy of the matrix. Errors in addition: kUnsupported for a matrix
// whose columns and height exceed 2^31.
template <class T>
Result<BlockDiagonals<T>> pack_block_diagonals(const Csr<T>& matrix, std::int32_t height,
                                               const PackOptions& options);
template <class T>
Result<Ell<T>> pack_ell(const Csr<T>& matrix, const PackOptions& options);
template <class T>
Result<Sell<T>> pack_sell(const Csr<T>& matrix, SliceShape slice, const PackOptions& options);
template <class T>
Result<Hybrid<T>> pack_hybrid(const Csr<T>& matrix, std::int64_t width, const PackOptions& options);

}  // namespace foretune::sparse
