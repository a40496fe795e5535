// Convolutions whose groups have one channel, channels last: forward passes and gradients of
// inputs. A register block is `mr` neighbouring points of a row times `nr` channels. Points at the
// edges of the image leave out the taps that read zeros, so no input is copied.
//
//   FORETUNE_TRY(const DepthwiseConv conv, DepthwiseConv::create(problem, config, pool));
//
// Thread safety and cost: as TapConv. `order` says what a thread goes through first: `filters` all
// points of a slab for each block of channels, `points` all channels for each block of points.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/conv_view.h"
#include "foretune/families/cpu_conv/input_slab.h"
#include "foretune/families/cpu_conv/tap_conv.h"
#include "foretune/kernels/depthwise_kernel.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

class DepthwiseConv {
 public:
  // Errors: as TapConv::create(); kUnsupported also for groups of more than one channel or filter.
  static Result<DepthwiseConv> create(const ConvProblem& problem, const CpuConvConfig& config,
                                      ThreadPool* pool);

  // Sizes in floats.
  [[nodiscard]] std::size_t packed_size() const {
    return static_cast<std::size_t>(view_.filter_points * view_.groups);
  }
  void pack_weights(const float* weights, std::span<float> packed) const;
  void run(const ConvOperands& operands, std::span<const float> packed) const;

 private:
  // Points of a row that have the same taps within the image.
  struct Stretch {
    Range points;
    Range columns;  // of taps
  };
  // One grid of the view, planned.
  struct Grid {
    ConvGrid grid;
    // [z * count.h + y]: the rows of taps within the image, by depth and height
    std::vector<std::vector<DepthwiseTap>> rows;
    std::vector<DepthwiseTap> columns;  // of taps, by width
    std::vector<Stretch> stretches;
  };

  DepthwiseConv() = default;
  [[nodiscard]] Grid plan(const ConvGrid& grid) const;
  void run_row(const Grid& grid, std::ptrdiff_t n, std::ptrdiff_t z, std::ptrdiff_t y,
               const Range& channels, const ConvOperands& operands, const float* packed) const;

  ConvView view_;
  CpuConvConfig config_;
  ThreadPool* pool_ = nullptr;
  const DepthwiseKernelSet* kernels_ = nullptr;
  std::vector<Grid> grids_;
};

}  // namespace foretune::cpu_conv
