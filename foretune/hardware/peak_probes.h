// Loops that keep the multiply-add units or the memory busy; one file per instruction set.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>

namespace foretune::hardware_internal {

// `rounds` rounds of 24 independent multiply-adds on whole vectors. Returns a value that depends on
// all of them, so that nothing can be left out. Flops: rounds * 24 * 2 * lanes.
inline constexpr int kAccumulators = 24;
double fma_probe_generic(std::size_t rounds);
double fma_probe_avx2(std::size_t rounds);
double fma_probe_avx512(std::size_t rounds);
inline constexpr int kGenericLanes = 4;
inline constexpr int kAvx2Lanes = 8;
inline constexpr int kAvx512Lanes = 16;

// Sums `count` floats with the widest loads that are safe everywhere.
double read_probe(const float* data, std::size_t count);

}  // namespace foretune::hardware_internal
