// Convolutions that gather: forward passes and gradients of inputs, channels last, by micro-kernels
// that sum over taps. A register block is `mr` neighbouring output points of a row times `nr`
// output channels. It stays in registers while all taps and a chunk of input channels are summed,
// and reads the input where it is (implicit GEMM with indirect operands): no column matrix exists.
//
// Where taps reach beyond the image, a slab of the input is copied once, with zeros around it, and
// read by all output channels. Weights are packed once into panels of nr output channels.
//
//   FORETUNE_TRY(const TapConv conv, TapConv::create(problem, config, pool));
//   conv.pack_weights(weights, packed);
//   conv.run({.input = x, .output = y}, packed, workspace);
//
// Thread safety: several threads may call run() at once, each with a workspace of its own; but a
// convolution with several threads uses the pool, which serves one call at a time. Cost: run()
// neither allocates nor locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/conv_view.h"
#include "foretune/families/cpu_conv/input_slab.h"
#include "foretune/families/cpu_conv/quantization.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

// Tensors are dense, channels last, in the problem's type; elements of other types are passed as if
// they were floats. The output must not overlap the others.
struct ConvOperands {
  const float* input = nullptr;     // of the view: for a gradient of inputs, that of the output
  const float* bias = nullptr;      // one value for each output channel, or null
  const float* residual = nullptr;  // added to the output, of its shape, or null
  float* output = nullptr;
  bool relu = false;
  const ConvQuantization* quantization = nullptr;  // only of integers; null: all zeros are 0
};

// Errors: kUnsupported for a type or layout without kernels, kInvalidArgument for a pool with fewer
// threads than the config has.
Status check_conv_threads(const ConvProblem& problem, const CpuConvConfig& config,
                          const ThreadPool* pool,
                          std::initializer_list<DataType> types = {DataType::kF32});
// Returns the micro-kernels of a config. Errors: as TapConv::create().
Result<const TapKernelSet*> tap_kernels_for(const CpuConvConfig& config, const ThreadPool* pool,
                                            KernelMath math);
// The same for f32.
Result<const TapKernelSet*> tap_kernels_for(const ConvProblem& problem, const CpuConvConfig& config,
                                            const ThreadPool* pool);

class TapConv {
 public:
  // `pool` may be null for one thread; else it must have at least config.threads threads and
  // outlive this object. Errors: kUnsupported when the kernels cannot run here or the problem is
  // none of those above, kInvalidArgument when there is no such register block or the pool is too
  // small.
  static Result<TapConv> create(const ConvProblem& problem, const CpuConvConfig& config,
                                ThreadPool* pool);

  // Sizes in floats.
  [[nodiscard]] std::size_t packed_size() const { return packed_size_; }
  [[nodiscard]] std::size_t workspace_size() const {
    return slab_size_ * static_cast<std::size_t>(config_.threads);
  }
  // Reads weights of the problem's layout.
  void pack_weights(const float* weights, std::span<float> packed) const;
  void run(const ConvOperands& operands, std::span<const float> packed,
           std::span<float> workspace) const;

 private:
  // Blocks of neighbouring points that find the same taps within the image.
  struct Strip {
    std::ptrdiff_t first = 0;
    std::ptrdiff_t length = 0;  // points of a block
    std::ptrdiff_t blocks = 1;
    std::vector<std::uint32_t>
        rows;  // as MicroKernelCall::tap_rows, up to the last tap; empty: all
  };
  // The plan of all rows of the grid that find the same rows of taps.
  struct RowPlan {
    Range taps;  // of the grid
    std::vector<Strip> strips;
  };
  // One grid of the view, planned.
  struct Grid {
    InputSlabs input;
    std::vector<std::ptrdiff_t> offsets;  // of the kernel's taps
    std::vector<RowPlan> plans;
    std::vector<std::size_t> plan_of;  // [z * count.h + y]
    std::ptrdiff_t merged = 1;         // taps of the grid in one of the kernel
    std::ptrdiff_t depth = 0;    // words that a tap of the kernel sums; 0: a chunk of channels
    std::ptrdiff_t block_w = 1;  // points of a register block
    std::size_t packed = 0;      // where its weights begin
    std::size_t panel_size = 0;
    std::vector<Range> chunks;  // of input channels
  };
  struct Tile;

  TapConv() = default;
  void join_groups();
  void plan(const ConvGrid& grid);
  void plan_rows(Grid& grid) const;
  [[nodiscard]] std::vector<Strip> strips_of(const Grid& grid, const Range& planes,
                                             const Range& rows, const Range& taps) const;
  [[nodiscard]] std::ptrdiff_t panels() const { return ceil_div(view_.outputs, config_.nr); }
  [[nodiscard]] std::ptrdiff_t panel_width(std::ptrdiff_t panel) const;
  void run_slab(const Grid& grid, const Slab& slab, std::ptrdiff_t group, const Range& panels,
                const ConvOperands& operands, const float* packed, float* workspace) const;
  void run_tile(const Tile& tile, std::ptrdiff_t panel, std::size_t chunk) const;
  void clear(const Grid& grid, const ConvOperands& operands) const;

  // Groups narrower than a register block are computed several at once, as one group whose weights
  // between different groups are 0.
  ConvView view_;
  std::ptrdiff_t joined_ = 1;  // groups of the problem in a group of the view
  CpuConvConfig config_;
  ThreadPool* pool_ = nullptr;
  const TapKernelSet* kernels_ = nullptr;
  std::vector<Grid> grids_;
  std::ptrdiff_t out_channels_ = 1;  // of all groups
  std::size_t packed_size_ = 0;
  std::size_t slab_size_ = 0;
};

}  // namespace foretune::cpu_conv
