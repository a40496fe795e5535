// Layers with fewer weights (LayerVariant::reduction).
//
//   FORETUNE_TRY(const std::vector<float> fewer,
//                reduced_weights(*tensor.values, tensor.shape,
//                                {.reduction = Reduction::kPruned, .reduction_of = 2,
//                                 .reduction_by = 1}));
//
// Weights are those of a network: filters x channels x rows x columns of a convolution, outputs x
// inputs of a linear operation, which count as filters and channels.
//
// Thread safety: free functions. Cost: low ranks take the eigenvectors of a matrix of as many rows
// as there are filters or inputs of one; all others pass over the weights a few times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/graph/run/variant.h"

namespace foretune::graph {

// Says why a layer cannot have the variant's reduction.
Support can_reduce(const Network& network, const Node& node, const LayerVariant& variant);

// Returns weights of the same shape that compute the same as the layer does: those that are left
// out are 0, low ranks are multiplied out, an own transform is applied. The variant is one that the
// layer can have. Errors: those of an own transform.
Result<std::vector<float>> reduced_weights(std::span<const float> weights, const Shape& shape,
                                           const LayerVariant& variant);

// Returns the rank that is left of a matrix of this shape.
std::int64_t reduced_rank(const Shape& shape, const LayerVariant& variant);

// Returns how many numbers a layer stores for weights of this shape. A pruned weight that is left
// takes two, since its place is stored, too.
double stored_weights(const Shape& shape, const LayerVariant& variant);

// Two matrices whose product is close to one of `rows` rows; both are stored by rows.
struct Factors {
  std::vector<float> left;   // rows x rank
  std::vector<float> right;  // rank x columns
};
// Returns the factors with the smallest sum of squared differences. `rank` is from 1 to the smaller
// extent.
Factors factorise(std::span<const float> matrix, std::int64_t rows, std::int64_t rank);

}  // namespace foretune::graph
