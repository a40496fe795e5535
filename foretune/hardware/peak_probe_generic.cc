#include <cstring>

#include "foretune/hardware/internal/peak_probe_inl.h"

namespace foretune::hardware_internal {

double fma_probe_generic(std::size_t rounds) {
  return fma_probe<kGenericLanes, kGenericAccumulators>(rounds);
}

double read_probe(const float* data, std::size_t count) {
  // Eight chains of 16-byte sums keep enough loads in flight to saturate the memory.
  constexpr std::size_t kChains = 8;
  using V = Vector<kGenericLanes>::Type;
  V sums[kChains] = {};  // NOLINT(modernize-avoid-c-arrays): register variables
  std::size_t i = 0;
  for (; i + kChains * kGenericLanes <= count; i += kChains * kGenericLanes) {
#pragma GCC unroll 8
    for (std::size_t chain = 0; chain < kChains; ++chain) {
      V loaded;
      std::memcpy(&loaded, data + i + chain * kGenericLanes, sizeof(V));
      sums[chain] += loaded;
    }
  }
  double total = 0;
  for (const V& sum : sums) {
    for (int lane = 0; lane < kGenericLanes; ++lane) {
      total += static_cast<double>(sum[lane]);
    }
  }
  return total;
}

}  // namespace foretune::hardware_internal
