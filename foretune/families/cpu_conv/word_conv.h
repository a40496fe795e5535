// Convolutions that gather, as TapConv, in bf16 and i8: forward passes, and in bf16 gradients of
// inputs. Sums are f32 or i32. An output of the problem's own type is rounded tile by tile, right
// after its last sum.
//
//   FORETUNE_TRY(const WordConv conv, WordConv::create(problem, config, pool));
//   conv.pack_weights(weights, packed);
//   conv.run({.input = x, .output = y}, packed, workspace);
//
// Tensors are passed as if they were of floats. An input of bf16 or i8 begins at a multiple of four
// bytes. A bias is of sums: f32 or i32. An addend is of the output's type.
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
#include "foretune/families/cpu_conv/word_format.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/kernels/output_stage.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

class WordConv {
 public:
  // Returns no for problems without such kernels: f32, channels first, gradients of integers,
  // gradients of weights.
  static Support supports(const ConvProblem& problem);
  // With algorithm=tiles the kernels are those in the matrix tiles of AMX. Errors: as
  // TapConv::create(); kUnsupported for what supports() refuses, and for taps=inner.
  static Result<WordConv> create(const ConvProblem& problem, const CpuConvConfig& config,
                                 ThreadPool* pool);

  // Sizes in floats.
  [[nodiscard]] std::size_t packed_size() const { return packed_size_; }
  [[nodiscard]] std::size_t workspace_size() const {
    return thread_size_ * static_cast<std::size_t>(config_.threads);
  }
  void pack_weights(const float* weights, std::span<float> packed) const;
  void run(const ConvOperands& operands, std::span<const float> packed,
           std::span<float> workspace) const;

 private:
  // One grid of the view, planned. Depths are in words.
  struct Grid {
    InputSlabs input;
    std::vector<std::ptrdiff_t> offsets;  // of the kernel's taps
    std::ptrdiff_t merged = 1;            // taps of the grid in one of the kernel
    std::ptrdiff_t depth = 0;             // that a tap of the kernel sums; 0: a chunk
    std::ptrdiff_t block_w = 1;           // points of a register block
    std::size_t packed = 0;               // where its weights begin
    std::vector<Range> chunks;
    [[nodiscard]] std::ptrdiff_t taps() const {
      return static_cast<std::ptrdiff_t>(input.grid().taps.size());
    }
    [[nodiscard]] std::ptrdiff_t rows() const { return taps() / input.taps_of_row(); }
  };
  // The memory of one thread.
  struct Scratch {
    float* slab = nullptr;
    float* sums = nullptr;
    float* starts = nullptr;  // of each panel: the rows of taps they are for, and a row of sums
  };
  struct Tile;

  WordConv() = default;
  void join_groups();
  void plan(const ConvGrid& grid);
  [[nodiscard]] std::ptrdiff_t panels() const { return ceil_div(view_.outputs, config_.nr); }
  // Returns true when kernels round sums to the output in registers.
  [[nodiscard]] bool kernels_round() const {
    return bytes_of(output_) != sizeof(float) && kernels_->rounds_to == output_;
  }
  [[nodiscard]] std::ptrdiff_t panel_width(std::ptrdiff_t panel) const;
  // Returns how many rows of sums precede the weights of a panel: those of the first rows of taps,
  // for every number of them.
  [[nodiscard]] std::ptrdiff_t rows_of_sums(const Grid& grid) const {
    return format_.is_integer() ? grid.rows() + 1 : 0;
  }
  [[nodiscard]] std::size_t panel_size(const Grid& grid) const {
    return static_cast<std::size_t>((grid.taps() * words_ + rows_of_sums(grid)) * config_.nr);
  }
  template <class Element>
  void pack_panel(const Grid& grid, std::ptrdiff_t group, std::ptrdiff_t panel,
                  const Element* weights, float* packed) const;
  template <class Element>
  void pack(const Element* weights, float* packed) const;
  const float* start_row(const Tile& tile, std::ptrdiff_t panel) const;
  void run_slab(const Grid& grid, const Slab& slab, std::ptrdiff_t group, const Range& panels,
                const ConvOperands& operands, const float* packed, const Scratch& scratch) const;
  void run_tile(const Tile& tile, std::ptrdiff_t panel, std::size_t chunk) const;
  [[nodiscard]] OutputStageCall finishing(const ConvOperands& operands, const float* sums,
                                          std::ptrdiff_t sums_stride, std::ptrdiff_t rows,
                                          std::ptrdiff_t columns, std::ptrdiff_t channel,
                                          std::ptrdiff_t to, std::ptrdiff_t step) const;
  void clear(const Grid& grid, const ConvOperands& operands) const;

  ConvView view_;             // with joined groups, as in TapConv; channels are elements
  std::ptrdiff_t words_ = 1;  // of a group's inputs
  std::ptrdiff_t joined_ = 1;
  WordFormat format_;
  OutputType output_ = OutputType::kF32;
  CpuConvConfig config_;
  ThreadPool* pool_ = nullptr;
  const TapKernelSet* kernels_ = nullptr;
  OutputStage stage_ = nullptr;
  std::vector<Grid> grids_;
  std::ptrdiff_t out_channels_ = 1;  // of all groups
  std::size_t packed_size_ = 0;
  std::size_t slab_size_ = 0;
  std::size_t sums_size_ = 0;
  std::size_t starts_size_ = 0;
  std::size_t thread_size_ = 0;
};

}  // namespace foretune::cpu_conv
