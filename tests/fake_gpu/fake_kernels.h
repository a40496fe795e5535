// The kernels of gpu::Device on the host, as foretune/gpu/kernels/check.cu has them.
#pragma once

#include <span>

#include "foretune/gpu/driver_api.h"
#include "tests/fake_gpu/fake_state.h"

struct foretune::gpu::FunctionObject {
  const char* name;
  // Copies the arguments of a launch.
  foretune::fake_gpu::Operation (*bind)(void** parameters);
};

namespace foretune::fake_gpu {

std::span<gpu::FunctionObject> kernels();

}  // namespace foretune::fake_gpu
