#include "foretune/families/cpu_gemm/gemm_reference.h"

#include <algorithm>
#include <array>

namespace foretune {
namespace {

// Four rows share the conversion of B to double, and a strip of sums stays in the L1 cache: the
// textbook loop otherwise, with the column innermost so that it vectorises without reordering.
constexpr std::ptrdiff_t kRows = 4;
constexpr std::ptrdiff_t kStrip = 256;

}  // namespace

void reference_product(const float* a, std::ptrdiff_t a_stride, const float* b,
                       std::ptrdiff_t b_stride, std::ptrdiff_t rows, std::ptrdiff_t columns,
                       std::ptrdiff_t k, double* out) {
  std::array<std::array<double, kStrip>, kRows> sums{};
  for (std::ptrdiff_t i = 0; i < rows; i += kRows) {
    const std::ptrdiff_t height = std::min(kRows, rows - i);
    for (std::ptrdiff_t j = 0; j < columns; j += kStrip) {
      const std::ptrdiff_t width = std::min(kStrip, columns - j);
      for (auto& row : sums) {
        row.fill(0);
      }
      for (std::ptrdiff_t p = 0; p < k; ++p) {
        std::array<double, kRows> factors{};
        for (std::ptrdiff_t r = 0; r < height; ++r) {
          factors[static_cast<std::size_t>(r)] = static_cast<double>(a[(i + r) * a_stride + p]);
        }
        const float* row = b + p * b_stride + j;
        double* sum0 = sums[0].data();
        double* sum1 = sums[1].data();
        double* sum2 = sums[2].data();
        double* sum3 = sums[3].data();
        for (std::ptrdiff_t c = 0; c < width; ++c) {
          const auto value = static_cast<double>(row[c]);
          sum0[c] += factors[0] * value;
          sum1[c] += factors[1] * value;
          sum2[c] += factors[2] * value;
          sum3[c] += factors[3] * value;
        }
      }
      for (std::ptrdiff_t r = 0; r < height; ++r) {
        std::copy_n(sums[static_cast<std::size_t>(r)].begin(), width, out + (i + r) * columns + j);
      }
    }
  }
}

}  // namespace foretune
