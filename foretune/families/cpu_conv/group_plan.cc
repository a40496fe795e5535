#include "foretune/families/cpu_conv/group_plan.h"

#include <algorithm>

#include "foretune/families/cpu_conv/conv_values.h"
#include "foretune/families/cpu_conv/tap_conv.h"

namespace foretune::cpu_conv {
namespace {

// Returns the run of kernels that takes all taps of a row at once.
GroupRun run_for(std::ptrdiff_t taps, std::ptrdiff_t stride, bool gathers) {
  for (int run = 1; run < kGroupRuns; ++run) {
    const GroupRunShape shape = shape_of(static_cast<GroupRun>(run));
    if (shape.taps == taps && shape.stride == stride && (!gathers || shape.taps <= 3)) {
      return static_cast<GroupRun>(run);
    }
  }
  return GroupRun::kOne;
}

}  // namespace

GroupChannels::GroupChannels(const ConvView& view, int lanes_of_vector)
    : groups(view.groups), inputs(view.inputs), outputs(view.outputs), lanes(lanes_of_vector) {
  of_block = std::min(groups, lanes / std::max(inputs, outputs));
  blocks = ceil_div(groups, of_block);
  if (inputs == 1 && outputs == 1) {
    return;
  }
  for (std::ptrdiff_t input = 0; input < inputs; ++input) {
    for (std::ptrdiff_t lane = 0; lane < lanes; ++lane) {
      const std::ptrdiff_t group = lane / outputs;
      gather.push_back(group < of_block ? static_cast<std::int32_t>(group * inputs + input) : 0);
    }
  }
}

GroupGrid::GroupGrid(const ConvView& view, const ConvGrid& grid, const GroupChannels& channels,
                     std::ptrdiff_t most_points, int registers, int most_of_kernels) {
  const std::ptrdiff_t pitch = view.groups * view.inputs;
  // Taps are listed by row; the first row tells the columns.
  std::vector<std::ptrdiff_t> offsets;
  for (const ConvTap& tap : grid.taps) {
    if (tap.offset.d == grid.taps.front().offset.d && tap.offset.h == grid.taps.front().offset.h) {
      offsets.push_back(tap.offset.w);
    }
  }
  taps_of_row = static_cast<std::ptrdiff_t>(offsets.size());
  tap_rows =
      static_cast<std::ptrdiff_t>(grid.taps.size()) / std::max<std::ptrdiff_t>(1, taps_of_row);
  const bool are_neighbours =
      !offsets.empty() && offsets.back() - offsets.front() + 1 == taps_of_row;
  run = are_neighbours ? run_for(taps_of_row, grid.stride.w, !channels.gather.empty())
                       : GroupRun::kOne;
  const bool is_run = run != GroupRun::kOne;
  input_step = is_run ? pitch : grid.stride.w * pitch;
  const std::ptrdiff_t block = even_part(
      grid.count.w,
      std::min<std::ptrdiff_t>({most_points, max_group_points(run, registers), most_of_kernels}));
  const std::ptrdiff_t row_weights = channels.inputs * channels.lanes;
  for (std::ptrdiff_t begin = 0; begin < grid.count.w; begin += block) {
    GroupPoints part{.points = {begin, std::min(begin + block, grid.count.w)}, .columns = {}};
    const auto count = static_cast<int>(part.points.length());
    for (std::size_t column = 0; column < (is_run ? 1 : offsets.size()); ++column) {
      GroupColumn at{.input = offsets[column] * pitch,
                     .weight = static_cast<std::ptrdiff_t>(column) * row_weights,
                     .inside = 0};
      for (int q = 0; q < points_read(run, count); ++q) {
        const std::ptrdiff_t step = is_run ? 1 : grid.stride.w;
        const std::ptrdiff_t place = begin * grid.stride.w + offsets[column] + q * step;
        at.inside |= place >= 0 && place < view.in.w ? 1U << static_cast<unsigned>(q) : 0U;
      }
      if (at.inside != 0) {
        part.columns.push_back(at);
      }
    }
    points.push_back(std::move(part));
  }
}

Result<const GroupKernelSet*> group_kernels_for(const ConvProblem& problem,
                                                const CpuConvConfig& config,
                                                const ThreadPool* pool) {
  FORETUNE_TRY_STATUS(
      check_conv_threads(problem, config, pool, {DataType::kF32, DataType::kBf16, DataType::kI8}));
  const GroupKernelSet* const kernels = group_kernel_set(config.isa, operand_type(problem));
  if (kernels == nullptr) {
    return fail(ErrorCode::kUnsupported, "there are no ", to_string(config.isa), " kernels for ",
                to_string(problem.dtype()), " here");
  }
  const ConvSizes& sizes = problem.sizes();
  if (std::max(sizes.c, sizes.k) / sizes.g > kernels->lanes) {
    return fail(ErrorCode::kUnsupported, "these kernels are for groups of at most ", kernels->lanes,
                " channels and filters");
  }
  return kernels;
}

}  // namespace foretune::cpu_conv
