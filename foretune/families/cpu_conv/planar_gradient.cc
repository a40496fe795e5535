#include "foretune/families/cpu_conv/planar_gradient.h"

#include <utility>

namespace foretune::cpu_conv {

Result<PlanarGradient> PlanarGradient::create(const ConvProblem& problem,
                                              const CpuConvConfig& config, ThreadPool* pool) {
  ConvSizes sizes = problem.sizes();
  sizes.layout = ConvLayout::kChannelsLast;
  FORETUNE_TRY(const ConvProblem copied, ConvProblem::create(sizes));
  CpuConvConfig inner = config;
  inner.algorithm = ConvAlgorithm::kTaps;
  FORETUNE_TRY(WeightGradient gradient, WeightGradient::create(copied, inner, pool));
  PlanarGradient made(std::move(gradient));
  made.pool_ = pool;
  made.threads_ = config.threads;
  made.transpose_ = transpose_panel_of(config.isa);
  made.input_ = {sizes.n, sizes.c, sizes.di * sizes.hi * sizes.wi};
  made.output_ = {sizes.n, sizes.k, problem.depth_out() * problem.ho() * problem.wo()};
  made.filters_ = {sizes.k, sizes.z * sizes.y * sizes.x, sizes.c / sizes.g};
  return made;
}

std::size_t PlanarGradient::workspace_size() const {
  return in_lines(input_.size()) + in_lines(output_.size()) + in_lines(filters_.size()) +
         gradient_.workspace_size();
}

// Threads share the columns of all matrices, in whole vectors.
void PlanarGradient::transpose(const Matrices& matrices, const float* from, float* to) const {
  constexpr std::ptrdiff_t kColumns = 16;
  const std::ptrdiff_t blocks = ceil_div(matrices.columns, kColumns);
  const auto work = [&](std::size_t index) {
    const Range mine =
        share_of(matrices.count * blocks, static_cast<std::ptrdiff_t>(index), threads_);
    for (std::ptrdiff_t at = mine.begin; at < mine.end;) {
      const std::ptrdiff_t matrix = at / blocks;
      const std::ptrdiff_t last = std::min(mine.end, (matrix + 1) * blocks);
      const std::ptrdiff_t column = (at - matrix * blocks) * kColumns;
      const std::ptrdiff_t end = std::min(matrices.columns, (last - matrix * blocks) * kColumns);
      const std::ptrdiff_t begin = matrix * matrices.rows * matrices.columns;
      transpose_(from + begin + column, matrices.columns, matrices.rows, end - column,
                 matrices.rows, to + begin + column * matrices.rows);
      at = last;
    }
  };
  if (threads_ == 1) {
    work(0);
  } else {
    pool_->run(static_cast<std::size_t>(threads_), work);
  }
}

void PlanarGradient::run(const WeightGradientOperands& operands, std::span<float> workspace) const {
  float* const input = workspace.data();
  float* const output = input + in_lines(input_.size());
  float* const filters = output + in_lines(output_.size());
  float* const rest = filters + in_lines(filters_.size());
  transpose(input_, operands.input, input);
  transpose(output_, operands.output_gradient, output);
  gradient_.run({.input = input, .output_gradient = output, .gradient = filters},
                {rest, gradient_.workspace_size()});
  transpose(filters_, filters, operands.gradient);
}

}  // namespace foretune::cpu_conv
