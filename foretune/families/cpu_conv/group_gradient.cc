#include "foretune/families/cpu_conv/group_gradient.h"

#include <algorithm>

#include "foretune/base/check.h"
#include "foretune/kernels/micro_kernel.h"

namespace foretune::cpu_conv {

Result<GroupGradient> GroupGradient::create(const ConvProblem& problem, const CpuConvConfig& config,
                                            ThreadPool* pool) {
  if (problem.operation() != ConvOperation::kBackwardWeight) {
    return fail(ErrorCode::kUnsupported, "these kernels compute gradients of weights only");
  }
  GroupGradient made;
  FORETUNE_TRY(made.kernels_, group_kernels_for(problem, config, pool));
  made.view_ = ConvView::of(problem);
  made.channels_ = GroupChannels(made.view_, made.kernels_->lanes);
  made.config_ = config;
  made.pool_ = pool;
  const ConvGrid& grid = made.view_.grids.front();
  made.plan_ = GroupGrid(made.view_, grid, made.channels_, config.mr,
                         kernel_limits(config.isa).registers, kMaxGradientPoints);
  const std::ptrdiff_t rows = made.view_.images * grid.count.d * grid.count.h;
  for (std::ptrdiff_t begin = 0; begin < rows; begin += config.rows) {
    made.chunks_.push_back(made.rows_of({begin, std::min(begin + config.rows, rows)}));
  }
  const std::ptrdiff_t run_taps = shape_of(made.plan_.run).taps;
  for (std::ptrdiff_t tap = 0; tap < made.view_.filter_points; ++tap) {
    for (std::ptrdiff_t input = 0; input < made.view_.inputs; ++input) {
      const std::ptrdiff_t vector =
          (tap / run_taps * made.view_.inputs + input) * run_taps + tap % run_taps;
      made.places_.push_back(vector * made.channels_.lanes);
    }
  }
  made.block_sums_ = made.view_.filter_points * made.channels_.inputs * made.channels_.lanes;
  made.sums_size_ = in_lines(made.channels_.blocks * made.block_sums_);
  return made;
}

std::vector<GroupGradient::Rows> GroupGradient::rows_of(const Range& rows) const {
  const ConvGrid& grid = view_.grids.front();
  std::vector<Rows> planned(static_cast<std::size_t>(plan_.tap_rows));
  for (std::ptrdiff_t row = rows.begin; row < rows.end; ++row) {
    const std::ptrdiff_t n = row / (grid.count.d * grid.count.h);
    const std::ptrdiff_t z = row / grid.count.h % grid.count.d;
    const std::ptrdiff_t y = row % grid.count.h;
    for (std::ptrdiff_t of_filter = 0; of_filter < plan_.tap_rows; ++of_filter) {
      const Triple& offset =
          grid.taps[static_cast<std::size_t>(of_filter * plan_.taps_of_row)].offset;
      const std::ptrdiff_t d = z * grid.stride.d + offset.d;
      const std::ptrdiff_t h = y * grid.stride.h + offset.h;
      if (d >= 0 && d < view_.in.d && h >= 0 && h < view_.in.h) {
        Rows& found = planned[static_cast<std::size_t>(of_filter)];
        found.input.push_back(((n * view_.in.d + d) * view_.in.h + h) * view_.in.w * view_.groups *
                              view_.inputs);
        found.output.push_back(row * view_.out.w * view_.groups * view_.outputs);
      }
    }
  }
  return planned;
}

// Sums lie by block, row and column of the filter, then as kernels return them.
void GroupGradient::sum(const Range& chunks, const Range& blocks,
                        const WeightGradientOperands& operands, float* sums) const {
  const ConvGrid& grid = view_.grids.front();
  const std::ptrdiff_t in_channels = view_.groups * view_.inputs;
  const std::ptrdiff_t out_channels = view_.groups * view_.outputs;
  const std::ptrdiff_t row_sums = plan_.taps_of_row * channels_.inputs * channels_.lanes;
  std::fill(sums + blocks.begin * block_sums_, sums + blocks.end * block_sums_, 0.0F);
  for (std::ptrdiff_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const std::vector<Rows>& planned = chunks_[static_cast<std::size_t>(chunk)];
    for (std::ptrdiff_t block = blocks.begin; block < blocks.end; ++block) {
      const std::ptrdiff_t group = block * channels_.of_block;
      const std::ptrdiff_t groups = channels_.groups_in(block);
      for (const GroupPoints& part : plan_.points) {
        const GroupGradientKernel kernel = kernels_->find_gradient(
            plan_.run, !channels_.gather.empty(), channels_.is_partial(block),
            static_cast<int>(part.points.length()));
        for (std::size_t row = 0; row < planned.size(); ++row) {
          for (const GroupColumn& column : part.columns) {
            kernel({.input = operands.input + part.points.begin * grid.stride.w * in_channels +
                             column.input + group * view_.inputs,
                    .input_step = plan_.input_step,
                    .output = operands.output_gradient + part.points.begin * out_channels +
                              group * view_.outputs,
                    .output_step = out_channels,
                    .input_rows = planned[row].input.data(),
                    .output_rows = planned[row].output.data(),
                    .rows = static_cast<std::ptrdiff_t>(planned[row].input.size()),
                    .inside = column.inside,
                    .gather = channels_.gather_lanes(),
                    .inputs = static_cast<int>(view_.inputs),
                    .input_channels = static_cast<int>(groups * view_.inputs),
                    .output_channels = static_cast<int>(groups * view_.outputs),
                    .sums = sums + block * block_sums_ +
                            static_cast<std::ptrdiff_t>(row) * row_sums + column.weight});
          }
        }
      }
    }
  }
}

void GroupGradient::store(const Range& blocks, std::span<const float> sums, float* gradient) const {
  for (std::ptrdiff_t block = blocks.begin; block < blocks.end; ++block) {
    const std::ptrdiff_t first = block * channels_.of_block * view_.outputs;
    const std::ptrdiff_t filled = channels_.groups_in(block) * view_.outputs;
    for (std::ptrdiff_t lane = 0; lane < filled; ++lane) {
      float* filter = gradient + (first + lane) * view_.filter_points * view_.inputs;
      const float* const of_lane = sums.data() + block * block_sums_ + lane;
      for (const std::ptrdiff_t place : places_) {
        *filter++ = of_lane[place];
      }
    }
  }
}

void GroupGradient::run(const WeightGradientOperands& operands, std::span<float> workspace) const {
  FORETUNE_CHECK(workspace.size() >= workspace_size());
  const auto chunks = static_cast<std::ptrdiff_t>(chunks_.size());
  const std::ptrdiff_t threads = config_.threads;
  const Range all{0, channels_.blocks};
  if (threads == 1) {
    sum({0, chunks}, all, operands, workspace.data());
    store(all, workspace, operands.gradient);
    return;
  }
  pool_->run(static_cast<std::size_t>(threads), [&](std::size_t index) {
    const auto thread = static_cast<std::ptrdiff_t>(index);
    if (shares_points()) {
      sum(share_of(chunks, thread, threads), all, operands, workspace.data() + index * sums_size_);
    } else {
      const Range mine = share_of(channels_.blocks, thread, threads);
      sum({0, chunks}, mine, operands, workspace.data());
      store(mine, workspace, operands.gradient);
    }
  });
  if (!shares_points()) {
    return;
  }
  pool_->run(static_cast<std::size_t>(threads), [&](std::size_t index) {
    const Range mine = share_of(channels_.blocks, static_cast<std::ptrdiff_t>(index), threads);
    for (std::ptrdiff_t other = 1; other < threads; ++other) {
      const float* const from = workspace.data() + static_cast<std::size_t>(other) * sums_size_;
      for (std::ptrdiff_t i = mine.begin * block_sums_; i < mine.end * block_sums_; ++i) {
        workspace[static_cast<std::size_t>(i)] += from[i];
      }
    }
    store(mine, workspace, operands.gradient);
  });
}

}  // namespace foretune::cpu_conv
