// A schedule as a row of numbers for boosted trees: what the compiler makes of it, and the loops
// from the register block outwards and inwards.
//
//   std::vector<double> row(nest_feature_names().size());
//   if (write_nest_features(computation, nest, unit, row)) { ... }
//
// Thread safety: free functions. Cost: a few microseconds.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "foretune/loop/computation.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

// Sizes are log2 of what they count; ratios are plain.
//   lanes                    of a vector, 1 without
//   vectors, sums            registers that hold outputs, chains of adding
//   unrolled                 multiply-adds of one round of the block
//   block_rounds             how often the block runs
//   output_passes            how often each output is read and written back
//   loads_per_product        vector loads and broadcasts of the block over multiply-adds
//   lane_waste               lanes of the last vector that are idle, as a part of all
//   pack_bytes               of all packed inputs
//   extents                  of the computation: what the output has, what is reduced
//   outN_*, inN_*            the loops around the block and inside of it, the nearest first: the
//                            columns of write_loops_features() without the cursor's
const std::vector<std::string>& nest_feature_names();

// The first columns, up to the extents: what the compiler makes of a schedule.
inline constexpr std::size_t kPlanColumns = 11;
void write_plan_features(const Computation& computation, const Lowered& lowered,
                         std::span<double> row);

// `row` has as many values as there are names. False where the schedule cannot be compiled for
// `unit`; then the row is undefined.
bool write_nest_features(const Computation& computation, const Nest& nest, const VectorUnit& unit,
                         std::span<double> row);

}  // namespace foretune::loop
