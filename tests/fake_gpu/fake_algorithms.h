// The algorithms of the fake cuBLASLt: their options, the configs that it accepts, and their times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foretune/cuda/cublaslt_api.h"
#include "tests/fake_gpu/fake_product.h"

namespace foretune::fake_gpu {

// Types as given to cublasLtMatmulAlgoInit.
struct Types {
  cublaslt::ComputeType compute = cublaslt::ComputeType::kF32;
  cublaslt::CudaType scale = cublaslt::CudaType::kF32;
  cublaslt::CudaType a = cublaslt::CudaType::kF32;
  cublaslt::CudaType b = cublaslt::CudaType::kF32;
  cublaslt::CudaType c = cublaslt::CudaType::kF32;
  cublaslt::CudaType d = cublaslt::CudaType::kF32;
  bool operator==(const Types&) const = default;
};

// The contents of a cublaslt::Algorithm.
struct Config {
  static constexpr std::uint32_t kMark = 0x666b6c74;
  std::uint32_t mark = 0;  // kMark, once cublasLtMatmulAlgoInit has set it
  std::int32_t algorithm = 0;
  std::uint32_t tile = 0;
  std::int32_t split_k = 1;
  std::uint32_t reduction = 0;
  std::uint32_t swizzle = 0;
  std::uint32_t custom = 0;
  std::uint32_t stages = 0;
  std::uint16_t inner_shape = 0;
  std::uint16_t cluster_shape = 0;
  Types types;
};
cublaslt::Algorithm pack(const Config& config);
// Returns nothing for an algorithm that cublasLtMatmulAlgoInit never set.
std::optional<Config> unpack(const cublaslt::Algorithm* algorithm);

struct AlgorithmFacts {
  std::int32_t id = 0;
  std::span<const std::uint32_t> tiles;
  std::span<const std::uint32_t> stages;
  std::span<const std::uint16_t> clusters;
  std::int32_t split_k = 0;
  std::uint32_t reduction_mask = 0;
  std::uint32_t swizzling = 0;
  std::int32_t custom_max = 0;
  double slowness = 1;
};
// Returns an empty list for types that are not supported.
std::span<const AlgorithmFacts> algorithms_for(const Types& types);
// Returns null when the types have no such algorithm.
const AlgorithmFacts* find_algorithm(const Types& types, std::int32_t id);

struct Verdict {
  int status = cublaslt::kNotSupported;
  std::size_t workspace_bytes = 0;
  float waves = 0;
};
// Decides whether the config can compute the product, whose pointers, alpha and beta may be
// missing.
Verdict judge(const Config& config, const Product& product, const Types& types);
// Returns the simulated time without jitter and without the cost of a cold cache.
double simulated_ns(const Config& config, const Product& product);
// Returns the configs that cublasLtMatmulAlgoGetHeuristic would offer, best first.
std::vector<Config> heuristic(const Product& product, const Types& types,
                              std::uint64_t max_workspace_bytes, std::size_t requested);

}  // namespace foretune::fake_gpu
