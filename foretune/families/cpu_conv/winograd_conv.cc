#include "foretune/families/cpu_conv/winograd_conv.h"

#include <algorithm>
#include <array>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/kernels/packing.h"

namespace foretune::cpu_conv {
namespace {

constexpr std::size_t kMaxTilePoints = 36;
constexpr std::size_t kFilterPoints = 9;

bool has_form(const ConvProblem& problem) {
  const ConvSizes& s = problem.sizes();
  return !problem.skips() && s.operation != ConvOperation::kBackwardWeight && s.g == 1 &&
         s.x == 3 && s.y == 3 && s.z == 1 && s.di == 1 && s.pad_d == 0 && s.stride_d == 1 &&
         s.stride_h == 1 && s.stride_w == 1 && s.dilation_h == 1 && s.dilation_w == 1;
}

// Returns the distance between positions: not a power of two, so that those of a channel do not
// push each other out of the L1 cache.
std::size_t position_step(std::ptrdiff_t floats) {
  constexpr std::size_t kLine = AlignedBuffer::kAlignment / sizeof(float);
  return (in_lines(floats) / kLine | 1U) * kLine;
}

}  // namespace

Result<WinogradConv> WinogradConv::create(const ConvProblem& problem, const CpuConvConfig& config,
                                          ThreadPool* pool) {
  FORETUNE_TRY_STATUS(check_conv_threads(problem, config, pool));
  if (!has_form(problem)) {
    return fail(ErrorCode::kUnsupported,
                "Winograd's algorithm takes 3 x 3 filters in two dimensions, one group, no stride "
                "and no dilation");
  }
  const bool is_large = config.algorithm == ConvAlgorithm::kWinograd4;
  WinogradConv conv;
  conv.kernels_ = kernel_set(config.isa);
  conv.transforms_ = winograd_kernels(config.isa, is_large);
  if (conv.kernels_ == nullptr || conv.transforms_ == nullptr) {
    return fail(ErrorCode::kUnsupported, "there are no ", to_string(config.isa), " kernels here");
  }
  const int lanes = conv.kernels_->lanes;
  if (config.nr % lanes != 0 ||
      conv.kernels_->find({.rows = config.mr, .vectors = config.nr / lanes}) == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "there is no register block of ", config.mr, " x ",
                config.nr);
  }
  conv.view_ = ConvView::of(problem);
  conv.config_ = config;
  conv.pool_ = pool;
  const ConvView& view = conv.view_;
  conv.points_ = is_large ? 4 : 2;
  conv.tiles_h_ = ceil_div(view.out.h, conv.points_);
  conv.tiles_w_ = ceil_div(view.out.w, conv.points_);
  const std::ptrdiff_t tiles = view.images * conv.tiles_h_ * conv.tiles_w_;
  const std::ptrdiff_t wanted = ceil_div(config.rows * view.out.w, conv.points_ * conv.points_);
  conv.block_ = std::min(tiles, ceil_div(wanted, config.mr) * config.mr);
  conv.panels_ = ceil_div(view.outputs, config.nr);
  conv.panels_at_once_ = config.order == ConvOrder::kFilters ? 1 : conv.panels_;
  conv.row_ = std::min(conv.panels_at_once_ * config.nr, ceil_div(view.outputs, lanes) * lanes);
  conv.input_step_ = position_step(conv.block_ * view.inputs);
  conv.output_step_ = position_step(conv.block_ * conv.row_);
  conv.weight_step_ =
      position_step(packed_b_size(PackedWords::kF32, view.inputs, view.outputs, lanes));
  return conv;
}

// Behind the panels there is room for the transformed weights of a panel.
std::size_t WinogradConv::packed_size() const {
  return positions() * (weight_step_ + position_step(view_.inputs * config_.nr));
}

// Packed weights: for each position, the panels of its matrix of input x output channels.
void WinogradConv::pack_weights(const float* weights, std::span<float> packed) const {
  FORETUNE_CHECK(packed.size() >= packed_size());
  const std::size_t step = position_step(view_.inputs * config_.nr);
  float* const panel_weights = packed.data() + positions() * weight_step_;
  const TransposePanel transpose = transpose_panel_of(config_.isa);
  std::array<const float*, kFilterPoints> points{};
  // Weights are stored by filter, point, channel; for gradients of inputs filters are summed over.
  const std::ptrdiff_t channels = view_.is_transposed ? view_.outputs : view_.inputs;
  const auto transform = [&](std::ptrdiff_t filter, std::ptrdiff_t first, std::ptrdiff_t count,
                             float* to) {
    for (std::size_t i = 0; i < kFilterPoints; ++i) {
      const std::ptrdiff_t point = view_.grids.front().taps[i].point;
      points[i] = weights + (filter * std::ptrdiff_t{kFilterPoints} + point) * channels + first;
    }
    transforms_->weights(points.data(), count, to, static_cast<std::ptrdiff_t>(step));
  };
  for (std::ptrdiff_t panel = 0; panel < panels_; ++panel) {
    const std::ptrdiff_t first = panel * config_.nr;
    const std::ptrdiff_t width = std::min<std::ptrdiff_t>(config_.nr, view_.outputs - first);
    if (view_.is_transposed) {
      for (std::ptrdiff_t filter = 0; filter < view_.inputs; ++filter) {
        transform(filter, first, width, panel_weights + filter * config_.nr);
      }
    } else {
      for (std::ptrdiff_t filter = 0; filter < width; ++filter) {
        transform(first + filter, 0, view_.inputs, panel_weights + filter * view_.inputs);
      }
    }
    for (std::size_t position = 0; position < positions(); ++position) {
      pack_b_panels(PackedWords::kF32,
                    {.values = panel_weights + position * step,
                     .stride = view_.is_transposed ? config_.nr : view_.inputs,
                     .by_columns = !view_.is_transposed},
                    view_.inputs, width, config_.nr, kernels_->lanes,
                    packed.data() + position * weight_step_ + first * view_.inputs, transpose);
    }
  }
}

WinogradConv::Tile WinogradConv::tile_at(std::ptrdiff_t number) const {
  const std::ptrdiff_t row = number / tiles_w_;
  return {.image = row / tiles_h_,
          .y = row % tiles_h_ * points_,
          .x = (number - row * tiles_w_) * points_};
}

// Points beyond the image are read from zeros.
void WinogradConv::transform_input(const Range& tiles, const float* input,
                                   const Space& space) const {
  const Triple& low = view_.grids.front().taps.front().offset;
  std::array<const float*, kMaxTilePoints> points{};
  for (std::ptrdiff_t number = tiles.begin; number < tiles.end; ++number) {
    const Tile tile = tile_at(number);
    std::size_t at = 0;
    for (std::ptrdiff_t y = tile.y + low.h; y < tile.y + low.h + points_ + 2; ++y) {
      for (std::ptrdiff_t x = tile.x + low.w; x < tile.x + low.w + points_ + 2; ++x) {
        const bool is_inside = y >= 0 && y < view_.in.h && x >= 0 && x < view_.in.w;
        points[at++] = is_inside
                           ? input + ((tile.image * view_.in.h + y) * view_.in.w + x) * view_.inputs
                           : space.zeros;
      }
    }
    transforms_->input(points.data(), view_.inputs,
                       space.inputs + (number - tiles.begin) * view_.inputs,
                       static_cast<std::ptrdiff_t>(input_step_));
  }
}

void WinogradConv::multiply(std::ptrdiff_t tiles, const Range& panels, const float* packed,
                            const Space& space) const {
  const int lanes = kernels_->lanes;
  const std::ptrdiff_t chunk = even_part(view_.inputs, config_.kc);
  const std::ptrdiff_t rows = even_part(tiles, config_.mr);
  for (std::size_t position = 0; position < positions(); ++position) {
    const float* const a = space.inputs + position * input_step_;
    const float* const b = packed + position * weight_step_;
    float* const c = space.outputs + position * output_step_;
    for (std::ptrdiff_t panel = panels.begin; panel < panels.end; ++panel) {
      const std::ptrdiff_t first = panel * config_.nr;
      const auto vectors = static_cast<int>(
          ceil_div(std::min<std::ptrdiff_t>(config_.nr, view_.outputs - first), lanes));
      const std::ptrdiff_t width = std::ptrdiff_t{vectors} * lanes;
      for (std::ptrdiff_t input = 0; input < view_.inputs; input += chunk) {
        for (std::ptrdiff_t tile = 0; tile < tiles; tile += rows) {
          float* const to = c + tile * row_ + (panel - panels.begin) * config_.nr;
          const std::ptrdiff_t count = std::min(rows, tiles - tile);
          const MicroKernel kernel = kernels_->find(
              {.rows = static_cast<int>(count), .vectors = vectors, .loop = KernelLoop::kUnrolled});
          kernel({.a = a + tile * view_.inputs + input,
                  .a_stride = view_.inputs,
                  .b = b + first * view_.inputs + input * width,
                  .b_stride = width,
                  .c_in = to,
                  .c_in_stride = row_,
                  .c = to,
                  .c_stride = row_,
                  .k = std::min(chunk, view_.inputs - input),
                  .beta = input > 0 ? 1.0F : 0.0F});
        }
      }
    }
  }
}

void WinogradConv::transform_output(const Range& tiles, const Range& panels,
                                    const ConvOperands& operands, const Space& space) const {
  const std::ptrdiff_t first = panels.begin * config_.nr;
  const std::ptrdiff_t channels = std::min(panels.end * config_.nr, view_.outputs) - first;
  const std::ptrdiff_t row_step = view_.out.w * view_.outputs;
  for (std::ptrdiff_t number = tiles.begin; number < tiles.end; ++number) {
    const Tile tile = tile_at(number);
    const std::ptrdiff_t place =
        (tile.image * view_.out.h + tile.y) * row_step + tile.x * view_.outputs + first;
    WinogradOutput call{
        .from = space.outputs + (number - tiles.begin) * row_,
        .step = static_cast<std::ptrdiff_t>(output_step_),
        .channels = channels,
        .bias = operands.bias == nullptr ? nullptr : operands.bias + first,
        .addend = operands.residual == nullptr ? nullptr : operands.residual + place,
        .output = operands.output + place,
        .row_step = row_step,
        .point_step = view_.outputs,
        .rows = static_cast<int>(std::min(points_, view_.out.h - tile.y)),
        .columns = static_cast<int>(std::min(points_, view_.out.w - tile.x))};
    if (operands.relu) {
      call.floor = 0;
    }
    transforms_->output(call);
  }
}

void WinogradConv::run(const ConvOperands& operands, std::span<const float> packed,
                       std::span<float> workspace) const {
  const std::ptrdiff_t tiles = view_.images * tiles_h_ * tiles_w_;
  const std::ptrdiff_t blocks = ceil_div(tiles, block_);
  const std::ptrdiff_t threads = config_.threads;
  const auto work = [&](std::size_t index) {
    Space space{};
    space.zeros = workspace.data() + index * (workspace_size() / static_cast<std::size_t>(threads));
    space.inputs = space.zeros + zeros_size();
    space.outputs = space.inputs + positions() * input_step_;
    std::fill_n(space.zeros, view_.inputs, 0.0F);
    const Range mine = share_of(blocks, static_cast<std::ptrdiff_t>(index), threads);
    for (std::ptrdiff_t block = mine.begin; block < mine.end; ++block) {
      const Range of_block{block * block_, std::min(tiles, (block + 1) * block_)};
      transform_input(of_block, operands.input, space);
      for (std::ptrdiff_t panel = 0; panel < panels_; panel += panels_at_once_) {
        const Range panels{panel, std::min(panels_, panel + panels_at_once_)};
        multiply(of_block.length(), panels, packed.data(), space);
        transform_output(of_block, panels, operands, space);
      }
    }
  };
  if (threads == 1) {
    work(0);
  } else {
    pool_->run(static_cast<std::size_t>(threads), work);
  }
}

}  // namespace foretune::cpu_conv
