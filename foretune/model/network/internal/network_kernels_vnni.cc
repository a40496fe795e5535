#include "foretune/model/network/internal/network_kernels.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__FMA__)
#include "foretune/model/network/internal/network_avx512_inl.h"

namespace foretune {
namespace {

// One instruction does four products and their sum, so there are as many sums as with floats. It is
// written in assembly because g++ 12 copies every sum of the intrinsic twice and keeps it in
// memory, at a third of the speed.
struct Vnni : Avx512 {
  static constexpr const char* kName = "AVX-512 VNNI";
  using Quads = I;
  using Weights = I;
  static constexpr std::size_t kInt8Outputs = 8;
  static Quads load_quads(const std::uint8_t* from) { return load_quads_whole(from); }
  static Weights set_weights(const std::int8_t* from) { return set_weights_whole(from); }
  static I dot(I sum, Quads values, Weights weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(values), "v"(weights));
    return sum;
  }
};

}  // namespace

const NetworkKernels* network_kernels_vnni() { return kernels_of<Vnni>(); }

}  // namespace foretune
#else
namespace foretune {
const NetworkKernels* network_kernels_vnni() { return nullptr; }
}  // namespace foretune
#endif
