// An estimate of the work of a schedule on a matrix: how many positions each level of the storage
// has, and how often each loop turns. Where the descriptor of the pattern is known, the number of
// non-empty blocks is its; elsewhere non-zeros are taken to lie at random. Internal to the module.
//
//   const MatrixShape shape = MatrixShape::of(problem);
//   const ScheduleWalk walk = walk_schedule(schedule, shape);
//
// Thread safety: plain values. Cost: about a hundred nanoseconds and no allocation.
#pragma once

#include <array>
#include <cstddef>

#include "foretune/problem/problem.h"
#include "foretune/problem/sparse/sparse_problem.h"
#include "foretune/space/schemas/sparse_schedule.h"

namespace foretune::features_internal {

// A matrix with its operation, as doubles: every formula is a ratio or a logarithm.
struct MatrixShape {
  SparseSizes sizes;
  double rows = 1;
  double columns = 1;
  double width = 1;
  double non_zeros = 1;  // at least 1
  // Numbers of non-empty square blocks of sides 1, 2, 4, ... 64; negative where unknown.
  std::array<double, 7> blocks{};
  double rows_with_entries = 1;
  double columns_with_entries = 1;

  static MatrixShape of(const Problem& problem);
  // Returns the number of non-empty blocks of these sides, which need not be whole numbers.
  [[nodiscard]] double filled_blocks(double row_side, double column_side) const;
};

struct ScheduleWalk {
  // By level, in the order of storage.
  std::array<double, kSparseLevels> positions{};  // stored
  double index_bytes = 0;
  double value_count = 0;  // stored, zeros that fill dense levels included
  // By loop, in the order of the loops; entries behind the last loop are those of the last.
  std::array<double, kSparseLoops> turns{};   // in all, over all rounds of the loops around it
  std::array<double, kSparseLoops> length{};  // mean turns of one round
  std::size_t loops = 0;
};

ScheduleWalk walk_schedule(const SparseSchedule& schedule, const MatrixShape& shape);

}  // namespace foretune::features_internal
