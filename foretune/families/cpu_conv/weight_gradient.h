// Gradients of weights, channels last, by micro-kernels that sum over output points. A register
// block is `mr` output channels times `nr` values of a filter (input channels; with taps=row those
// of all taps of a row). It stays in registers over all points of a chunk of rows, and reads both
// operands where they are: the output's gradient by columns, the input by rows.
//
// Where taps reach beyond the image, a slab of the input is copied with zeros around it, as in
// TapConv. Sums of slabs are added in the gradient itself.
//
// Thread safety and cost: as TapConv.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/conv_view.h"
#include "foretune/families/cpu_conv/input_slab.h"
#include "foretune/families/cpu_conv/tap_conv.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

// Dense tensors, channels last. The gradient must not overlap the others.
struct WeightGradientOperands {
  const float* input = nullptr;
  const float* output_gradient = nullptr;
  float* gradient = nullptr;  // of the weights, in their layout
};

class WeightGradient {
 public:
  // Errors: as TapConv::create().
  static Result<WeightGradient> create(const ConvProblem& problem, const CpuConvConfig& config,
                                       ThreadPool* pool);
  // In floats.
  [[nodiscard]] std::size_t workspace_size() const {
    const auto threads = static_cast<std::size_t>(config_.threads);
    const std::size_t gradients =
        (shares_points() ? threads - 1 : 0) + (is_turned() ? std::size_t{1} : std::size_t{0});
    return slab_size_ * threads + gradient_size_ * gradients;
  }
  void run(const WeightGradientOperands& operands, std::span<float> workspace) const;

 private:
  // Where the rows of a slab begin in both operands, relative to the first: those whose input a row
  // of the filter finds within the image.
  struct Rows {
    std::vector<std::ptrdiff_t> output;
    std::vector<std::ptrdiff_t> input;
  };
  // Neighbouring values of a filter that one run of input multiplies.
  struct Run {
    std::ptrdiff_t offset = 0;  // of the input
    std::ptrdiff_t place = 0;   // in a filter
    std::ptrdiff_t length = 0;
    std::size_t filter_row = 0;
  };
  struct Block;

  WeightGradient() = default;
  // Returns true when each thread sums some of the points into a gradient of its own.
  [[nodiscard]] bool shares_points() const {
    return config_.threads > 1 && config_.split == ConvSplit::kPoints;
  }
  // Returns true when register blocks have rows of values and columns of output channels.
  [[nodiscard]] bool is_turned() const { return config_.algorithm == ConvAlgorithm::kTurned; }
  // Returns the values of a run in a register block.
  [[nodiscard]] std::ptrdiff_t values_of(const Run& run) const {
    return is_turned() ? even_part(run.length, config_.mr) : config_.nr;
  }
  [[nodiscard]] Rows rows_of(const Slab& slab, std::ptrdiff_t filter_row) const;
  void run_slab(std::size_t slab, std::ptrdiff_t group, const Range& blocks,
                const WeightGradientOperands& operands, bool adds, float* workspace) const;
  void run_block(const Block& block) const;
  void run_turned_block(const Block& block) const;
  void turn(const float* sums, const Range& blocks, float* gradient) const;

  ConvView view_;
  CpuConvConfig config_;
  ThreadPool* pool_ = nullptr;
  const TapKernelSet* kernels_ = nullptr;
  InputSlabs input_;
  std::size_t filter_rows_ = 1;
  std::vector<Rows> rows_;  // [slab * filter_rows_ + filter row]
  std::vector<Run> runs_;
  std::ptrdiff_t block_k_ = 1;  // output channels of a register block
  std::ptrdiff_t out_channels_ = 1;
  std::ptrdiff_t filter_size_ = 1;
  std::size_t gradient_size_ = 0;
  std::size_t slab_size_ = 0;
};

}  // namespace foretune::cpu_conv
