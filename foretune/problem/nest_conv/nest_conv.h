// The fields of a convolution as a loop nest: b images of c channels and h x w points, o kernels of
// r x s points, in f32, with one stride, dilation and padding for both directions, in groups, with
// a bias along o and ReLU behind it.
//
//   nest_conv b=1 c=64 h=56 w=56 o=64 r=3 s=3 pad=1 layout=nhwc
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include "foretune/problem/problem.h"

namespace foretune {

inline constexpr ProblemType kNestConvProblem{7};  // in files: never renumber

// Positions of the fields.
enum class NestConvField : std::uint8_t {
  kBatch,
  kChannels,
  kHeight,
  kWidth,
  kOutChannels,
  kKernelHeight,
  kKernelWidth,
  kStride,
  kDilation,
  kPad,
  kGroups,
  kLayout,
  kBias,
  kRelu,
};

// Stored in files: never renumber.
enum class NestConvLayout : std::uint8_t {
  kNchw = 0,  // with weights as OIHW
  kNhwc = 1,  // with weights as HWIO
};

}  // namespace foretune
