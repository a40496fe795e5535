// The slow reference of matrix products: double precision, one plain loop nest, no packing, no
// intrinsics. The oracle of every f32 GEMM.
// Thread safety: free functions. Cost: about a third of a second per 10^9 operations.
#pragma once

#include <cstddef>

namespace foretune {

// out (rows x columns, dense) = A (rows x k) * B (k x columns), row-major with strides.
void reference_product(const float* a, std::ptrdiff_t a_stride, const float* b,
                       std::ptrdiff_t b_stride, std::ptrdiff_t rows, std::ptrdiff_t columns,
                       std::ptrdiff_t k, double* out);

}  // namespace foretune
