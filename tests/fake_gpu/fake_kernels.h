// The kernels of cuda::Device on the host, as foretune/cuda/kernels/check.cu has them.
#pragma once

#include <functional>
#include <span>

#include "foretune/cuda/driver_api.h"
#include "tests/fake_gpu/fake_state.h"

namespace foretune::fake_gpu {

struct Launch {
  void** parameters = nullptr;
  unsigned grid_x = 1;
  unsigned grid_z = 1;
  unsigned block_x = 1;
};

}  // namespace foretune::fake_gpu

struct foretune::cuda::FunctionObject {
  const char* name;
  // Copies the arguments of a launch.
  std::function<foretune::fake_gpu::Operation(const foretune::fake_gpu::Launch& launch)> bind;
};

namespace foretune::fake_gpu {

std::span<cuda::FunctionObject> kernels();

}  // namespace foretune::fake_gpu
