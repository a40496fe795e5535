// Storages of blocks of non-zeros and of slices of rows: BCSR and SELL-C-sigma.
#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/sparse/internal/row_shares.h"
#include "foretune/sparse/internal/storage_bytes.h"
#include "foretune/sparse/storage.h"

namespace foretune::sparse {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Divides columns by the width of a block: a shift where the width is a power of two.
class BlockColumn {
 public:
  explicit BlockColumn(std::int32_t width)
      : width_(static_cast<std::uint32_t>(width)),
        shift_(static_cast<unsigned>(std::countr_zero(width_))),
        is_power_(std::has_single_bit(width_)) {}
  [[nodiscard]] std::uint32_t operator()(std::int32_t column) const {
    const auto value = static_cast<std::uint32_t>(column);
    return is_power_ ? value >> shift_ : value / width_;
  }

 private:
  std::uint32_t width_;
  unsigned shift_;
  bool is_power_;
};

// Fills counts[b + 1] with the blocks of each row of blocks b. Returns false where memory is
// lacking.
bool count_blocks(const PatternView& pattern, BlockShape block, const internal::RowShares& shares,
                  ThreadPool& pool, std::int64_t* counts) {
  const auto height = static_cast<std::size_t>(block.rows);
  const auto wide = static_cast<std::size_t>(ceil_div(pattern.columns, block.columns));
  const BlockColumn block_of(block.columns);
  std::atomic<bool> is_lacking = false;
  pool.run(shares.count(), [&](std::size_t share) {
    // The last row of blocks that had a block in each column.
    auto seen = Array<std::int32_t>::create(wide);
    if (!seen) {
      is_lacking = true;
      return;
    }
    std::fill_n(seen->data(), wide, -1);
    const auto [first, last] = shares.rows(share);
    for (std::size_t begin = first; begin < last; begin += height) {
      const std::size_t end = std::min(begin + height, last);
      const auto mark = static_cast<std::int32_t>(begin / height);
      std::int64_t count = 0;
      for (auto i = static_cast<std::size_t>(pattern.starts[begin]);
           i < static_cast<std::size_t>(pattern.starts[end]); ++i) {
        std::int32_t& last_seen = (*seen)[block_of(pattern.column_of[i])];
        count += last_seen != mark ? 1 : 0;
        last_seen = mark;
      }
      counts[begin / height + 1] = count;
    }
  });
  return !is_lacking;
}

// Copies the non-zeros of rows [begin, end) into their blocks. `place` has an element for each
// column of blocks.
template <class T>
void fill_blocks(const Csr<T>& matrix, std::size_t begin, std::size_t end, BlockShape block,
                 std::span<std::int32_t> columns, T* values, std::int32_t* place) {
  const BlockColumn block_of(block.columns);
  const auto area = static_cast<std::size_t>(block.rows) * static_cast<std::size_t>(block.columns);
  const auto width = static_cast<std::uint32_t>(block.columns);
  std::fill_n(values, columns.size() * area, T{0});
  for (std::size_t i = 0; i < columns.size(); ++i) {
    place[columns[i]] = static_cast<std::int32_t>(i);
  }
  for (std::size_t row = begin; row < end; ++row) {
    T* const line = values + (row - begin) * width;
    for (auto i = static_cast<std::size_t>(matrix.starts[row]);
         i < static_cast<std::size_t>(matrix.starts[row + 1]); ++i) {
      const std::uint32_t at = block_of(matrix.column_of[i]);
      line[static_cast<std::size_t>(place[at]) * area +
           (static_cast<std::uint32_t>(matrix.column_of[i]) - at * width)] = matrix.values[i];
    }
  }
}

// Lists the columns of blocks that rows [begin, end) touch, rising. `seen` marks them with `mark`.
template <class T>
void list_blocks(const Csr<T>& matrix, std::size_t begin, std::size_t end, BlockColumn block_of,
                 std::int32_t mark, std::int32_t* seen, std::span<std::int32_t> out) {
  std::size_t count = 0;
  for (auto i = static_cast<std::size_t>(matrix.starts[begin]);
       i < static_cast<std::size_t>(matrix.starts[end]); ++i) {
    const std::uint32_t at = block_of(matrix.column_of[i]);
    if (seen[at] != mark) {
      seen[at] = mark;
      out[count++] = static_cast<std::int32_t>(at);
    }
  }
  FORETUNE_DCHECK(count == out.size());
  // The first row lists its blocks in order, and often all of them.
  if (!std::is_sorted(out.begin(), out.end())) {
    std::sort(out.begin(), out.end());
  }
}

// Sorts the rows of a window by falling length; rows of one length keep their order.
class WindowSorter {
 public:
  explicit WindowSorter(const PatternView& pattern) : starts_(pattern.starts) {}

  void sort(std::size_t first, std::size_t last, std::int32_t* out) {
    std::int64_t longest = 0;
    for (std::size_t row = first; row < last; ++row) {
      longest = std::max(longest, length(row));
    }
    const std::size_t rows = last - first;
    if (static_cast<std::size_t>(longest) > 4 * rows + 64) {
      for (std::size_t i = 0; i < rows; ++i) {
        out[i] = static_cast<std::int32_t>(first + i);
      }
      std::stable_sort(out, out + rows, [&](std::int32_t a, std::int32_t b) {
        return length(static_cast<std::size_t>(a)) > length(static_cast<std::size_t>(b));
      });
      return;
    }
    places_.assign(static_cast<std::size_t>(longest) + 2, 0);
    for (std::size_t row = first; row < last; ++row) {
      ++places_[static_cast<std::size_t>(longest - length(row)) + 1];
    }
    for (std::size_t i = 1; i < places_.size(); ++i) {
      places_[i] += places_[i - 1];
    }
    for (std::size_t row = first; row < last; ++row) {
      out[places_[static_cast<std::size_t>(longest - length(row))]++] =
          static_cast<std::int32_t>(row);
    }
  }
  [[nodiscard]] std::int64_t length(std::size_t row) const {
    return starts_[row + 1] - starts_[row];
  }

 private:
  std::span<const std::int64_t> starts_;
  std::vector<std::size_t> places_;
};

void check_slice(SliceShape slice) {
  FORETUNE_CHECK(slice.height >= 1 && slice.height <= 256 && slice.window >= slice.height &&
                 slice.window % slice.height == 0);
}

// Fills the order of the rows and the starts of the slices.
void order_slices(const PatternView& pattern, SliceShape slice, std::span<std::int32_t> row_of,
                  std::span<std::int64_t> starts) {
  WindowSorter sorter(pattern);
  const auto rows = static_cast<std::size_t>(pattern.rows);
  const auto window = static_cast<std::size_t>(slice.window);
  const auto height = static_cast<std::size_t>(slice.height);
  if (window == height) {
    std::iota(row_of.begin(), row_of.begin() + pattern.rows, 0);
  }
  for (std::size_t first = 0; window > height && first < rows; first += window) {
    sorter.sort(first, std::min(first + window, rows), row_of.data() + first);
  }
  std::fill(row_of.begin() + pattern.rows, row_of.end(), -1);
  starts[0] = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    std::int64_t width = 0;
    for (std::size_t lane = 0; lane < height; ++lane) {
      const std::int32_t row = row_of[i * height + lane];
      width = std::max(width, row < 0 ? 0 : sorter.length(static_cast<std::size_t>(row)));
    }
    starts[i + 1] = starts[i] + width * slice.height;
  }
}

StorageSize sell_size(std::size_t slices, SliceShape slice, std::int64_t values) {
  const auto stored = static_cast<std::uint64_t>(values);
  return {stored, stored * internal::kIndexBytes + (slices + 1) * internal::kStartBytes +
                      slices * static_cast<std::uint64_t>(slice.height) * internal::kIndexBytes};
}

}  // namespace

StorageSize count_bcsr(const PatternView& pattern, BlockShape block, ThreadPool& pool) {
  FORETUNE_CHECK(block.rows >= 1 && block.rows <= 64 && block.columns >= 1 && block.columns <= 64);
  const auto tall = static_cast<std::size_t>(ceil_div(pattern.rows, block.rows));
  std::vector<std::int64_t> counts(tall + 1);
  const internal::RowShares shares(pattern, pool.threads(), static_cast<std::size_t>(block.rows));
  FORETUNE_CHECK(count_blocks(pattern, block, shares, pool, counts.data()));
  std::uint64_t blocks = 0;
  for (const std::int64_t count : counts) {
    blocks += static_cast<std::uint64_t>(count);
  }
  return {blocks * static_cast<std::uint64_t>(block.rows * block.columns),
          blocks * internal::kIndexBytes + (tall + 1) * internal::kStartBytes};
}

template <class T>
Result<Bcsr<T>> pack_bcsr(const Csr<T>& matrix, BlockShape block, const PackOptions& options) {
  FORETUNE_CHECK(block.rows >= 1 && block.rows <= 64 && block.columns >= 1 && block.columns <= 64);
  const auto height = static_cast<std::size_t>(block.rows);
  const auto wide = static_cast<std::size_t>(ceil_div(matrix.columns, block.columns));
  const auto tall = static_cast<std::size_t>(ceil_div(matrix.rows, block.rows));
  const auto area = static_cast<std::size_t>(block.rows) * static_cast<std::size_t>(block.columns);
  const internal::RowShares shares(matrix.pattern(), options.pool.threads(), height);
  Bcsr<T> out;
  out.rows = matrix.rows;
  out.columns = matrix.columns;
  out.block = block;
  FORETUNE_TRY(out.starts, Array<std::int64_t>::create(tall + 1));
  out.starts[0] = 0;
  if (!count_blocks(matrix.pattern(), block, shares, options.pool, out.starts.data())) {
    return fail(ErrorCode::kUnsupported, "no memory for ", wide, " columns of blocks");
  }
  for (std::size_t i = 0; i < tall; ++i) {
    out.starts[i + 1] += out.starts[i];
  }
  const auto blocks = static_cast<std::size_t>(out.starts[tall]);
  FORETUNE_TRY_STATUS(check_fits(
      concat("BCSR of ", block.rows, " x ", block.columns, " blocks"),
      blocks * (area * sizeof(T) + internal::kIndexBytes) + (tall + 1) * internal::kStartBytes,
      options.max_bytes));
  FORETUNE_TRY(out.column_of, Array<std::int32_t>::create(blocks));
  FORETUNE_TRY(out.values, Array<T>::create(blocks * area));
  // For each share, the marks and the places of the columns of blocks.
  FORETUNE_TRY(auto scratch, Array<std::int32_t>::create(2 * wide * shares.count()));
  options.pool.run(shares.count(), [&](std::size_t share) {
    std::int32_t* const seen = scratch.data() + 2 * wide * share;
    std::fill_n(seen, wide, -1);
    const auto [first, last] = shares.rows(share);
    for (std::size_t begin = first; begin < last; begin += height) {
      const std::size_t end = std::min(begin + height, last);
      const auto from = static_cast<std::size_t>(out.starts[begin / height]);
      const auto to = static_cast<std::size_t>(out.starts[begin / height + 1]);
      const std::span<std::int32_t> columns = out.column_of.view().subspan(from, to - from);
      list_blocks(matrix, begin, end, BlockColumn(block.columns),
                  static_cast<std::int32_t>(begin / height), seen, columns);
      fill_blocks(matrix, begin, end, block, columns, out.values.data() + from * area, seen + wide);
    }
  });
  return out;
}

template <class T>
Result<BlockDiagonals<T>> pack_block_diagonals(const Csr<T>& matrix, std::int32_t height,
                                               const PackOptions& options) {
  FORETUNE_CHECK(height >= 1 && height <= 64);
  if (matrix.columns > std::numeric_limits<std::int32_t>::max() - height) {
    return fail(ErrorCode::kUnsupported, "the columns of the diagonals do not fit 32 bits");
  }
  // Shifting each row by its place in the block turns diagonals into columns.
  Csr<T> shifted;
  shifted.rows = matrix.rows;
  shifted.columns = matrix.columns + height - 1;
  const auto rows = static_cast<std::size_t>(matrix.rows);
  const auto size = static_cast<std::size_t>(matrix.size());
  FORETUNE_TRY(shifted.starts, Array<std::int64_t>::create(rows + 1));
  FORETUNE_TRY(shifted.column_of, Array<std::int32_t>::create(size));
  FORETUNE_TRY(shifted.values, Array<T>::create(size));
  std::copy_n(matrix.starts.data(), rows + 1, shifted.starts.data());
  const internal::RowShares shares(matrix.pattern(), options.pool.threads());
  options.pool.run(shares.count(), [&](std::size_t share) {
    const auto [first, last] = shares.rows(share);
    for (std::size_t row = first; row < last; ++row) {
      const std::int32_t shift =
          height - 1 - static_cast<std::int32_t>(row % static_cast<std::size_t>(height));
      for (auto i = static_cast<std::size_t>(matrix.starts[row]);
           i < static_cast<std::size_t>(matrix.starts[row + 1]); ++i) {
        shifted.column_of[i] = matrix.column_of[i] + shift;
        shifted.values[i] = matrix.values[i];
      }
    }
  });
  FORETUNE_TRY(Bcsr<T> blocks, pack_bcsr(shifted, {height, 1}, options));
  BlockDiagonals<T> out;
  out.rows = matrix.rows;
  out.columns = matrix.columns;
  out.height = height;
  out.starts = std::move(blocks.starts);
  out.column_of = std::move(blocks.column_of);
  out.values = std::move(blocks.values);
  return out;
}

StorageSize count_sell(const PatternView& pattern, SliceShape slice) {
  check_slice(slice);
  const auto slices = static_cast<std::size_t>(ceil_div(pattern.rows, slice.height));
  std::vector<std::int32_t> row_of(slices * static_cast<std::size_t>(slice.height));
  std::vector<std::int64_t> starts(slices + 1);
  order_slices(pattern, slice, row_of, starts);
  return sell_size(slices, slice, starts.back());
}

template <class T>
Result<Sell<T>> pack_sell(const Csr<T>& matrix, SliceShape slice, const PackOptions& options) {
  check_slice(slice);
  const auto height = static_cast<std::size_t>(slice.height);
  const auto slices = static_cast<std::size_t>(ceil_div(matrix.rows, slice.height));
  Sell<T> out;
  out.rows = matrix.rows;
  out.columns = matrix.columns;
  out.slice = slice;
  FORETUNE_TRY(out.starts, Array<std::int64_t>::create(slices + 1));
  FORETUNE_TRY(out.row_of, Array<std::int32_t>::create(slices * height));
  order_slices(matrix.pattern(), slice, out.row_of.view(), out.starts.view());
  const std::int64_t stored = out.starts[slices];
  FORETUNE_TRY_STATUS(check_fits(concat("SELL-", slice.height, "-", slice.window),
                                 sell_size(slices, slice, stored).bytes(sizeof(T)),
                                 options.max_bytes));
  FORETUNE_TRY(out.column_of, Array<std::int32_t>::create(static_cast<std::size_t>(stored)));
  FORETUNE_TRY(out.values, Array<T>::create(static_cast<std::size_t>(stored)));
  // Slices of about equal work: many small steps, dealt out in turn.
  constexpr std::size_t kSlicesPerStep = 64;
  options.pool.run((slices + kSlicesPerStep - 1) / kSlicesPerStep, [&](std::size_t step) {
    const std::size_t end = std::min(slices, (step + 1) * kSlicesPerStep);
    for (std::size_t i = step * kSlicesPerStep; i < end; ++i) {
      const auto at = static_cast<std::size_t>(out.starts[i]);
      const std::size_t width = (static_cast<std::size_t>(out.starts[i + 1]) - at) / height;
      for (std::size_t lane = 0; lane < height; ++lane) {
        const std::int32_t row = out.row_of[i * height + lane];
        const auto begin =
            row < 0 ? std::size_t{0}
                    : static_cast<std::size_t>(matrix.starts[static_cast<std::size_t>(row)]);
        const std::size_t length =
            row < 0 ? 0
                    : static_cast<std::size_t>(matrix.starts[static_cast<std::size_t>(row) + 1]) -
                          begin;
        std::int32_t* const columns = out.column_of.data() + at + lane;
        T* const values = out.values.data() + at + lane;
        for (std::size_t slot = 0; slot < length; ++slot) {
          columns[slot * height] = matrix.column_of[begin + slot];
          values[slot * height] = matrix.values[begin + slot];
        }
        const std::int32_t column = length > 0 ? matrix.column_of[begin + length - 1] : 0;
        for (std::size_t slot = length; slot < width; ++slot) {
          columns[slot * height] = column;
          values[slot * height] = T{0};
        }
      }
    }
  });
  return out;
}

template Result<Bcsr<float>> pack_bcsr(const Csr<float>&, BlockShape, const PackOptions&);
template Result<Bcsr<double>> pack_bcsr(const Csr<double>&, BlockShape, const PackOptions&);
template Result<BlockDiagonals<float>> pack_block_diagonals(const Csr<float>&, std::int32_t,
                                                            const PackOptions&);
template Result<BlockDiagonals<double>> pack_block_diagonals(const Csr<double>&, std::int32_t,
                                                             const PackOptions&);
template Result<Sell<float>> pack_sell(const Csr<float>&, SliceShape, const PackOptions&);
template Result<Sell<double>> pack_sell(const Csr<double>&, SliceShape, const PackOptions&);

}  // namespace foretune::sparse
