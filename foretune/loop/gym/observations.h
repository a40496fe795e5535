// What an agent is shown of a state, as numbers: f32 tensors written by rows into memory of the
// caller. Units are named with each: rounds, elements of a tensor, bytes.
//
//   std::vector<float> values(kLoopTuneLimits.max_loops * kLoopsTensorColumns);
//   write_loops_tensor(computation, state, values);
//
// All are of the nest's loops in the order they run, outermost first. Memory for fewer loops than
// there are takes the outermost ones.
//
// Thread safety: free functions. Cost: some hundred nanoseconds each, without allocations.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "foretune/loop/computation.h"
#include "foretune/loop/cursor_actions.h"
#include "foretune/loop/loop_features.h"

namespace foretune::loop::gym {

inline constexpr std::size_t kLoopStrideBins = 16;
inline constexpr std::size_t kLoopsTensorColumns = 4 + kLoopStrideBins;
using loop::kLoopFeatureColumns;
using loop::loops_feature_names;
using loop::write_loops_features;  // what loops_tensor leaves out
inline constexpr std::size_t kStrideBins = 32;
inline constexpr std::size_t kPreviousActions = 5;

// LoopTune's tensor: f32 [loops][20], zeros behind the last loop. Of each loop
//   0      1 where the cursor is
//   1      whole rounds
//   2      elements of the variable that are left for a shorter last round; 0 without one
//   3      1: a loop of the computation, and not of writing results back, which nests here have not
//   4-19   how many inputs the loop moves through by a stride of (2^(bin - 1), 2^bin] elements a
//          round, as parts of 1; larger strides are in the last bin. All 0 where it moves through
//          none.
// `out` is as many whole rows as loops are shown.
void write_loops_tensor(const loop::Computation& computation, const State& state,
                        std::span<float> out);

// f32 [32]: of all pairs of a loop and a tensor that it moves through, the output and every input,
// the part with a stride of (2^(bin - 1), 2^bin] elements a round; larger ones are in the last bin.
// All 0 where no loop moves anything. Rounds have no weight.
void write_stride_tensor(const loop::Computation& computation, const loop::Nest& nest,
                         std::span<float, kStrideBins> out);

// f32 [actions before][actions of the set]: the last actions, oldest first, each a row with a 1 at
// its index in the set. Where there are fewer, the first rows are 0. `out` is as many whole rows as
// actions are shown: kPreviousActions for LoopTune's tensor.
void write_previous_actions(const ActionSet& actions, std::span<const CursorAction> taken,
                            std::span<float> out);

}  // namespace foretune::loop::gym
