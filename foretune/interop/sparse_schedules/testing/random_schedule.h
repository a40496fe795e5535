// Draws legal schedules for tests.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/space/schemas/sparse_schedule.h"

namespace foretune::testing_support {

// Returns sizes of one of the operations that AutoSparse's notation has.
inline SparseSizes random_scheduled_sizes(Rng& rng) {
  static constexpr std::array kOperations{SparseOperation::kSpmv,  SparseOperation::kSpmm,
                                          SparseOperation::kSddmm, SparseOperation::kMmadd,
                                          SparseOperation::kPlus2, SparseOperation::kPlus3};
  SparseSizes sizes{.operation = kOperations[rng.below(kOperations.size())],
                    .rows = static_cast<std::int64_t>(1 + rng.below(5000)),
                    .columns = static_cast<std::int64_t>(1 + rng.below(5000))};
  sizes.non_zeros = static_cast<std::int64_t>(
      1 + rng.below(static_cast<std::uint64_t>(sizes.rows * sizes.columns)));
  if (has_dense_loops(sizes.operation)) {
    sizes.width = static_cast<std::int64_t>(1 + rng.below(300));
  }
  return sizes;
}

inline SparseSchedule random_schedule(const SparseSizes& sizes, Rng& rng) {
  SparseSchedule schedule;
  for (std::size_t axis = 0; axis < kSparseAxes; ++axis) {
    const auto extent = static_cast<std::uint64_t>(
        std::min<std::int64_t>(256, axis_extent(sizes, static_cast<SparseAxis>(axis))));
    schedule.inner[axis] =
        1 << rng.below(static_cast<std::uint64_t>(std::countr_zero(std::bit_floor(extent))) + 1);
  }
  std::vector<SparseOrder> orders;
  for (const SparseOrder& order : sparse_orders()) {
    if ((order.size() == kSparseLoops) == has_dense_loops(sizes.operation)) {
      orders.push_back(order);
    }
  }
  schedule.order = orders[rng.below(orders.size())];
  schedule.operands = scheduled_operands(sizes.operation);
  std::array<std::int64_t, kSparseLevels> extents{};
  const auto stored = schedule.storage_order();
  for (std::size_t i = 0; i < kSparseLevels; ++i) {
    extents[i] = loop_extent(schedule, sizes, stored[i]);
  }
  for (std::size_t operand = 0; operand < schedule.operands; ++operand) {
    do {
      for (SparseLevel& level : schedule.levels[operand]) {
        level = static_cast<SparseLevel>(rng.below(kSparseLevelKinds));
      }
    } while (!are_levels_legal(schedule.levels[operand], extents));
  }
  for (auto* marked : {&schedule.parallel, &schedule.vector, &schedule.unroll}) {
    if (rng.below(3) > 0) {
      *marked = schedule.order[rng.below(schedule.order.size())];
    }
  }
  schedule.chunk = 1 << rng.below(10);
  return schedule;
}

}  // namespace foretune::testing_support
