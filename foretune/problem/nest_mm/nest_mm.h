// The fields of a matrix product as a loop nest: C[b][m][n] = sum over k of A[b][m][k] *
// B[b][k][n], in f32, all by rows unless transposed, with a bias along n and ReLU behind it.
//
//   nest_mm m=64 n=80 k=96 batch=1 ta=no tb=no bias=no relu=yes
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include "foretune/problem/problem.h"

namespace foretune {

inline constexpr ProblemType kNestMmProblem{6};  // in files: never renumber

// Positions of the fields.
enum class NestMmField : std::uint8_t {
  kM,
  kN,
  kK,
  kBatch,
  kTransposeA,
  kTransposeB,
  kBias,
  kRelu
};

}  // namespace foretune
