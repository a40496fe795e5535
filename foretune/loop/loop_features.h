// The loops of a nest as rows of numbers: for agents that tune step by step and for trees.
//
//   std::vector<float> values(limits.max_loops * kLoopFeatureColumns);
//   write_loops_features(computation, state, values);
//
// Thread safety: free functions. Cost: some hundred nanoseconds, without allocations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

inline constexpr std::size_t kLoopFeatureColumns = 21;

// Elements that a round of the loop moves a tensor by, without its direction.
std::int64_t stride_of(const Tensor& tensor, const Loop& loop);

// Writes f32 [loops][21], figures of similar sizes, with zeros behind the last loop. The loops
// stand in the order they run, outermost first; memory for fewer of them takes the outermost ones.
// The columns have names (loops_feature_names()):
//   is_loop, cursor, is_reduction, unroll, vector, parallel, starts_block: 0 or 1
//   packs                     inputs that are packed before this loop
//   loops_around              over the same variable
//   log2_rounds               the shorter last one included
//   log2_step                 elements of the variable
//   remainder                 the shorter last round as a part of a whole one; 0 without one
//   *_is_still                1 where a round does not move the tensor
//   *_log2_stride             elements that a round moves it by; 0 where it is still
//   *_log2_bytes              of the tensor that one run of the loop and those inside of it touches
// with * for the output and the one or two inputs that are combined; of an input that is not there,
// all are 0.
void write_loops_features(const Computation& computation, const State& state, std::span<float> out);
std::span<const std::string_view> loops_feature_names();

}  // namespace foretune::loop
