// A nest as an agent sees it: a row of numbers for every loop and one for the whole, with the facts
// of the machine and what the compiler makes of the nest. Nothing says at which position a variable
// stands in the computation, so that products, convolutions and reductions look alike where their
// loops do.
//
//   PolicyObserver observer(computation, unit, {.l1_bytes = 48 << 10, .l2_bytes = 2 << 20});
//   observer.observe(nest, steps_left, loops, whole);
//
// Thread safety: immutable. The computation must outlive it. Cost: a few microseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "foretune/loop/computation.h"
#include "foretune/loop/loop_actions.h"
#include "foretune/loop/loop_features.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

// Facts of the machine that the best schedule depends on. Bytes of one core's caches.
struct PolicyMachine {
  double l1_bytes = 32 << 10;
  double l2_bytes = 1 << 20;
};

class PolicyObserver {
 public:
  // Columns are part of trained policies: never reorder, add at the end.
  static constexpr std::size_t kLoopColumns = kLoopFeatureColumns + 15;
  static constexpr std::size_t kWholeColumns = 30;
  static constexpr std::size_t kLoopFloats = LoopActions::kLevels * kLoopColumns;

  PolicyObserver(const Computation& computation, const VectorUnit& unit,
                 const PolicyMachine& machine);

  // Writes `loops`, [LoopActions::kLevels][kLoopColumns], outermost first with zeros behind the
  // last loop, and `whole`, [kWholeColumns]; values are of the order of 1. `steps_left` is a part
  // of the longest episode, from 0 to 1. Returns true when the schedule can be compiled; otherwise
  // the columns of the plan are 0.
  bool observe(const Nest& nest, double steps_left, std::span<float> loops,
               std::span<float> whole) const;

  // Changes `steps_left` of a row that observe() wrote.
  static void set_steps_left(double steps_left, std::span<float> whole);

 private:
  void write_plan(const Nest& nest, const Lowered& lowered, std::span<float> loops,
                  std::span<float> whole) const;
  void write_loop(const Nest& nest, std::size_t level, std::span<float> row) const;

  const Computation& computation_;
  VectorUnit unit_;
  double log2_l1_;
  double log2_l2_;
  double log2_flops_;
};

}  // namespace foretune::loop
