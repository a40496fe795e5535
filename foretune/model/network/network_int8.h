// Weights of 8 bits take a quarter of the memory, and special instructions sum their products four
// at a time.
//
//   FORETUNE_TRY(const Network small, with_int8_weights(network));
//
// A weight is an integer from -127 to 127 times its output's step and its input's scale, which is
// the largest of the input's weights. Without the scale, all other weights would become 0 beside
// those of inputs that hardly vary: batch normalisation makes these a hundred times as large. The
// inputs of such a layer are quantised to 8 bits as well, by the range of each candidate, which
// includes 0:
//
//   x[k] = value[k] * input_scales[k]
//   low = min(0, x...)   high = max(0, x...)   step = (high - low) / 255
//   q[k] = round((x[k] - low) * (255 / (high - low)))        ties to even; 0 for ranges below 1e-30
//   y[o] = bias[o] + steps[o] * (low * sum over k of w[k][o]  +  step * sum over k of q[k] w[k][o])
//
// Both sums are exact. Everything else is rounded once, in the order of int8_sums(), so all CPUs
// give the same bits. The scheme is the dynamic quantisation of the frameworks (affine for values,
// symmetric per channel for weights; Krishnamoorthi, arXiv:1806.08342); it needs no calibration, so
// that the values of a problem unlike all training problems are not clipped.
//
// Thread safety: free functions without state.
#pragma once

#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/model/network/network.h"

namespace foretune {

// Quantises a chain's layers between the first, which sees the inputs and is small, and the last,
// which has one output. Errors: kUnsupported for two towers, since their queries read no weights of
// the config's tower, and for chains without layers in between.
Result<Network> with_int8_weights(const Network& network);
[[nodiscard]] bool has_int8_weights(const Network& network);

// Returns the layer's sums over `values`, with the bias. The slow, obviously right evaluation.
std::vector<float> int8_sums(const DenseLayer& layer, std::span<const float> values);

}  // namespace foretune
