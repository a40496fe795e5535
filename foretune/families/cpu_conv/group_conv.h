// Convolutions in narrow groups, down to one channel (depthwise), channels last: forward passes and
// gradients of inputs. A register block is up to `mr` neighbouring points of a row times a vector
// of channels. Points at the edges of the image leave out the taps that read zeros, so no input is
// copied, and every group multiplies its own channels only. With AVX-512 also in bf16 and i8, with
// tensors as of WordConv.
//
//   FORETUNE_TRY(const GroupConv conv, GroupConv::create(problem, config, pool));
//
// Thread safety and cost: as TapConv. A thread goes through `rows` rows of points for each chunk of
// at most `kc` channels.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/conv_view.h"
#include "foretune/families/cpu_conv/group_plan.h"
#include "foretune/families/cpu_conv/input_slab.h"
#include "foretune/families/cpu_conv/tap_conv.h"
#include "foretune/kernels/group_kernel.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

class GroupConv {
 public:
  // Errors: as group_kernels_for(); kUnsupported also for a gradient of weights or of integers.
  static Result<GroupConv> create(const ConvProblem& problem, const CpuConvConfig& config,
                                  ThreadPool* pool);

  // Sizes in floats.
  [[nodiscard]] std::size_t packed_size() const { return packed_size_; }
  void pack_weights(const float* weights, std::span<float> packed) const;
  [[nodiscard]] static std::size_t workspace_size() { return 0; }
  void run(const ConvOperands& operands, std::span<const float> packed,
           std::span<float> workspace) const;

 private:
  // One grid of the view, planned.
  struct Grid {
    ConvGrid grid;
    GroupGrid plan;
    // [z * count.h + y]: the rows of taps within the image, by depth and height
    std::vector<std::vector<GroupRow>> rows;
    std::size_t packed = 0;            // where its weights begin
    std::ptrdiff_t block_weights = 0;  // of a block of channels
  };

  GroupConv() = default;
  void plan(const ConvGrid& grid);
  template <class Element>
  void pack(const Element* weights, float* packed) const;
  void run_row(const Grid& grid, std::ptrdiff_t row, const Range& blocks,
               const ConvOperands& operands, const float* packed) const;

  ConvView view_;
  GroupChannels channels_;
  CpuConvConfig config_;
  ThreadPool* pool_ = nullptr;
  const GroupKernelSet* kernels_ = nullptr;
  OutputType operand_ = OutputType::kF32;
  OutputType result_ = OutputType::kF32;
  std::vector<Grid> grids_;
  std::size_t packed_size_ = 0;
};

}  // namespace foretune::cpu_conv
