// Matrix products as cuBLASLt defines them, on the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foretune/cuda/cublaslt_api.h"
#include "foretune/cuda/driver_api.h"
#include "tests/fake_gpu/fake_state.h"

namespace foretune::fake_gpu {

// A matrix per batch, stored by columns.
struct Matrix {
  cublaslt::CudaType type = cublaslt::CudaType::kF32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  std::int32_t batches = 1;
  std::int64_t stride = 0;  // elements from one batch to the next
  cuda::DevicePointer pointer = 0;

  // From the first to the last element.
  [[nodiscard]] std::size_t bytes() const;
};

enum class Activation : std::uint8_t { kNone, kRelu, kGelu };

// D = activation(alpha * op(A) * op(B) + beta * C + bias).
struct Product {
  cublaslt::ComputeType compute = cublaslt::ComputeType::kF32;
  bool transpose_a = false;
  bool transpose_b = false;
  Matrix a;
  Matrix b;
  Matrix c;
  Matrix d;
  std::int64_t k = 0;
  double alpha = 1;
  double beta = 0;
  Activation activation = Activation::kNone;
  bool has_bias = false;
  cublaslt::CudaType bias_type = cublaslt::CudaType::kF32;
  cuda::DevicePointer bias = 0;
  // Faults of the tile that computes it.
  bool wrong = false;
  bool last_not_written = false;
};

std::size_t type_bytes(cublaslt::CudaType type);

// Computes it. False when a range lies outside of device memory.
bool run_product(Memory& memory, const Product& product);

}  // namespace foretune::fake_gpu
