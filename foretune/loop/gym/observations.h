// Observations of a state as numbers: f32 tensors, written by rows into the caller's memory. The
// unit of each is stated: rounds, elements of a tensor, bytes.
//
//   std::vector<float> values(kLoopTuneLimits.max_loops * kLoopsTensorColumns);
//   write_loops_tensor(computation, state, values);
//
// All describe the nest's loops in the order they run, outermost first. Where the memory has room
// for fewer loops, it gets the outermost ones.
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
using loop::write_loops_features;  // features that loops_tensor lacks
inline constexpr std::size_t kStrideBins = 32;
inline constexpr std::size_t kPreviousActions = 5;

// Writes LoopTune's tensor: f32 [loops][20], with zeros after the last loop. The columns of a loop:
//   0      1 where the cursor is
//   1      whole rounds
//   2      elements of the variable that are left for a shorter last round; 0 without one
//   3      1: a loop of the computation, and not of writing results back, which nests here lack
//   4-19   the share of the inputs that the loop moves through with a stride of
//          (2^(bin - 1), 2^bin] elements a round; larger strides are in the last bin. All 0 where
//          it moves through none.
// `out` has as many whole rows as it is to show loops.
void write_loops_tensor(const loop::Computation& computation, const State& state,
                        std::span<float> out);

// Writes f32 [32]: among all pairs of a loop and a tensor that it moves through (the output or an
// input), the share with a stride of (2^(bin - 1), 2^bin] elements a round; larger ones are in the
// last bin. All 0 where no loop moves anything. Rounds have no weight.
void write_stride_tensor(const loop::Computation& computation, const loop::Nest& nest,
                         std::span<float, kStrideBins> out);

// Writes f32 [earlier actions][actions of the set]: the last actions, oldest first, each a row with
// a 1 at its index in the set. Where there are fewer, the first rows are 0. `out` has as many whole
// rows as it is to show actions: kPreviousActions for LoopTune's tensor.
void write_previous_actions(const ActionSet& actions, std::span<const CursorAction> taken,
                            std::span<float> out);

}  // namespace foretune::loop::gym
