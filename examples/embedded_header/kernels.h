// Matrix products C = A * B of matrices stored by rows, with blocks of C in registers: one kernel
// for each shape of a block.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

using Kernel = void (*)(int m, int n, int k, const float* a, const float* b, float* c);
using Vector = float __attribute__((vector_size(16)));  // of gcc and clang
inline constexpr int kLanes = 4;

template <int Rows, int Columns>
void multiply(int m, int n, int k, const float* a, const float* b, float* c) {
  constexpr int kVectors = Columns / kLanes;
  for (int i0 = 0; i0 < m; i0 += Rows) {
    for (int j0 = 0; j0 < n; j0 += Columns) {
      if (i0 + Rows <= m && j0 + Columns <= n) {
        Vector sums[Rows][kVectors] = {};
        for (int l = 0; l < k; ++l) {
          for (int v = 0; v < kVectors; ++v) {
            Vector row_of_b;
            std::memcpy(&row_of_b, b + l * n + j0 + v * kLanes, sizeof row_of_b);
            for (int i = 0; i < Rows; ++i) {
              sums[i][v] += a[(i0 + i) * k + l] * row_of_b;
            }
          }
        }
        for (int i = 0; i < Rows; ++i) {
          std::memcpy(c + (i0 + i) * n + j0, sums[i], sizeof sums[i]);
        }
        continue;
      }
      for (int i = i0; i < m && i < i0 + Rows; ++i) {  // at the edge, where blocks do not fit
        for (int j = j0; j < n && j < j0 + Columns; ++j) {
          float sum = 0;
          for (int l = 0; l < k; ++l) {
            sum += a[i * k + l] * b[l * n + j];
          }
          c[i * n + j] = sum;
        }
      }
    }
  }
}

struct Variant {
  int rows;
  int columns;
  Kernel run;
};

inline constexpr std::array<Variant, 8> kVariants{{{1, 4, multiply<1, 4>},
                                                   {1, 16, multiply<1, 16>},
                                                   {2, 4, multiply<2, 4>},
                                                   {2, 16, multiply<2, 16>},
                                                   {4, 4, multiply<4, 4>},
                                                   {4, 8, multiply<4, 8>},
                                                   {6, 8, multiply<6, 8>},
                                                   {12, 4, multiply<12, 4>}}};
