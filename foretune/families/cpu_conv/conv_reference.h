// Convolutions by their definition, in double precision: the oracle of all kernels. It shares no
// code with them.
// Thread safety: free functions. Cost: a second for some 10^9 multiply-adds.
#pragma once

#include <span>

#include "foretune/problem/conv/conv.h"

namespace foretune::cpu_conv {

// The tensors of a convolution, dense, in the problem's layout; the one that is computed may be
// empty.
struct ConvTensors {
  std::span<const double> input;
  std::span<const double> weights;
  std::span<const double> output;
};

// Computes the output, the gradient of the input or the gradient of the weights, after the
// problem's operation, without its epilogue. `result` has the elements of the tensor that is
// computed.
void reference_conv(const ConvProblem& problem, const ConvTensors& tensors,
                    std::span<double> result);

}  // namespace foretune::cpu_conv
