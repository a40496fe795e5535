// Convolutions that gather, channels first: forward passes and gradients of inputs, by
// micro-kernels that sum over taps. A register block is `mr` output channels times `nr`
// neighbouring output points of a row, along which its vectors lie. It stays in registers while all
// taps and a chunk of input channels are summed, and reads rows of the input where they are
// (plane_slab.h): no column matrix exists.
//
// Weights are packed once into panels of mr output channels. With taps=row the rows of a slab are
// joined, so that vectors reach across the ends of short rows.
//
//   FORETUNE_TRY(const PlanarConv conv, PlanarConv::create(problem, config, pool));
//   conv.pack_weights(weights, packed);
//   conv.run({.input = x, .output = y}, packed, workspace);
//
// Thread safety and cost: as TapConv.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/conv_view.h"
#include "foretune/families/cpu_conv/plane_slab.h"
#include "foretune/families/cpu_conv/tap_conv.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

class PlanarConv {
 public:
  // Errors: as TapConv::create().
  static Result<PlanarConv> create(const ConvProblem& problem, const CpuConvConfig& config,
                                   ThreadPool* pool);

  // Sizes in floats.
  [[nodiscard]] std::size_t packed_size() const { return packed_size_; }
  [[nodiscard]] std::size_t workspace_size() const {
    return slab_size_ * static_cast<std::size_t>(config_.threads);
  }
  // Reads weights of the problem's layout.
  void pack_weights(const float* weights, std::span<float> packed) const;
  // All tensors are channels first.
  void run(const ConvOperands& operands, std::span<const float> packed,
           std::span<float> workspace) const;

 private:
  // One grid of the view, planned.
  struct Grid {
    PlaneSlabs input;
    std::vector<std::ptrdiff_t> offsets;        // of the input, by tap of the kernel
    std::vector<std::ptrdiff_t> panel_offsets;  // of these taps in a whole panel, and in the last
    std::vector<std::ptrdiff_t> last_offsets;
    // With one input channel the taps of a row are summed like channels: a tap of the kernel is
    // `merged` taps of the grid, whose inputs are `distance` apart.
    std::ptrdiff_t merged = 1;
    std::ptrdiff_t distance = 0;
    std::ptrdiff_t block_columns = 1;  // of a register block
    std::size_t packed = 0;            // where its weights begin
  };
  struct Tile;

  PlanarConv() = default;
  void plan(const ConvGrid& grid);
  void merge_taps(Grid& grid) const;
  [[nodiscard]] std::ptrdiff_t panels() const { return ceil_div(view_.outputs, panel_rows_); }
  [[nodiscard]] std::ptrdiff_t rows_of(std::ptrdiff_t panel) const {
    return std::min(panel_rows_, view_.outputs - panel * panel_rows_);
  }
  // Returns the weights of a group.
  [[nodiscard]] static std::ptrdiff_t group_size(const Grid& grid, const ConvView& view) {
    return static_cast<std::ptrdiff_t>(grid.input.grid().taps.size()) * view.inputs * view.outputs;
  }
  void run_slab(const Grid& grid, const Slab& slab, std::ptrdiff_t group, const Range& panels,
                const ConvOperands& operands, const float* packed, float* workspace) const;
  void run_tile(const Tile& tile, std::ptrdiff_t panel, std::ptrdiff_t chunk) const;
  template <class Visit>
  void for_each_part(const Tile& tile, std::ptrdiff_t first, std::ptrdiff_t rows,
                     const Visit& visit) const;
  void begin_sums(const Tile& tile, std::ptrdiff_t first, std::ptrdiff_t rows, bool is_first_chunk,
                  float* block) const;
  void clear(const Grid& grid, const ConvOperands& operands) const;

  ConvView view_;
  CpuConvConfig config_;
  ThreadPool* pool_ = nullptr;
  const TapKernelSet* kernels_ = nullptr;
  std::vector<Grid> grids_;
  std::ptrdiff_t panel_rows_ = 1;  // output channels of a register block
  std::ptrdiff_t chunk_ = 1;       // input channels
  std::size_t packed_size_ = 0;
  std::size_t slab_size_ = 0;
};

}  // namespace foretune::cpu_conv
