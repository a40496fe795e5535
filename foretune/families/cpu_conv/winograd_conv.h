// Winograd's algorithm for forward passes and gradients of inputs, channels last: 3 x 3 filters in
// two dimensions, stride 1, no dilation, one group. Tiles of 2 x 2 or 4 x 4 output points take 16
// or 36 products of a channel and a filter where the definition takes 36 or 144; the transforms of
// tiles and weights round differently (docs/guides/convolutions.md has the errors).
//
// A block of tiles is transformed and multiplied position by position with the transformed weights:
// matrix products of tiles times output channels, summed over input channels. A register block is
// `mr` tiles times `nr` output channels. With order=filters each panel of nr output channels is
// transformed back before the next one, with order=points all panels at once.
//
// Thread safety and cost: as TapConv. Threads share the blocks.
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
#include "foretune/kernels/winograd_kernel.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

class WinogradConv {
 public:
  // Errors: as TapConv::create(); kUnsupported also for problems other than those above.
  static Result<WinogradConv> create(const ConvProblem& problem, const CpuConvConfig& config,
                                     ThreadPool* pool);

  // Returns the output points of a tile's row.
  [[nodiscard]] int tile_points() const { return static_cast<int>(points_); }
  // Sizes in floats.
  [[nodiscard]] std::size_t packed_size() const;
  [[nodiscard]] std::size_t workspace_size() const {
    return (zeros_size() + positions() * (input_step_ + output_step_)) *
           static_cast<std::size_t>(config_.threads);
  }
  void pack_weights(const float* weights, std::span<float> packed) const;
  void run(const ConvOperands& operands, std::span<const float> packed,
           std::span<float> workspace) const;

 private:
  struct Tile {
    std::ptrdiff_t image = 0;
    std::ptrdiff_t y = 0;  // first output point
    std::ptrdiff_t x = 0;
  };
  // Buffers of a thread.
  struct Space {
    float* zeros;
    float* inputs;   // [position][tile][input channel]
    float* outputs;  // [position][tile][output channel of the panels at hand]
  };

  WinogradConv() = default;
  [[nodiscard]] std::size_t positions() const {
    return static_cast<std::size_t>((points_ + 2) * (points_ + 2));
  }
  [[nodiscard]] std::size_t zeros_size() const { return in_lines(view_.inputs); }
  [[nodiscard]] Tile tile_at(std::ptrdiff_t number) const;
  void transform_input(const Range& tiles, const float* input, const Space& space) const;
  void multiply(std::ptrdiff_t tiles, const Range& panels, const float* packed,
                const Space& space) const;
  void transform_output(const Range& tiles, const Range& panels, const ConvOperands& operands,
                        const Space& space) const;

  ConvView view_;
  CpuConvConfig config_;
  ThreadPool* pool_ = nullptr;
  const KernelSet* kernels_ = nullptr;
  const WinogradKernels* transforms_ = nullptr;
  std::ptrdiff_t points_ = 2;   // of a tile's row
  std::ptrdiff_t tiles_w_ = 1;  // of an image's row
  std::ptrdiff_t tiles_h_ = 1;
  std::ptrdiff_t block_ = 1;   // tiles
  std::ptrdiff_t panels_ = 1;  // of output channels
  std::ptrdiff_t panels_at_once_ = 1;
  std::ptrdiff_t row_ = 1;      // floats of a tile in Space::outputs
  std::size_t input_step_ = 0;  // between positions
  std::size_t output_step_ = 0;
  std::size_t weight_step_ = 0;
};

}  // namespace foretune::cpu_conv
