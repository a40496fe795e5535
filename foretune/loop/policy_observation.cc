#include "foretune/loop/policy_observation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/loop/nest_features.h"

namespace foretune::loop {
namespace {

// Logarithms of sizes go up to 30.
constexpr float kLogUnit = 1.0F / 8;
constexpr std::size_t kLoopRows = LoopActions::kLevels;
constexpr std::size_t kLoopRow = PolicyObserver::kLoopColumns;

// Positions of the columns behind those of loop_features.h.
enum LoopColumn : std::size_t {
  kFromOutside = kLoopFeatureColumns,
  kFromInside,
  kIsInnermost,
  kCovers,
  kExtent,
  kIsFirstOfVar,
  kLanesAlong,  // 1 where the compiler puts vector lanes along the loop
  kInBlock,
  kRegistersAlong,
  kBytes,  // of all tensors
  kOverL1,
  kOverL2,
  kFitsL1,
  kFitsL2,
  kPacksSecond,
};
static_assert(kPacksSecond + 1 == kLoopRow);

// Columns of loop_features.h that are logarithms.
constexpr std::array<std::size_t, 8> kLogColumns = {9, 10, 13, 14, 16, 17, 19, 20};
constexpr std::array<std::size_t, 3> kByteColumns = {14, 17, 20};
constexpr std::size_t kCursorColumn = 1;

enum WholeColumn : std::size_t {
  kCompiles = 0,
  kPlan,  // kPlanColumns of nest_features.h
  kLanes = kPlan + kPlanColumns,
  kRegisters,
  kL1,
  kL2,
  kStepsLeft,
  kLoops,
  kHasVector,
  kHasBlock,
  kHasParallel,
  kPacksFirst,
  kPacksOther,
  kCombined,
  kSteps,
  kFlops,
  kHasPadding,
  kReduces,
  kVariables,
  kMultiplies,
};
static_assert(kMultiplies + 1 == PolicyObserver::kWholeColumns);

// One for each column of the plan: lanes, vectors, sums, unrolled, block_rounds,
// output_passes, loads_per_product, lane_waste, pack_bytes, output and reduced extent.
constexpr std::array<float, kPlanColumns> kPlanScales = {
    0.25F, 1.0F / 16, 1.0F / 16, kLogUnit, kLogUnit, kLogUnit, 1, 1, kLogUnit, kLogUnit, kLogUnit};

float log2_scaled(double value) {
  return kLogUnit * static_cast<float>(std::log2(std::max(1.0, value)));
}

}  // namespace

PolicyObserver::PolicyObserver(const Computation& computation, const VectorUnit& unit,
                               const PolicyMachine& machine)
    : computation_(computation),
      unit_(unit),
      log2_l1_(std::log2(std::max(1.0, machine.l1_bytes))),
      log2_l2_(std::log2(std::max(1.0, machine.l2_bytes))),
      log2_flops_(std::log2(std::max(1.0, computation.flops()))) {}

void PolicyObserver::write_loop(const Nest& nest, std::size_t level, std::span<float> row) const {
  const Loop& loop = nest.loops[level];
  const auto count = static_cast<float>(nest.loops.size());
  double bytes = 0;
  for (const std::size_t column : kByteColumns) {
    bytes += row[column] > 0 ? std::exp2(static_cast<double>(row[column])) : 0;
  }
  const double log2_bytes = std::log2(std::max(1.0, bytes));
  for (const std::size_t column : kLogColumns) {
    row[column] *= kLogUnit;
  }
  row[kCursorColumn] = 0;
  const auto from_outside = static_cast<float>(level);
  const bool is_first = std::none_of(nest.loops.begin(), nest.loops.begin() + level,
                                     [&](const Loop& around) { return around.var == loop.var; });
  row[kFromOutside] = from_outside / 8;
  row[kFromInside] = (count - 1 - from_outside) / 8;
  row[kIsInnermost] = level + 1 == nest.loops.size() ? 1 : 0;
  row[kCovers] = log2_scaled(static_cast<double>(nest.covers(computation_, level)));
  row[kExtent] = log2_scaled(static_cast<double>(computation_.vars[loop.var].extent));
  row[kIsFirstOfVar] = is_first ? 1 : 0;
  row[kBytes] = kLogUnit * static_cast<float>(log2_bytes);
  row[kOverL1] = kLogUnit * static_cast<float>(log2_bytes - log2_l1_);
  row[kOverL2] = kLogUnit * static_cast<float>(log2_bytes - log2_l2_);
  row[kFitsL1] = log2_bytes < log2_l1_ ? 1 : 0;
  row[kFitsL2] = log2_bytes < log2_l2_ ? 1 : 0;
  for (const Pack& pack : nest.packs) {
    row[kPacksSecond] += pack.level == level && pack.input == 1 ? 1.0F : 0.0F;
  }
}

void PolicyObserver::write_plan(const Nest& nest, const Lowered& lowered, std::span<float> loops,
                                std::span<float> whole) const {
  std::array<double, kPlanColumns> plan{};
  write_plan_features(computation_, lowered, plan);
  for (std::size_t i = 0; i < kPlanColumns; ++i) {
    whole[kPlan + i] = kPlanScales[i] * static_cast<float>(plan[i]);
  }
  // The compiler may have cut the loop along lanes in two: the inner part is the nest's loop.
  const std::size_t cut = lowered.nest.loops.size() > nest.loops.size() && lowered.lanes > 1
                              ? lowered.vector_level - 1
                              : lowered.nest.loops.size();
  for (std::size_t level = 0; level < std::min(nest.loops.size(), kLoopRows); ++level) {
    const std::span<float> row = loops.subspan(level * kLoopRow, kLoopRow);
    const std::size_t there = level < cut ? level : level + 1;
    const bool has_lanes = lowered.lanes > 1 && there == lowered.vector_level;
    const bool is_inside = std::cmp_greater_equal(there, lowered.nest.block);
    const std::int64_t rounds = lowered.nest.rounds(computation_, there);
    row[kLanesAlong] = has_lanes ? 1 : 0;
    row[kInBlock] = is_inside ? 1 : 0;
    row[kRegistersAlong] =
        is_inside ? log2_scaled(static_cast<double>(
                        has_lanes ? (rounds + lowered.lanes - 1) / lowered.lanes : rounds))
                  : 0;
  }
}

void PolicyObserver::set_steps_left(double steps_left, std::span<float> whole) {
  whole[kStepsLeft] = static_cast<float>(steps_left);
}

bool PolicyObserver::observe(const Nest& nest, double steps_left, std::span<float> loops,
                             std::span<float> whole) const {
  FORETUNE_DCHECK(loops.size() == kLoopRows * kLoopRow && whole.size() == kWholeColumns);
  std::array<float, kLoopRows * kLoopFeatureColumns> plain{};
  write_loops_features(computation_, {.nest = nest, .cursor = 0}, plain);
  std::fill(loops.begin(), loops.end(), 0.0F);
  std::fill(whole.begin(), whole.end(), 0.0F);
  const std::size_t count = std::min(nest.loops.size(), kLoopRows);
  for (std::size_t level = 0; level < count; ++level) {
    const std::span<float> row = loops.subspan(level * kLoopRow, kLoopRow);
    std::copy_n(plain.begin() + static_cast<std::ptrdiff_t>(level * kLoopFeatureColumns),
                kLoopFeatureColumns, row.begin());
    write_loop(nest, level, row);
  }
  const auto lowered = lower(computation_, nest, unit_);
  if (lowered) {
    write_plan(nest, *lowered, loops, whole);
  }
  whole[kCompiles] = lowered ? 1 : 0;
  whole[kLanes] = static_cast<float>(unit_.lanes) / 16;
  whole[kRegisters] = static_cast<float>(unit_.registers) / 32;
  whole[kL1] = kLogUnit * static_cast<float>(log2_l1_);
  whole[kL2] = kLogUnit * static_cast<float>(log2_l2_);
  set_steps_left(steps_left, whole);
  whole[kLoops] = static_cast<float>(nest.loops.size()) / 8;
  for (const Loop& loop : nest.loops) {
    whole[kHasVector] += loop.mark == Mark::kVector ? 1.0F : 0.0F;
    whole[kHasParallel] += loop.mark == Mark::kParallel ? 1.0F : 0.0F;
  }
  whole[kHasBlock] = nest.block != Nest::kNoBlock ? 1 : 0;
  for (const Pack& pack : nest.packs) {
    whole[pack.input == 0 ? kPacksFirst : kPacksOther] = 1;
  }
  whole[kCombined] = static_cast<float>(computation_.combined) / 2;
  whole[kSteps] = static_cast<float>(computation_.steps.size()) / 4;
  whole[kFlops] = kLogUnit * static_cast<float>(log2_flops_);
  whole[kHasPadding] = lowered && std::find(lowered->is_padded.begin(), lowered->is_padded.end(),
                                            true) != lowered->is_padded.end()
                           ? 1
                           : 0;
  whole[kReduces] = computation_.has_reduction() ? 1 : 0;
  whole[kVariables] = static_cast<float>(computation_.vars.size()) / 8;
  whole[kMultiplies] = computation_.combined == 2 && computation_.combine == Op::kMultiply ? 1 : 0;
  return lowered.has_value();
}

}  // namespace foretune::loop
