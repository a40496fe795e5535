// Weights of 8 bits: a quarter of the memory, and products that instructions of their own sum four
// at a time.
//
//   FORETUNE_TRY(const Network small, with_int8_weights(network));
//
// A weight is a whole number from -127 to 127 times its output's step and its input's scale, which
// is the largest of the input's weights: batch normalisation leaves inputs that hardly vary weights
// a hundred times as large as others have, which would all become 0 beside them. What enters such a
// layer is made of 8 bits as well, for each candidate by its own range, which holds 0:
//
//   x[k] = value[k] * input_scales[k]
//   low = min(0, x...)   high = max(0, x...)   step = (high - low) / 255
//   q[k] = round((x[k] - low) * (255 / (high - low)))        ties to even; 0 for ranges below 1e-30
//   y[o] = bias[o] + steps[o] * (low * sum over k of w[k][o]  +  step * sum over k of q[k] w[k][o])
//
// Both sums are exact, everything else is rounded once in the order of int8_sums(): the same bits
// on every CPU. The scheme is the dynamic quantisation of the frameworks (affine for values,
// symmetric per channel for weights; Krishnamoorthi, arXiv:1806.08342); nothing has to be
// calibrated, so that a problem unlike all of training is not cut off.
//
// Thread safety: free functions without state.
#pragma once

#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/models/infer/network.h"

namespace foretune {

// A chain's layers between the first, which sees the inputs and is small, and the last, which has
// one output. Errors: kUnsupported for two towers, of which a query reads no weights, and for
// chains that have no layers in between.
Result<Network> with_int8_weights(const Network& network);
[[nodiscard]] bool has_int8_weights(const Network& network);

// What the layer's weights make of `values`, with the bias. The slow, obviously right evaluation.
std::vector<float> int8_sums(const DenseLayer& layer, std::span<const float> values);

}  // namespace foretune
