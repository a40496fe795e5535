// Networks with the layers of PyTorch, and the code that folds them into the layers that inference
// runs. The trainer writes such lists, and readers of checkpoints return them.
//
//   Linear-ReLU-BatchNorm-Linear becomes two dense layers: the normalisation y = a x + b of the
//   first one's outputs goes into the weights of the second. BatchNorm straight after a Linear goes
//   into that one. A BatchNorm before a skip connection stays, as the scale and shift of the layer.
//
// A residual block [Linear-ReLU-BatchNorm-Linear-BatchNorm] + x becomes two dense layers, the
// second of which adds the skip connection. Dropout does nothing at inference; the writer of the
// list leaves it out.
// Thread safety: plain data and free functions. Cost: folding is one pass over the weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foretune/base/byte_io.h"
#include "foretune/base/result.h"
#include "foretune/model/network/network.h"

namespace foretune {

struct TorchLayer {
  // Stored in files: never renumber.
  enum class Kind : std::uint8_t {
    kLinear = 0,
    kRelu = 1,
    kBatchNorm = 2,   // over the last dimension, by its running statistics
    kBeginBlock = 3,  // of a residual block
    kEndBlock = 4,    // adds what entered the block
  };
  Kind kind = Kind::kRelu;
  std::uint32_t inputs = 0;  // of kLinear; of kBatchNorm both are the width
  std::uint32_t outputs = 0;
  std::vector<float> weight;  // kLinear: `inputs` for each output, as torch; kBatchNorm: gamma
  std::vector<float> bias;    // kBatchNorm: beta
  std::vector<float> mean;    // of kBatchNorm, running
  std::vector<float> variance;
  double epsilon = 1e-5;  // of kBatchNorm
  bool operator==(const TorchLayer&) const = default;
};

// Errors: kCorrupt for layers that do not fit each other or hold no numbers; kUnsupported for an
// order of layers that cannot be folded (blocks in blocks, blocks of other than two linear layers).
Result<std::vector<DenseLayer>> fold_layers(std::span<const TorchLayer> layers);

// The slow, obviously right forward pass in double precision. `input` is as long as the first
// linear layer's inputs; the layers have passed fold_layers().
std::vector<double> evaluate_layers(std::span<const TorchLayer> layers,
                                    std::span<const double> input);

// get_torch_layers() checks each layer alone; fold_layers() says whether they fit each other.
void put_torch_layers(ByteWriter& writer, std::span<const TorchLayer> layers);
Result<std::vector<TorchLayer>> get_torch_layers(ByteReader& reader);

}  // namespace foretune
