// The kernels of cuda::Device on the host, as foretune/cuda/kernels/check.cu has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "foretune/cuda/driver_api.h"
#include "foretune/problem/gemm/gemm.h"
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

// Elements of device memory, stored as their type says; storing rounds to nearest even.
std::uint64_t element_bytes(DataType type);
float load_element(const std::byte* from, DataType type, std::uint64_t i);
void store_element(std::byte* to, DataType type, std::uint64_t i, float value);

}  // namespace foretune::fake_gpu
