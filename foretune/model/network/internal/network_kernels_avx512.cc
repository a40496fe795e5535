#include "foretune/model/network/internal/network_kernels.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__FMA__)
#include "foretune/model/network/internal/network_avx512_inl.h"

namespace foretune {

const NetworkKernels* network_kernels_avx512() { return kernels_of<Avx512>(); }

}  // namespace foretune
#else
namespace foretune {
const NetworkKernels* network_kernels_avx512() { return nullptr; }
}  // namespace foretune
#endif
