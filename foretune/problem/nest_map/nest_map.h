// The fields of a chain of elementwise steps as a loop nest: out[r][c] = chain(in[r][c], ...), in
// f32. All tensors of a chain have the shape of the first; they are named in, in1, in2, in3.
//
//   nest_map r=64 c=512 chain=bias_relu
//
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretune/problem/problem.h"

namespace foretune {

inline constexpr ProblemType kNestMapProblem{9};  // in files: never renumber

// Positions of the fields.
enum class NestMapField : std::uint8_t { kRows, kColumns, kChain };

// Stored in files: never renumber, and append only. loop/chains.h has the steps of each.
enum class NestChain : std::uint8_t {
  kRelu = 0,                    // max(in, 0)
  kRelu6 = 1,                   // min(max(in, 0), 6)
  kBiasRelu = 2,                // max(in + in1, 0)
  kResidual = 3,                // in + in1
  kScale = 4,                   // in * in1
  kScaleShift = 5,              // in * in1 + in2: a normalisation whose statistics are known
  kScaleShiftRelu = 6,          // max(in * in1 + in2, 0)
  kScaleShiftResidualRelu = 7,  // max(in * in1 + in2 + in3, 0): the end of a residual block
};

struct NestChainInfo {
  std::string_view label;
  int steps = 0;  // operations per element
  int inputs = 0;
};

// In the order of NestChain.
inline constexpr std::array<NestChainInfo, 8> kNestChains{{{"relu", 1, 1},
                                                           {"relu6", 2, 1},
                                                           {"bias_relu", 2, 2},
                                                           {"residual", 1, 2},
                                                           {"scale", 1, 2},
                                                           {"scale_shift", 2, 3},
                                                           {"scale_shift_relu", 3, 3},
                                                           {"scale_shift_residual_relu", 4, 4}}};

}  // namespace foretune
