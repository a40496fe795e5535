#include "foretune/hardware/internal/peak_probe_inl.h"

#if !defined(__x86_64__)
#include "foretune/base/check.h"
#endif

namespace foretune::hardware_internal {

#if defined(__x86_64__)
double fma_probe_avx512(std::size_t rounds) {
  return fma_probe<kAvx512Lanes, kAvx512Accumulators>(rounds);
}
#else
double fma_probe_avx512(std::size_t /*rounds*/) {
  FORETUNE_CHECK(false);
  return 0;
}
#endif

}  // namespace foretune::hardware_internal
