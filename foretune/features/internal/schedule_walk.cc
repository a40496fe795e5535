#include "foretune/features/internal/schedule_walk.h"

#include <algorithm>
#include <cmath>

#include "foretune/problem/sparse/sparse_payload.h"

namespace foretune::features_internal {
namespace {

constexpr double kIndexBytes = 4;

// How much of an axis the loops so far have fixed.
enum class Part : std::uint8_t { kNone, kOuter, kWhole };

// Returns the expected number of cells that `balls` random balls hit.
double hit_cells(double cells, double balls) {
  return cells * -std::expm1(balls * std::log1p(-1 / std::max(cells, 1 + 1e-9)));
}

double cells_along(double extent, double side) {
  return std::ceil(extent / std::min(side, extent));
}

}  // namespace

MatrixShape MatrixShape::of(const Problem& problem) {
  MatrixShape out;
  out.sizes = SparseProblem::from(problem)->sizes();
  out.rows = static_cast<double>(out.sizes.rows);
  out.columns = static_cast<double>(out.sizes.columns);
  out.width = static_cast<double>(out.sizes.width);
  out.non_zeros = std::max(1.0, static_cast<double>(out.sizes.non_zeros));
  out.blocks.fill(-1);
  out.blocks[0] = out.non_zeros;
  out.rows_with_entries = hit_cells(out.rows, out.non_zeros);
  out.columns_with_entries = hit_cells(out.columns, out.non_zeros);
  const auto value = [&](SparseValue place, std::size_t more = 0) {
    return described_value(problem, static_cast<std::size_t>(place) + more);
  };
  if (std::isnan(value(SparseValue::kRowMean))) {
    return out;
  }
  out.rows_with_entries = std::max(1.0, out.rows * (1 - value(SparseValue::kRowLengths)));
  out.columns_with_entries = std::max(1.0, out.columns * (1 - value(SparseValue::kColumnLengths)));
  for (std::size_t i = 1; i < out.blocks.size(); ++i) {
    const double side = std::exp2(static_cast<double>(i));
    const double fill = value(SparseValue::kBlockFill, i - 1);
    out.blocks[i] = fill > 0 ? std::max(1.0, out.non_zeros / (fill * side * side)) : -1;
  }
  return out;
}

double MatrixShape::filled_blocks(double row_side, double column_side) const {
  const double cells = cells_along(rows, row_side) * cells_along(columns, column_side);
  const double at_most = std::min(cells, non_zeros);
  double blocks_here = hit_cells(cells, non_zeros);
  // A square of the same area stands in for a rectangle, where its number is known.
  const double side = std::log2(std::sqrt(row_side * column_side));
  const auto last = static_cast<double>(blocks.size() - 1);
  if (blocks[1] > 0 && side <= last) {
    const auto below = static_cast<std::size_t>(side);
    const std::size_t above = std::min(below + 1, blocks.size() - 1);
    const double share = side - static_cast<double>(below);
    if (blocks[below] > 0 && blocks[above] > 0) {
      blocks_here =
          std::exp2((1 - share) * std::log2(blocks[below]) + share * std::log2(blocks[above]));
    }
  } else if (blocks.back() > 0) {
    blocks_here = std::min(blocks_here, blocks.back());
  }
  return std::max(1.0, std::min(blocks_here, at_most));
}

ScheduleWalk walk_schedule(const SparseSchedule& schedule, const MatrixShape& shape) {
  ScheduleWalk out;
  out.loops = schedule.order.size();
  std::array<Part, kSparseAxes> fixed{Part::kNone, Part::kNone, Part::kNone};
  // Returns the number of distinct prefixes of the stored coordinates.
  const auto prefixes = [&]() {
    const auto side = [&](SparseAxis axis, double extent) {
      const Part part = fixed[static_cast<std::size_t>(axis)];
      return part == Part::kWhole   ? 1.0
             : part == Part::kOuter ? schedule.inner[static_cast<std::size_t>(axis)]
                                    : extent;
    };
    const double row_side = side(SparseAxis::kRows, shape.rows);
    const double column_side = side(SparseAxis::kColumns, shape.columns);
    if (row_side == 1 && column_side >= shape.columns) {
      return shape.rows_with_entries;
    }
    if (column_side == 1 && row_side >= shape.rows) {
      return shape.columns_with_entries;
    }
    return shape.filled_blocks(row_side, column_side);
  };
  std::size_t level = 0;
  double parents = 1;  // stored positions of the level above
  double turns = 1;
  for (std::size_t i = 0; i < out.loops; ++i) {
    const SparseLoop loop = schedule.order[i];
    const auto axis = static_cast<std::size_t>(axis_of(loop));
    const auto extent = static_cast<double>(loop_extent(schedule, shape.sizes, loop));
    fixed[axis] = is_inner(loop) ? Part::kWhole : Part::kOuter;
    double length = extent;
    if (axis_of(loop) != SparseAxis::kDense) {
      double stored = 0;
      switch (schedule.levels[0][level]) {
        case SparseLevel::kDense:
          stored = parents * extent;
          break;
        case SparseLevel::kCompressed:
          stored = prefixes();
          out.index_bytes += kIndexBytes * (stored + parents + 1);
          break;
        case SparseLevel::kCompressedRepeated:
          stored = shape.non_zeros;
          out.index_bytes += kIndexBytes * (stored + parents + 1);
          break;
        case SparseLevel::kSingleton:
        case SparseLevel::kSingletonRepeated:
          stored = parents;
          out.index_bytes += kIndexBytes * stored;
          break;
      }
      length = stored / parents;
      parents = stored;
      out.positions[level++] = stored;
    }
    turns *= length;
    out.turns[i] = turns;
    out.length[i] = length;
  }
  for (std::size_t i = out.loops; i < kSparseLoops; ++i) {
    out.turns[i] = out.turns[out.loops - 1];
    out.length[i] = out.length[out.loops - 1];
  }
  out.value_count = parents;
  return out;
}

}  // namespace foretune::features_internal
