// The fields of a reduction as a loop nest: out[r] = op over c of in[r][c], or of columns, out[c] =
// op over r of in[r][c], in f32.
//
//   nest_reduce r=64 c=512 op=add of_columns=no
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include "foretune/problem/problem.h"

namespace foretune {

inline constexpr ProblemType kNestReduceProblem{8};  // in files: never renumber

// Positions of the fields.
enum class NestReduceField : std::uint8_t { kRows, kColumns, kOperation, kOfColumns };

// Stored in files: never renumber.
enum class NestReduction : std::uint8_t { kAdd = 0, kMax = 1, kMin = 2 };

}  // namespace foretune
