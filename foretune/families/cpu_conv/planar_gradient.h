// Gradients of weights, channels first: copies of both operands with channels last, WeightGradient
// on them, and its result back in the layout of channels first. Copying reads and writes each
// operand once; the sums read them once for each register block.
//
// Thread safety and cost: as TapConv.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/families/cpu_conv/weight_gradient.h"
#include "foretune/kernels/packing.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/space/schemas/cpu_conv.h"

namespace foretune::cpu_conv {

class PlanarGradient {
 public:
  // Errors: as TapConv::create().
  static Result<PlanarGradient> create(const ConvProblem& problem, const CpuConvConfig& config,
                                       ThreadPool* pool);
  // In floats.
  [[nodiscard]] std::size_t workspace_size() const;
  // All tensors are channels first.
  void run(const WeightGradientOperands& operands, std::span<float> workspace) const;

 private:
  // Matrices of `rows` x `columns` that follow each other, and are transposed one by one.
  struct Matrices {
    std::ptrdiff_t count = 1;
    std::ptrdiff_t rows = 1;
    std::ptrdiff_t columns = 1;
    [[nodiscard]] std::ptrdiff_t size() const { return count * rows * columns; }
  };

  explicit PlanarGradient(WeightGradient gradient) : gradient_(std::move(gradient)) {}
  void transpose(const Matrices& matrices, const float* from, float* to) const;

  WeightGradient gradient_;
  ThreadPool* pool_ = nullptr;
  int threads_ = 1;
  TransposePanel transpose_ = nullptr;
  Matrices input_;
  Matrices output_;
  Matrices filters_;  // of the copy
};

}  // namespace foretune::cpu_conv
