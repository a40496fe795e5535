// Loops that keep the multiply-add units or the memory busy; one file per instruction set.
// Thread safety: free functions without state.
#pragma once

#include <cstddef>

#include "foretune/hardware/cpu.h"

namespace foretune::hardware_internal {

// Runs `rounds` rounds of independent multiply-adds on whole vectors. Returns a value that depends
// on all of them, so that the compiler can remove none. Flops: rounds * accumulators * 2 * lanes.
double fma_probe_generic(std::size_t rounds);
double fma_probe_avx2(std::size_t rounds);
double fma_probe_avx512(std::size_t rounds);
inline constexpr int kGenericLanes = 4;
inline constexpr int kAvx2Lanes = 8;
inline constexpr int kAvx512Lanes = 16;
// Two units with a latency of 4 or 5 cycles need 10 sums in flight. With more sums than fit into
// the registers beside the two constants, the probe would measure the stores of the spills; in 16
// registers, 12 sums leave room.
inline constexpr int kGenericAccumulators = 12;
inline constexpr int kAvx2Accumulators = 12;
inline constexpr int kAvx512Accumulators = 24;

struct FmaProbe {
  double (*run)(std::size_t rounds);
  int flops_per_round;
};
FmaProbe fma_probe_of(CpuIsa isa);

// Sums `count` floats with the widest loads that are safe everywhere.
double read_probe(const float* data, std::size_t count);

}  // namespace foretune::hardware_internal
