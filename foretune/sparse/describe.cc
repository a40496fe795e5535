#include "foretune/sparse/describe.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "foretune/base/check.h"
#include "foretune/base/rng.h"

namespace foretune::sparse {
namespace {

constexpr std::size_t kStripRows = 64;
// Random accesses this far ahead are in the cache when they are needed.
constexpr std::size_t kAhead = 24;
constexpr std::size_t kMarks = 65472;  // whole strips of the smallest blocks

std::size_t as_size(std::int64_t count) { return static_cast<std::size_t>(count); }

// The counts of a strip. All others become shares of the first.
enum Counted : std::uint8_t { kNonZeros, kDistance, kOverlap, kRuns, kDiagonals, kBlocks };
constexpr std::size_t kCounted = kBlocks + kBlockSides;
using StripCounts = std::array<double, kCounted>;

// Sums over strips, from which ratios to the non-zeros and their errors follow.
class RatioSums {
 public:
  void add(const StripCounts& strip) {
    ++strips_;
    const double size = strip[kNonZeros];
    for (std::size_t i = 0; i < kCounted; ++i) {
      sum_[i] += strip[i];
      square_[i] += strip[i] * strip[i];
      product_[i] += strip[i] * size;
    }
  }
  // Returns the ratio of a count to the non-zeros; `all` is the number of strips that could have
  // been added.
  [[nodiscard]] Estimate ratio(std::size_t counted, double all) const {
    const double size = sum_[kNonZeros];
    if (size == 0) {
      return {};
    }
    const double value = sum_[counted] / size;
    const double left_out = 1 - strips_ / all;
    if (left_out <= 0 || strips_ < 2) {
      return {value, 0};
    }
    // The usual estimate for a ratio of sums over clusters.
    const double squares =
        square_[counted] - 2 * value * product_[counted] + value * value * square_[kNonZeros];
    const double variance = left_out * std::max(0.0, squares) * strips_ / (strips_ - 1);
    return {value, std::sqrt(variance) / size};
  }

 private:
  double strips_ = 0;
  StripCounts sum_{};
  StripCounts square_{};
  StripCounts product_{};
};

struct ColumnState {
  std::int32_t count = 0;
  std::int32_t last_row = -2;  // that had a non-zero in the column
};

// Maps columns to lines of the density grid by a multiplication, corrected to the exact quotient.
class CellOf {
 public:
  explicit CellOf(std::int64_t extent)
      : extent_(static_cast<std::uint64_t>(extent)),
        factor_((std::uint64_t{1} << 63U) / extent_ + 1) {}
  [[nodiscard]] std::uint32_t operator()(std::uint64_t index) const {
    auto cell = static_cast<std::uint32_t>((index * factor_) >> 57U);
    cell -= cell * extent_ > index * kDensityCells ? 1U : 0U;
    return cell;
  }

 private:
  std::uint64_t extent_;
  std::uint64_t factor_;
};

// Density of the lines of the grid from the strips that were looked at.
class DensitySums {
 public:
  DensitySums() : cells_(kDensityCells * kDensityCells) {}

  // Adds the counts of one strip, or of the part of it in one line of the grid.
  void add(std::size_t line, const std::array<std::uint32_t, kDensityCells>& counts, double size) {
    ++strips_[line];
    sizes_[line] += size;
    size_squares_[line] += size * size;
    for (std::size_t column = 0; column < kDensityCells; ++column) {
      Cell& cell = cells_[line * kDensityCells + column];
      const double count = counts[column];
      cell.sum += count;
      cell.square += count * count;
      cell.product += count * size;
    }
  }
  // Fills the density. `wanted` holds the non-zeros of each line of the grid, and `parts` the parts
  // of strips in each.
  void finish(const std::array<double, kDensityCells>& wanted,
              const std::array<double, kDensityCells>& parts, MatrixDescription& out) const {
    double errors = 0;
    for (std::size_t line = 0; line < kDensityCells; ++line) {
      const double size = sizes_[line];
      if (size == 0) {
        // Nothing is known of the line: all of it may be elsewhere.
        errors += wanted[line];
        for (std::size_t column = 0; column < kDensityCells; ++column) {
          out.density[line * kDensityCells + column] =
              static_cast<float>(wanted[line] / kDensityCells);
        }
        continue;
      }
      const double left_out = 1 - strips_[line] / parts[line];
      for (std::size_t column = 0; column < kDensityCells; ++column) {
        const Cell& cell = cells_[line * kDensityCells + column];
        const double share = cell.sum / size;
        out.density[line * kDensityCells + column] = static_cast<float>(share * wanted[line]);
        if (left_out > 0 && strips_[line] > 1) {
          const double squares =
              cell.square - 2 * share * cell.product + share * share * size_squares_[line];
          errors +=
              std::sqrt(left_out * std::max(0.0, squares) * strips_[line] / (strips_[line] - 1)) /
              size * wanted[line];
        } else if (left_out > 0) {
          errors += share * wanted[line];
        }
      }
    }
    out.density_error = out.size == 0 ? 0 : errors / static_cast<double>(out.size);
  }

 private:
  struct Cell {
    double sum = 0;
    double square = 0;
    double product = 0;
  };
  std::vector<Cell> cells_;
  std::array<double, kDensityCells> strips_{};
  std::array<double, kDensityCells> sizes_{};
  std::array<double, kDensityCells> size_squares_{};
};

class Describer {
 public:
  static Result<Describer> create(const PatternView& pattern) {
    Describer out(pattern);
    const std::size_t columns = as_size(pattern.columns);
    FORETUNE_TRY(out.columns_, Array<ColumnState>::zeros(columns));
    std::size_t marks = 0;
    for (std::size_t side = 0; side < kBlockSides; ++side) {
      out.mark_begin_[side] = marks;
      marks += (columns >> (side + 1)) + 1;
    }
    FORETUNE_TRY(out.marks_, Array<std::uint16_t>::zeros(marks));
    return out;
  }

  // Looks at all of a strip's non-zeros.
  void look(std::size_t first_row, std::size_t last_row) {
    // Marks of 16 bits stay in the cache, and begin again before they repeat themselves.
    if (first_row / (2 * kMarks) != marks_epoch_) {
      marks_epoch_ = first_row / (2 * kMarks);
      std::fill_n(marks_.data(), marks_.size(), std::uint16_t{0});
    }
    // The row above may lie in a strip that was skipped.
    for (std::size_t i = first_row == 0 ? 0 : as_size(pattern_.starts[first_row - 1]);
         i < as_size(pattern_.starts[first_row]); ++i) {
      columns_[static_cast<std::size_t>(pattern_.column_of[i])].last_row =
          static_cast<std::int32_t>(first_row) - 1;
    }
    StripCounts counts{};
    std::array<std::uint32_t, kDensityCells> cells{};
    std::int64_t cells_begin = pattern_.starts[first_row];
    std::uint32_t line = line_of_(first_row);
    for (std::size_t row = first_row; row < last_row; ++row) {
      if (const std::uint32_t next = line_of_(row); next != line) {
        finish_cells(line, cells, row, cells_begin);
        line = next;
      }
      look_at_row(row, counts, cells);
    }
    finish_cells(line, cells, last_row, cells_begin);
    counts[kNonZeros] = static_cast<double>(pattern_.starts[last_row] - pattern_.starts[first_row]);
    ratios_.add(counts);
  }
  // Counts the columns only.
  void skip(std::size_t first_row, std::size_t last_row) {
    const std::size_t end = as_size(pattern_.starts[last_row]);
    const std::size_t last = pattern_.column_of.size() - 1;
    for (std::size_t i = as_size(pattern_.starts[first_row]); i < end; ++i) {
      __builtin_prefetch(
          &columns_[static_cast<std::size_t>(pattern_.column_of[std::min(i + kAhead, last)])], 1);
      ++columns_[static_cast<std::size_t>(pattern_.column_of[i])].count;
    }
  }

  MatrixDescription finish(double strips, double looked_at);

 private:
  explicit Describer(const PatternView& pattern)
      : pattern_(pattern), line_of_(pattern.rows), cell_of_(pattern.columns) {}

  void look_at_row(std::size_t row, StripCounts& counts,
                   std::array<std::uint32_t, kDensityCells>& cells);
  void finish_cells(std::uint32_t line, std::array<std::uint32_t, kDensityCells>& cells,
                    std::size_t row, std::int64_t& begin) {
    density_.add(line, cells, static_cast<double>(pattern_.starts[row] - begin));
    cells.fill(0);
    begin = pattern_.starts[row];
  }
  // Counts the blocks that row and column are the first to touch. A larger block is new only where
  // the smaller one in it is.
  void mark_blocks(const std::array<std::uint16_t, kBlockSides>& here, std::uint32_t column,
                   std::array<std::uint32_t, kBlockSides>& blocks) {
    for (std::size_t side = 0; side < kBlockSides; ++side) {
      std::uint16_t& mark = marks_[mark_begin_[side] + (column >> (side + 1))];
      if (mark == here[side]) {
        return;
      }
      mark = here[side];
      ++blocks[side];
    }
  }

  PatternView pattern_;
  CellOf line_of_;
  CellOf cell_of_;
  Array<ColumnState> columns_;
  // For each side, the last row of blocks that had each column of blocks, from 1, modulo kMarks.
  Array<std::uint16_t> marks_;
  std::array<std::size_t, kBlockSides> mark_begin_{};
  std::size_t marks_epoch_ = 0;
  RatioSums ratios_;
  DensitySums density_;
};

void Describer::look_at_row(std::size_t row, StripCounts& counts,
                            std::array<std::uint32_t, kDensityCells>& cells) {
  const std::size_t begin = as_size(pattern_.starts[row]);
  const std::size_t end = as_size(pattern_.starts[row + 1]);
  const std::size_t last = pattern_.column_of.size() - 1;
  const auto this_row = static_cast<std::int32_t>(row);
  std::array<std::uint16_t, kBlockSides> here{};
  for (std::size_t side = 0; side < kBlockSides; ++side) {
    here[side] = static_cast<std::uint16_t>((row >> (side + 1)) % kMarks + 1);
  }
  std::array<std::uint32_t, kBlockSides> blocks{};
  std::uint32_t overlap = 0;
  std::uint32_t runs = 0;
  std::uint32_t diagonals = 0;
  std::int64_t distance = 0;
  std::int32_t before = -2;
  bool before_is_below = false;  // whether `before` was below another one
  for (std::size_t i = begin; i < end; ++i) {
    const auto ahead = static_cast<std::uint32_t>(pattern_.column_of[std::min(i + kAhead, last)]);
    __builtin_prefetch(&columns_[ahead], 1);
    __builtin_prefetch(&marks_[ahead >> 1U], 1);
    const std::int32_t column = pattern_.column_of[i];
    ColumnState& state = columns_[static_cast<std::size_t>(column)];
    ++state.count;
    const bool is_below = state.last_row == this_row - 1;
    overlap += is_below ? 1U : 0U;
    state.last_row = this_row;
    // A non-zero to the left has overwritten the row of its column.
    const bool is_run = column == before + 1;
    runs += is_run ? 1U : 0U;
    diagonals += is_run                                                ? (before_is_below ? 1U : 0U)
                 : column > 0 && (&state)[-1].last_row == this_row - 1 ? 1U
                                                                       : 0U;
    before = column;
    before_is_below = is_below;
    distance += std::abs(column - this_row);
    ++cells[cell_of_(static_cast<std::uint32_t>(column))];
    mark_blocks(here, static_cast<std::uint32_t>(column), blocks);
  }
  counts[kDistance] += static_cast<double>(distance);
  counts[kOverlap] += overlap;
  counts[kRuns] += runs;
  counts[kDiagonals] += diagonals;
  for (std::size_t side = 0; side < kBlockSides; ++side) {
    counts[kBlocks + side] += blocks[side];
  }
}

void add_length(std::int64_t length, LineLengths& out) {
  const auto bucket = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length)));
  ++out.counts[std::min(bucket, kLengthBuckets - 1)];
  out.longest = std::max(out.longest, length);
  const auto value = static_cast<double>(length);
  out.mean += value;
  out.deviation += value * value;
}

// Turns the sums of lengths and of their squares into mean and deviation.
void finish_lengths(std::int64_t lines, LineLengths& out) {
  const auto count = static_cast<double>(lines);
  out.mean /= count;
  out.deviation = std::sqrt(std::max(0.0, out.deviation / count - out.mean * out.mean));
}

MatrixDescription Describer::finish(double strips, double looked_at) {
  MatrixDescription out;
  out.rows = pattern_.rows;
  out.columns = pattern_.columns;
  out.size = pattern_.size();
  out.looked_at = looked_at;
  std::array<double, kDensityCells> line_sizes{};
  std::array<double, kDensityCells> line_parts{};
  std::uint32_t line_before = kDensityCells;
  for (std::size_t row = 0; row < as_size(pattern_.rows); ++row) {
    const std::int64_t begin = pattern_.starts[row];
    const std::int64_t end = pattern_.starts[row + 1];
    add_length(end - begin, out.row_lengths);
    const std::uint32_t line = line_of_(row);
    line_sizes[line] += static_cast<double>(end - begin);
    line_parts[line] += line != line_before || row % kStripRows == 0 ? 1 : 0;
    line_before = line;
    if (begin < end) {
      const auto here = static_cast<std::int64_t>(row);
      out.bandwidth = std::max({out.bandwidth, here - pattern_.column_of[as_size(begin)],
                                pattern_.column_of[as_size(end - 1)] - here});
    }
  }
  for (const ColumnState& state : columns_.view()) {
    add_length(state.count, out.column_lengths);
  }
  finish_lengths(pattern_.rows, out.row_lengths);
  finish_lengths(pattern_.columns, out.column_lengths);
  for (std::size_t side = 0; side < kBlockSides; ++side) {
    const Estimate blocks = ratios_.ratio(kBlocks + side, strips);
    const double area = std::ldexp(1.0, static_cast<int>(2 * (side + 1)));
    if (blocks.value > 0) {
      const double fill = 1 / (area * blocks.value);
      out.block_fill[side] = {fill, fill * blocks.error / blocks.value};
    }
  }
  out.mean_distance = ratios_.ratio(kDistance, strips);
  out.row_overlap = ratios_.ratio(kOverlap, strips);
  out.run_share = ratios_.ratio(kRuns, strips);
  out.diagonal_share = ratios_.ratio(kDiagonals, strips);
  density_.finish(line_sizes, line_parts, out);
  return out;
}

// Describes one strip in `step` of them.
Result<MatrixDescription> describe_strips(const PatternView& pattern, std::size_t step,
                                          std::uint64_t seed) {
  FORETUNE_TRY(Describer describer, Describer::create(pattern));
  const std::size_t rows = as_size(pattern.rows);
  const std::size_t strips = (rows + kStripRows - 1) / kStripRows;
  Rng rng(seed);
  std::size_t chosen = 0;
  double looked_at = 0;
  for (std::size_t strip = 0; strip < strips; ++strip) {
    if (strip % step == 0) {
      chosen = strip + (step == 1 ? 0 : rng.below(std::min(step, strips - strip)));
    }
    const std::size_t first = strip * kStripRows;
    const std::size_t last = std::min(first + kStripRows, rows);
    if (strip == chosen) {
      describer.look(first, last);
      ++looked_at;
    } else {
      describer.skip(first, last);
    }
  }
  return describer.finish(static_cast<double>(strips), looked_at / static_cast<double>(strips));
}

}  // namespace

Result<MatrixDescription> describe(const PatternView& pattern) {
  return describe_strips(pattern, 1, 0);
}

Result<MatrixDescription> describe_sampled(const PatternView& pattern, std::uint64_t seed) {
  // At most one strip in eight, but two in each line of the density grid.
  constexpr std::size_t kMaxStep = 8;
  const std::size_t strips = as_size(pattern.rows) / kStripRows;
  return describe_strips(pattern,
                         std::clamp<std::size_t>(strips / (2 * kDensityCells), 1, kMaxStep), seed);
}

float density_at(const MatrixDescription& description, std::size_t cells, std::size_t line,
                 std::size_t column) {
  FORETUNE_CHECK(std::has_single_bit(cells) && cells <= kDensityCells && line < cells &&
                 column < cells);
  const std::size_t side = kDensityCells / cells;
  double sum = 0;
  for (std::size_t i = line * side; i < (line + 1) * side; ++i) {
    for (std::size_t j = column * side; j < (column + 1) * side; ++j) {
      sum += static_cast<double>(description.density[i * kDensityCells + j]);
    }
  }
  const double elements = static_cast<double>(description.rows) *
                          static_cast<double>(description.columns) /
                          static_cast<double>(cells * cells);
  return static_cast<float>(sum / elements);
}

}  // namespace foretune::sparse
