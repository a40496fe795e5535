#include "foretune/families/cpu_conv/group_conv.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/families/cpu_conv/conv_values.h"
#include "foretune/families/cpu_conv/work_shares.h"
#include "foretune/kernels/micro_kernel.h"
#include "foretune/kernels/packing.h"

namespace foretune::cpu_conv {
namespace {

float packed_weight(float weight) { return weight; }
float packed_weight(std::uint16_t weight) { return bf16_value(weight); }
// Returns a word whose lower half is the weight.
float packed_weight(std::int8_t weight) {
  return std::bit_cast<float>(std::int32_t{weight} & 0xffff);
}

// Returns where an element of a tensor is.
const std::byte* at(const float* tensor, OutputType type, std::ptrdiff_t element) {
  return reinterpret_cast<const std::byte*>(tensor) + element * bytes_of(type);
}

}  // namespace

Result<GroupConv> GroupConv::create(const ConvProblem& problem, const CpuConvConfig& config,
                                    ThreadPool* pool) {
  if (problem.operation() == ConvOperation::kBackwardWeight) {
    return fail(ErrorCode::kUnsupported, "these kernels do not compute gradients of weights");
  }
  if (problem.operation() != ConvOperation::kForward && problem.dtype() == DataType::kI8) {
    return fail(ErrorCode::kUnsupported, "gradients are computed in f32 and bf16, not i8");
  }
  if (problem.sizes().skip_taps > 0) {
    return fail(ErrorCode::kUnsupported, "these kernels leave out no points of filters");
  }
  GroupConv conv;
  FORETUNE_TRY(conv.kernels_, group_kernels_for(problem, config, pool));
  conv.view_ = ConvView::of(problem);
  conv.channels_ = GroupChannels(conv.view_, conv.kernels_->lanes);
  conv.operand_ = operand_type(problem);
  conv.result_ = result_type(problem);
  conv.config_ = config;
  conv.pool_ = pool;
  for (const ConvGrid& grid : conv.view_.grids) {
    if (grid.count.volume() > 0) {
      conv.plan(grid);
    }
  }
  return conv;
}

void GroupConv::plan(const ConvGrid& given) {
  Grid grid{.grid = given,
            .plan = GroupGrid(view_, given, channels_, config_.mr,
                              kernel_limits(config_.isa).registers, kMaxGroupPoints),
            .packed = packed_size_};
  const std::ptrdiff_t pitch = view_.groups * view_.inputs;
  const std::ptrdiff_t taps_of_row = grid.plan.taps_of_row;
  const std::ptrdiff_t row_weights = taps_of_row * channels_.inputs * channels_.lanes;
  for (std::ptrdiff_t z = 0; z < given.count.d; ++z) {
    for (std::ptrdiff_t y = 0; y < given.count.h; ++y) {
      std::vector<GroupRow>& rows = grid.rows.emplace_back();
      for (std::ptrdiff_t row = 0; row < grid.plan.tap_rows; ++row) {
        const Triple& offset = given.taps[static_cast<std::size_t>(row * taps_of_row)].offset;
        const std::ptrdiff_t d = z * given.stride.d + offset.d;
        const std::ptrdiff_t h = y * given.stride.h + offset.h;
        if (d >= 0 && d < view_.in.d && h >= 0 && h < view_.in.h) {
          rows.push_back(
              {.input = (d * view_.in.h + h) * view_.in.w * pitch, .weight = row * row_weights});
        }
      }
    }
  }
  grid.block_weights = grid.plan.tap_rows * row_weights;
  packed_size_ += static_cast<std::size_t>(grid.block_weights * channels_.blocks);
  grids_.push_back(std::move(grid));
}

// Packed weights: for each grid and block of channels, and each row, column and input of a group,
// the vectors of the column's taps.
template <class Element>
void GroupConv::pack(const Element* weights, float* packed) const {
  const std::ptrdiff_t points = view_.filter_points;
  const std::ptrdiff_t inputs = view_.inputs;
  const std::ptrdiff_t outputs = view_.outputs;
  // Weights are stored by filter, point, channel; for gradients of inputs filters are summed over.
  const std::ptrdiff_t of_output = view_.is_transposed ? 1 : points * inputs;
  const std::ptrdiff_t of_input = view_.is_transposed ? points * outputs : 1;
  const std::ptrdiff_t of_point = view_.is_transposed ? outputs : inputs;
  const std::ptrdiff_t of_group = points * inputs * outputs;
  for (const Grid& grid : grids_) {
    const auto run_taps = static_cast<std::size_t>(shape_of(grid.plan.run).taps);
    float* to = packed + grid.packed;
    for (std::ptrdiff_t block = 0; block < channels_.blocks; ++block) {
      const std::ptrdiff_t first = block * channels_.of_block;
      const std::ptrdiff_t filled = channels_.groups_in(block) * outputs;
      for (std::size_t tap = 0; tap < grid.grid.taps.size(); tap += run_taps) {
        for (std::ptrdiff_t input = 0; input < inputs; ++input) {
          for (std::size_t t = 0; t < run_taps; ++t, to += channels_.lanes) {
            const Element* const from =
                weights + grid.grid.taps[tap + t].point * of_point + input * of_input;
            std::fill(to + filled, to + channels_.lanes, 0.0F);
            for (std::ptrdiff_t lane = 0; lane < filled; ++lane) {
              to[lane] = packed_weight(
                  from[(first + lane / outputs) * of_group + lane % outputs * of_output]);
            }
          }
        }
      }
    }
  }
}

void GroupConv::pack_weights(const float* weights, std::span<float> packed) const {
  FORETUNE_CHECK(packed.size() >= packed_size_);
  if (operand_ == OutputType::kI8) {
    pack(reinterpret_cast<const std::int8_t*>(weights), packed.data());
  } else if (operand_ == OutputType::kBf16) {
    pack(reinterpret_cast<const std::uint16_t*>(weights), packed.data());
  } else {
    pack(weights, packed.data());
  }
}

void GroupConv::run_row(const Grid& grid, std::ptrdiff_t row, const Range& blocks,
                        const ConvOperands& operands, const float* packed) const {
  const ConvGrid& points = grid.grid;
  const std::ptrdiff_t n = row / (points.count.d * points.count.h);
  const std::ptrdiff_t z = row / points.count.h % points.count.d;
  const std::ptrdiff_t y = row % points.count.h;
  const std::vector<GroupRow>& rows = grid.rows[static_cast<std::size_t>(z * points.count.h + y)];
  const std::ptrdiff_t in_channels = view_.groups * view_.inputs;
  const std::ptrdiff_t out_channels = view_.groups * view_.outputs;
  const std::ptrdiff_t image = n * view_.in.volume() * in_channels;
  const ConvQuantization quantization =
      operands.quantization == nullptr ? ConvQuantization{} : *operands.quantization;
  const std::ptrdiff_t out_row =
      ((n * view_.out.d + points.first.d + z * points.step.d) * view_.out.h + points.first.h +
       y * points.step.h) *
          view_.out.w +
      points.first.w;
  // Full blocks in one call, a partial last one in its own.
  const auto run_blocks = [&](const GroupPoints& part, const Range& mine) {
    const std::ptrdiff_t group = mine.begin * channels_.of_block;
    const std::ptrdiff_t groups = channels_.groups_in(mine.begin);
    const std::ptrdiff_t channel = group * view_.outputs;
    const std::ptrdiff_t to =
        (out_row + part.points.begin * points.step.w) * out_channels + channel;
    const GroupKernel kernel =
        kernels_->find(grid.plan.run, !channels_.gather.empty(), channels_.is_partial(mine.begin),
                       static_cast<int>(part.points.length()));
    kernel({.input = at(
                operands.input, operand_,
                image + part.points.begin * points.stride.w * in_channels + group * view_.inputs),
            .input_step = grid.plan.input_step,
            .weights = packed + grid.packed + mine.begin * grid.block_weights,
            .rows = rows.data(),
            .row_count = static_cast<int>(rows.size()),
            .columns = part.columns.data(),
            .column_count = static_cast<int>(part.columns.size()),
            .gather = channels_.gather_lanes(),
            .inputs = static_cast<int>(view_.inputs),
            .input_channels = static_cast<int>(groups * view_.inputs),
            .output_channels = static_cast<int>(groups * view_.outputs),
            .blocks = static_cast<int>(mine.length()),
            .block_weights = grid.block_weights,
            .bias = operands.bias == nullptr ? nullptr : operands.bias + channel,
            .addend = operands.residual == nullptr ? nullptr : at(operands.residual, result_, to),
            .output = reinterpret_cast<std::byte*>(operands.output) + to * bytes_of(result_),
            .output_step = points.step.w * out_channels,
            .floor = operands.relu ? 0.0F : -std::numeric_limits<float>::infinity(),
            .stores_sums = result_ != operand_,
            .input_zero = quantization.input_zero,
            .scales = quantization.scales == nullptr ? nullptr : quantization.scales + channel,
            .addend_scale = quantization.addend_scale,
            .addend_zero = quantization.addend_zero,
            .output_zero = quantization.output_zero});
  };
  const bool ends_partial =
      blocks.end == channels_.blocks && channels_.groups_in(blocks.end - 1) < channels_.of_block;
  const Range full{blocks.begin, blocks.end - (ends_partial ? 1 : 0)};
  for (const GroupPoints& part : grid.plan.points) {
    if (full.length() > 0) {
      run_blocks(part, full);
    }
    if (ends_partial) {
      run_blocks(part, {full.end, blocks.end});
    }
  }
}

void GroupConv::run(const ConvOperands& operands, std::span<const float> packed,
                    std::span<float> /*workspace*/) const {
  FORETUNE_CHECK(result_ != OutputType::kI8 ||
                 (operands.quantization != nullptr && operands.quantization->scales != nullptr));
  const std::ptrdiff_t channels_of_block = channels_.of_block * view_.outputs;
  const std::ptrdiff_t chunk = std::max<std::ptrdiff_t>(1, config_.kc / channels_of_block);
  for (const Grid& grid : grids_) {
    const std::ptrdiff_t rows = view_.images * grid.grid.count.d * grid.grid.count.h;
    const auto work = [&](std::size_t /*thread*/, const Range& of_rows, const Range& of_blocks) {
      for (std::ptrdiff_t begin = of_rows.begin; begin < of_rows.end; begin += config_.rows) {
        const std::ptrdiff_t end = std::min<std::ptrdiff_t>(of_rows.end, begin + config_.rows);
        for (std::ptrdiff_t b = of_blocks.begin; b < of_blocks.end; b += chunk) {
          const Range blocks{b, std::min(b + chunk, of_blocks.end)};
          for (std::ptrdiff_t row = begin; row < end; ++row) {
            run_row(grid, row, blocks, operands, packed.data());
          }
        }
      }
    };
    share_work(config_, pool_, rows, channels_.blocks, work);
  }
}

}  // namespace foretune::cpu_conv
