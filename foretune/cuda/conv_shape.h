// A convolution as the reference kernel of cuda::Device takes it: plain numbers, passed to the
// device by value. CUDA's compiler reads this file, too.
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace foretune::cuda {

// Sizes of one group; tensors hold all groups. `dilation` is the distance of a filter's points.
struct ConvShape {
  std::int32_t operation = 0;  // numbered as ConvOperation
  std::int32_t channels_last = 1;
  std::int32_t n = 1;
  std::int32_t groups = 1;
  std::int32_t c = 1;
  std::int32_t k = 1;
  std::int32_t in[3] = {1, 1, 1};  // depth, height, width
  std::int32_t out[3] = {1, 1, 1};
  std::int32_t filter[3] = {1, 1, 1};
  std::int32_t stride[3] = {1, 1, 1};
  std::int32_t pad[3] = {0, 0, 0};
  std::int32_t dilation[3] = {1, 1, 1};
};

}  // namespace foretune::cuda
