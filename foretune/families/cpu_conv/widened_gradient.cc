#include "foretune/families/cpu_conv/widened_gradient.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "foretune/kernels/packing.h"

namespace foretune::cpu_conv {
namespace {

void widen(const float* from, std::ptrdiff_t count, float* to) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(from);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes + 2 * i, sizeof bits);
    to[i] = bf16_value(bits);
  }
}

}  // namespace

Result<WidenedGradient> WidenedGradient::create(const ConvProblem& problem,
                                                const CpuConvConfig& config, ThreadPool* pool) {
  if (problem.dtype() != DataType::kBf16) {
    return fail(ErrorCode::kUnsupported, "gradients of ", to_string(problem.dtype()),
                " are not widened");
  }
  ConvSizes sizes = problem.sizes();
  sizes.dtype = DataType::kF32;
  sizes.out = ConvOutput::kSame;
  FORETUNE_TRY(const ConvProblem wide, ConvProblem::create(sizes));
  FORETUNE_TRY(WeightGradient gradient, WeightGradient::create(wide, config, pool));
  WidenedGradient made(std::move(gradient));
  made.input_elements_ = problem.input_elements();
  made.output_elements_ = problem.output_elements();
  made.weight_elements_ = problem.weight_elements();
  made.inputs_ = in_lines(made.input_elements_);
  made.outputs_ = in_lines(made.output_elements_);
  made.weights_ = problem.has_sums() ? 0 : in_lines(made.weight_elements_);
  made.stage_ = output_stage(config.isa, OutputType::kBf16);
  return made;
}

void WidenedGradient::run(const WeightGradientOperands& operands,
                          std::span<float> workspace) const {
  float* const input = workspace.data();
  float* const output = input + inputs_;
  float* const sums = output + outputs_;
  widen(operands.input, input_elements_, input);
  widen(operands.output_gradient, output_elements_, output);
  gradient_.run({.input = input,
                 .output_gradient = output,
                 .gradient = weights_ > 0 ? sums : operands.gradient},
                workspace.subspan(inputs_ + outputs_ + weights_));
  if (weights_ > 0) {
    stage_({.sums = sums, .rows = 1, .columns = weight_elements_, .output = operands.gradient});
  }
}

}  // namespace foretune::cpu_conv
