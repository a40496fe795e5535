// Gradients of weights in bf16, by the kernels of f32: operands are widened, and a result of bf16
// is rounded once. The kernels sum over points, whose elements are no neighbours, so that words of
// several elements would have to be transposed.
//
// Thread safety and cost: as WeightGradient.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/weight_gradient.h"
#include "foretune/kernels/output_stage.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

class WidenedGradient {
 public:
  // Errors: as WeightGradient::create(); kUnsupported for types other than bf16.
  static Result<WidenedGradient> create(const ConvProblem& problem, const CpuConvConfig& config,
                                        ThreadPool* pool);
  // In floats.
  [[nodiscard]] std::size_t workspace_size() const {
    return inputs_ + outputs_ + weights_ + gradient_.workspace_size();
  }
  // Tensors are passed as if they were of floats.
  void run(const WeightGradientOperands& operands, std::span<float> workspace) const;

 private:
  explicit WidenedGradient(WeightGradient gradient) : gradient_(std::move(gradient)) {}

  WeightGradient gradient_;
  std::ptrdiff_t input_elements_ = 0;
  std::ptrdiff_t output_elements_ = 0;
  std::ptrdiff_t weight_elements_ = 0;
  // Floats of the workspace, in whole cache lines.
  std::size_t inputs_ = 0;
  std::size_t outputs_ = 0;
  std::size_t weights_ = 0;  // 0 when the result is of sums
  OutputStage stage_ = nullptr;
};

}  // namespace foretune::cpu_conv
