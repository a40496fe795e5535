// Convolutions on the host: the reference's kernel of cuda::Device and the engines of the fake
// cuDNN.
#pragma once

#include <vector>

#include "foretune/cuda/conv_shape.h"
#include "foretune/cuda/driver_api.h"
#include "foretune/problem/gemm/gemm.h"
#include "tests/fake_gpu/fake_state.h"

namespace foretune::fake_gpu {

struct ConvTensor {
  cuda::DevicePointer pointer = 0;
  DataType type = DataType::kF32;
};

// A convolution and the steps that follow it; bias and added may be missing.
struct Conv {
  cuda::ConvShape shape;
  ConvTensor input;
  ConvTensor weights;
  ConvTensor output;
  ConvTensor bias;
  ConvTensor added;
  bool relu = false;
  // Faults of the engine that computes it.
  bool wrong = false;
  bool last_not_written = false;
};

// Returns the number of elements of the tensor that the operation computes.
std::uint64_t conv_result_elements(const cuda::ConvShape& shape);
// Returns twice the number of multiply-adds, those with the padding included.
double conv_flops(const cuda::ConvShape& shape);
// Computes it. False when a range lies outside of device memory.
bool run_conv(Memory& memory, const Conv& conv);

}  // namespace foretune::fake_gpu
