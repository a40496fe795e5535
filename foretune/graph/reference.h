// Computes a network slowly in f64, operation by operation, as the oracle of the fast executors.
//
//   FORETUNE_TRY(const auto outputs, run_reference(network, {image_values}, batch));
//
// Thread safety: free functions. Cost: seconds for an image of a large network.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune::graph {

// Returns the shape of a tensor for a batch; constants keep theirs.
[[nodiscard]] Shape batch_shape(const Tensor& tensor, std::int64_t batch);

// Returns the values of all tensors by TensorId, in row-major order with channels first. Those of
// constants are empty. Errors: kInvalidArgument unless every input has the values of `batch`
// images.
Result<std::vector<std::vector<double>>> run_reference_tensors(
    const Network& network, std::span<const std::vector<float>> inputs, std::int64_t batch);

// Returns the values of the outputs. Errors: as run_reference_tensors().
Result<std::vector<std::vector<double>>> run_reference(const Network& network,
                                                       std::span<const std::vector<float>> inputs,
                                                       std::int64_t batch);

}  // namespace foretune::graph
