// Gradients of the weights of narrow groups, down to one channel (depthwise), channels last. Sums
// of a row of the filter stay in registers while a strip of up to `mr` neighbouring points passes
// `rows` rows of the output; what lies outside of the image is left out, and nothing is copied.
//
// Thread safety and cost: as TapConv. Threads share the rows, each with sums of its own, or the
// blocks of channels.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/conv_view.h"
#include "foretune/families/cpu_conv/group_plan.h"
#include "foretune/families/cpu_conv/input_slab.h"
#include "foretune/families/cpu_conv/weight_gradient.h"
#include "foretune/kernels/group_kernel.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

class GroupGradient {
 public:
  // Errors: as group_kernels_for(); kUnsupported also for other operations.
  static Result<GroupGradient> create(const ConvProblem& problem, const CpuConvConfig& config,
                                      ThreadPool* pool);
  // In floats.
  [[nodiscard]] std::size_t workspace_size() const {
    return sums_size_ * (shares_points() ? static_cast<std::size_t>(config_.threads) : 1);
  }
  void run(const WeightGradientOperands& operands, std::span<float> workspace) const;

 private:
  // Where the output rows begin whose input a row of the filter finds within the image.
  struct Rows {
    std::vector<std::ptrdiff_t> input;
    std::vector<std::ptrdiff_t> output;
  };

  GroupGradient() = default;
  [[nodiscard]] bool shares_points() const {
    return config_.threads > 1 && config_.split == ConvSplit::kPoints;
  }
  // Plans rows of the output, counted through all images.
  [[nodiscard]] std::vector<Rows> rows_of(const Range& rows) const;
  void sum(const Range& chunks, const Range& blocks, const WeightGradientOperands& operands,
           float* sums) const;
  void store(const Range& blocks, std::span<const float> sums, float* gradient) const;

  ConvView view_;
  GroupChannels channels_;
  GroupGrid plan_;
  CpuConvConfig config_;
  ThreadPool* pool_ = nullptr;
  const GroupKernelSet* kernels_ = nullptr;
  std::vector<std::vector<Rows>> chunks_;  // of `rows` rows each, by row of the filter
  std::vector<std::ptrdiff_t> places_;     // of a filter\'s values in the sums of a block
  std::ptrdiff_t block_sums_ = 0;          // floats of a block of channels
  std::size_t sums_size_ = 0;
};

}  // namespace foretune::cpu_conv
