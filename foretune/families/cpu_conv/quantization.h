// How integers of a convolution stand for real numbers. An input x stands for (x - input_zero)
// times its scale, a weight for itself times the scale of its filter. Around the image lies
// input_zero. Sums, and a bias, which is added to them, are in units of both scales.
//
// An output of i8 is clamp(round(sum * scale + (addend - addend_zero) * addend_scale) +
// output_zero) with the rounding that kernels/output_stage.h describes; both scales are relative to
// that of the output. An output of sums has no scales; an addend is then one of sums as well.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace foretune {

struct ConvQuantization {
  const float* scales = nullptr;  // one for each filter; only for an output of i8
  std::int32_t input_zero = 0;    // all zeros are from -128 to 127
  std::int32_t output_zero = 0;
  float addend_scale = 1;
  std::int32_t addend_zero = 0;
};

}  // namespace foretune
