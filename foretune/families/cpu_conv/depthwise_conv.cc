#include "foretune/families/cpu_conv/depthwise_conv.h"

#include <algorithm>
#include <limits>

namespace foretune::cpu_conv {

Result<DepthwiseConv> DepthwiseConv::create(const ConvProblem& problem, const CpuConvConfig& config,
                                            ThreadPool* pool) {
  const ConvSizes& sizes = problem.sizes();
  if (sizes.c != sizes.g || sizes.k != sizes.g ||
      problem.operation() == ConvOperation::kBackwardWeight) {
    return fail(ErrorCode::kUnsupported,
                "these kernels gather by groups of one channel and one filter");
  }
  FORETUNE_TRY_STATUS(check_conv_threads(problem, config, pool));
  DepthwiseConv conv;
  conv.kernels_ = depthwise_kernel_set(config.isa);
  if (conv.kernels_ == nullptr) {
    return fail(ErrorCode::kUnsupported, "there are no ", to_string(config.isa), " kernels here");
  }
  if (config.nr % conv.kernels_->lanes != 0 ||
      conv.kernels_->find(config.mr, config.nr / conv.kernels_->lanes, false) == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "there is no register block of ", config.mr, " x ",
                config.nr);
  }
  conv.view_ = ConvView::of(problem);
  conv.config_ = config;
  conv.pool_ = pool;
  for (const ConvGrid& grid : conv.view_.grids) {
    if (grid.count.volume() > 0) {
      conv.grids_.push_back(conv.plan(grid));
    }
  }
  return conv;
}

DepthwiseConv::Grid DepthwiseConv::plan(const ConvGrid& given) const {
  Grid grid;
  grid.grid = given;
  const std::ptrdiff_t channels = view_.groups;
  // Taps are listed by row; the first row tells the columns, the first column the rows.
  for (const ConvTap& tap : given.taps) {
    const ConvTap& first = given.taps.front();
    if (tap.offset.d == first.offset.d && tap.offset.h == first.offset.h) {
      grid.columns.push_back(
          {.input = tap.offset.w * channels, .weight = (tap.point - first.point) * channels});
    }
  }
  for (std::ptrdiff_t z = 0; z < given.count.d; ++z) {
    for (std::ptrdiff_t y = 0; y < given.count.h; ++y) {
      std::vector<DepthwiseTap>& rows = grid.rows.emplace_back();
      for (const ConvTap& tap : given.taps) {
        const std::ptrdiff_t d = z * given.stride.d + tap.offset.d;
        const std::ptrdiff_t h = y * given.stride.h + tap.offset.h;
        if (tap.offset.w == given.taps.front().offset.w && d >= 0 && d < view_.in.d && h >= 0 &&
            h < view_.in.h) {
          rows.push_back({.input = (d * view_.in.h + h) * view_.in.w * channels,
                          .weight = tap.point * channels});
        }
      }
    }
  }
  for (std::ptrdiff_t x = 0; x < given.count.w; ++x) {
    const Range columns =
        inside({0, static_cast<std::ptrdiff_t>(grid.columns.size())}, view_.in.w,
               [&](std::ptrdiff_t column) {
                 return x * given.stride.w +
                        grid.columns[static_cast<std::size_t>(column)].input / channels;
               });
    if (!grid.stretches.empty() && grid.stretches.back().columns.begin == columns.begin &&
        grid.stretches.back().columns.end == columns.end) {
      ++grid.stretches.back().points.end;
    } else {
      grid.stretches.push_back({{x, x + 1}, columns});
    }
  }
  return grid;
}

// Packed weights lie by point of the filter, then by channel.
void DepthwiseConv::pack_weights(const float* weights, std::span<float> packed) const {
  const std::ptrdiff_t channels = view_.groups;
  for (std::ptrdiff_t point = 0; point < view_.filter_points; ++point) {
    for (std::ptrdiff_t channel = 0; channel < channels; ++channel) {
      packed[static_cast<std::size_t>(point * channels + channel)] =
          weights[channel * view_.filter_points + point];
    }
  }
}

void DepthwiseConv::run_row(const Grid& grid, std::ptrdiff_t n, std::ptrdiff_t z, std::ptrdiff_t y,
                            const Range& channels, const ConvOperands& operands,
                            const float* packed) const {
  const ConvGrid& points = grid.grid;
  const std::vector<DepthwiseTap>& rows =
      grid.rows[static_cast<std::size_t>(z * points.count.h + y)];
  const std::ptrdiff_t all = view_.groups;
  const float* const input = operands.input + n * view_.in.volume() * all;
  const std::ptrdiff_t out_row =
      ((n * view_.out.d + points.first.d + z * points.step.d) * view_.out.h + points.first.h +
       y * points.step.h) *
          view_.out.w +
      points.first.w;
  const auto run_block = [&](const Stretch& stretch, std::ptrdiff_t x, std::ptrdiff_t channel) {
    const std::ptrdiff_t block = even_part(stretch.points.length(), config_.mr);
    const auto count = static_cast<int>(std::min(block, stretch.points.end - x));
    const std::ptrdiff_t width = std::min<std::ptrdiff_t>(config_.nr, channels.end - channel);
    const int vectors = static_cast<int>(ceil_div(width, kernels_->lanes));
    const int last = static_cast<int>(width - (vectors - 1) * kernels_->lanes);
    const std::ptrdiff_t to = (out_row + x * points.step.w) * all + channel;
    const DepthwiseKernel kernel = kernels_->find(count, vectors, last < kernels_->lanes);
    kernel({.input = input + x * points.stride.w * all + channel,
            .input_step = points.stride.w * all,
            .weights = packed + channel,
            .rows = rows.data(),
            .row_count = static_cast<int>(rows.size()),
            .columns = grid.columns.data() + stretch.columns.begin,
            .column_count = static_cast<int>(stretch.columns.length()),
            .bias = operands.bias == nullptr ? nullptr : operands.bias + channel,
            .addend = operands.residual == nullptr ? nullptr : operands.residual + to,
            .output = operands.output + to,
            .output_step = points.step.w * all,
            .floor = operands.relu ? 0.0F : -std::numeric_limits<float>::infinity(),
            .last_channels = last});
  };
  const auto for_each_block = [&](const auto& visit) {
    for (const Stretch& stretch : grid.stretches) {
      const std::ptrdiff_t block = even_part(stretch.points.length(), config_.mr);
      for (std::ptrdiff_t x = stretch.points.begin; x < stretch.points.end; x += block) {
        visit(stretch, x);
      }
    }
  };
  if (config_.order == ConvOrder::kPoints) {
    for_each_block([&](const Stretch& stretch, std::ptrdiff_t x) {
      for (std::ptrdiff_t channel = channels.begin; channel < channels.end; channel += config_.nr) {
        run_block(stretch, x, channel);
      }
    });
    return;
  }
  for (std::ptrdiff_t channel = channels.begin; channel < channels.end; channel += config_.nr) {
    for_each_block(
        [&](const Stretch& stretch, std::ptrdiff_t x) { run_block(stretch, x, channel); });
  }
}

void DepthwiseConv::run(const ConvOperands& operands, std::span<const float> packed) const {
  const std::ptrdiff_t threads = config_.threads;
  const bool shares_points = config_.split == ConvSplit::kPoints;
  // Blocks of channels, of a whole number of register blocks: kc at most in the order of points.
  const std::ptrdiff_t block =
      config_.order == ConvOrder::kPoints
          ? std::max<std::ptrdiff_t>(1, config_.kc / config_.nr) * config_.nr
          : config_.nr;
  const std::ptrdiff_t blocks = ceil_div(view_.groups, block);
  for (const Grid& grid : grids_) {
    const Triple& count = grid.grid.count;
    const std::ptrdiff_t rows = view_.images * count.d * count.h;
    const auto work = [&](std::size_t index) {
      const auto thread = static_cast<std::ptrdiff_t>(index);
      const Range of_rows = shares_points ? share_of(rows, thread, threads) : Range{0, rows};
      const Range of_blocks = shares_points ? Range{0, blocks} : share_of(blocks, thread, threads);
      for (std::ptrdiff_t begin = of_rows.begin; begin < of_rows.end; begin += config_.rows) {
        const std::ptrdiff_t end = std::min<std::ptrdiff_t>(of_rows.end, begin + config_.rows);
        for (std::ptrdiff_t b = of_blocks.begin; b < of_blocks.end; ++b) {
          const Range channels{b * block, std::min(view_.groups, (b + 1) * block)};
          for (std::ptrdiff_t row = begin; row < end; ++row) {
            run_row(grid, row / (count.d * count.h), row / count.h % count.d, row % count.h,
                    channels, operands, packed.data());
          }
        }
      }
    };
    if (threads == 1) {
      work(0);
    } else {
      pool_->run(static_cast<std::size_t>(threads), work);
    }
  }
}

}  // namespace foretune::cpu_conv
