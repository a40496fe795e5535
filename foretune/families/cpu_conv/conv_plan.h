// A planned convolution of any algorithm of cpu-conv, and the kernel made of one.
//
//   FORETUNE_TRY(ConvPlan plan, ConvPlan::create(problem, config, *shared));
//   plan.pack_weights(weights, packed);
//   plan.run({.input = x, .output = y}, packed, workspace);
//
// Thread safety: several threads may call run() at once, each with a workspace of its own; runs
// with several threads take turns.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "foretune/base/fork.h"
#include "foretune/base/result.h"
#include "foretune/families/cpu_conv/cpu_conv.h"
#include "foretune/families/cpu_conv/group_conv.h"
#include "foretune/families/cpu_conv/group_gradient.h"
#include "foretune/families/cpu_conv/planar_conv.h"
#include "foretune/families/cpu_conv/planar_gradient.h"
#include "foretune/families/cpu_conv/tap_conv.h"
#include "foretune/families/cpu_conv/weight_gradient.h"
#include "foretune/families/cpu_conv/widened_gradient.h"
#include "foretune/families/cpu_conv/winograd_conv.h"
#include "foretune/families/cpu_conv/word_conv.h"
#include "foretune/kernels/shared_cpu.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

class ConvPlan {
 public:
  // `shared` must outlive the plan. Errors: as TapConv::create().
  static Result<ConvPlan> create(const ConvProblem& problem, const CpuConvConfig& config,
                                 SharedCpu& shared);

  // Sizes in floats; a gradient of weights packs nothing.
  [[nodiscard]] std::size_t workspace_size() const;
  [[nodiscard]] std::size_t packed_size() const;
  // Returns the points of a row of Winograd's tiles, or 0.
  [[nodiscard]] int tile_points() const;
  void pack_weights(const float* weights, std::span<float> packed) const;
  // Only for an operation that gathers.
  void run(const ConvOperands& operands, std::span<const float> packed,
           std::span<float> workspace) const;
  // Only for a gradient of weights.
  void run(const WeightGradientOperands& operands, std::span<float> workspace) const;

 private:
  using Algorithm = std::variant<TapConv, GroupConv, PlanarConv, WinogradConv, WordConv,
                                 WeightGradient, GroupGradient, PlanarGradient, WidenedGradient>;

  ConvPlan(std::shared_ptr<const Algorithm> algorithm, ForkSafeTurn* turn)
      : algorithm_(std::move(algorithm)), turn_(turn) {}

  std::shared_ptr<const Algorithm> algorithm_;  // shared, so that a plan is cheap to move
  ForkSafeTurn* turn_ = nullptr;                // null with one thread
};

// Returns a kernel that runs the plan of the problem, made with `shared`.
std::shared_ptr<const CpuConvKernel> make_conv_kernel(ConvPlan plan, const ConvProblem& problem,
                                                      std::shared_ptr<SharedCpu> shared);

}  // namespace foretune::cpu_conv
