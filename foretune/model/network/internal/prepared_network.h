// A network made ready for one pool of candidates. Internal to the module.
// Thread safety: immutable after creation; every thread brings its own scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/hardware/cpu.h"
#include "foretune/model/network/internal/network_kernels.h"
#include "foretune/model/network/network.h"

namespace foretune {

// Floats on a boundary of 64 bytes.
class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(std::size_t size);
  [[nodiscard]] float* data() { return data_.get(); }
  [[nodiscard]] const float* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(float* data) const;
  };
  std::unique_ptr<float[], Free> data_;
  std::size_t size_ = 0;
};

class PreparedNetwork {
 public:
  // `config_columns` holds, for each column of kind kConfig, one value per candidate.
  PreparedNetwork(const Network& network, std::size_t first_config_column,
                  std::size_t first_interaction_column, std::span<const double> config_columns,
                  std::size_t candidates, CpuIsa isa);

  // Floats of scratch, on a boundary of 64 bytes, that the functions below share.
  [[nodiscard]] std::size_t scratch_floats() const { return scratch_floats_; }

  // Once per query: `problem_row` are the columns of kind kProblem.
  void begin(std::span<const double> problem_row, std::span<const std::int64_t> fields,
             float* scratch) const;
  // One block of candidates. `interactions` holds rows of `stride` values for each column of kind
  // kInteraction, the first of them the block's first candidate.
  void score(std::size_t block, std::size_t count, const double* interactions, std::size_t stride,
             float* scratch, std::span<double> scores) const;

 private:
  // A dense layer as the kernels want it; its inputs may be some of the layer's.
  struct Layer {
    AlignedFloats weights;
    std::vector<std::int8_t> int8_weights;  // instead, in quads
    AlignedFloats int8_input_scales;
    AlignedFloats int8_sums;
    AlignedFloats int8_steps;
    AlignedFloats bias;
    AlignedFloats scale;  // empty: none
    AlignedFloats shift;
    std::size_t inputs = 0;
    std::size_t outputs = 0;
    bool is_rectified = false;
    bool adds_skip = false;
    bool has_positive_inputs = false;  // or 0: known to be
  };
  static Layer packed(const DenseLayer& layer, std::size_t first_input, std::size_t inputs,
                      bool has_bias);
  static void pack_weights(const DenseLayer& layer, std::size_t first_input, Layer& out);
  static void pack_int8_weights(const DenseLayer& layer, Layer& out);
  static NetworkDense task_of(const Layer& layer);
  static std::vector<Layer> packed_all(std::span<const DenseLayer> layers);
  // Values of a block through layers; `a` holds the inputs, `int8_values` has room for
  // int8_floats_. Returns where the outputs are: a or b.
  float* run(std::span<const Layer> layers, float* a, float* b, float* int8_values,
             std::size_t lanes) const;
  void add_config_parts(std::span<const double> config_columns, std::size_t first_config_column,
                        std::size_t candidates);
  void fill_config_block(std::span<const double> config_columns, std::size_t first_config_column,
                         std::size_t candidates, std::size_t block, float* out) const;

  const NetworkKernels* kernels_;
  Network network_;  // without its weights: inputs and what little else a query needs
  std::size_t first_interaction_ = 0;
  std::size_t interactions_ = 0;
  std::size_t width_ = 0;      // rows of the two blocks of values
  Layer problem_layer_;        // a chain's first layer, of the problem's inputs
  Layer config_layer_;         // the same of the config's
  Layer first_layer_;          // the same of the rest
  std::vector<Layer> layers_;  // of a chain behind the first, or of the problem's tower
  std::vector<Layer> config_layers_;
  AlignedFloats interaction_;
  AlignedFloats config_part_;    // block after block
  std::size_t config_rows_ = 0;  // of a block
  std::size_t int8_floats_ = 0;  // for values of 8 bits and their ranges; 0 where no layer has any
  std::size_t int8_offset_ = 0;
  std::size_t blocks_offset_ = 0;
  std::size_t scratch_floats_ = 0;
};

}  // namespace foretune
