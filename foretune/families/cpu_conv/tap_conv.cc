#include "foretune/families/cpu_conv/tap_conv.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/families/cpu_conv/weight_places.h"
#include "foretune/families/cpu_conv/work_shares.h"

namespace foretune::cpu_conv {

// Register blocks of points of a slab that one call of a kernel computes.
struct TapConv::Tile {
  const Grid& grid;
  const ConvOperands& operands;
  const float* packed;  // of the group
  const float* from;    // the input of its first point, without taps
  std::ptrdiff_t to;    // position in the output, without output channel
  std::ptrdiff_t group;
  std::ptrdiff_t points;  // of a block
  std::ptrdiff_t blocks;
  Range taps;                 // of the grid
  const std::uint32_t* rows;  // as Strip::rows, or null
};

namespace {

Status check_pool(const CpuConvConfig& config, const ThreadPool* pool) {
  if (config.threads > 1 &&
      (pool == nullptr || pool->threads() < static_cast<std::size_t>(config.threads))) {
    return fail(ErrorCode::kInvalidArgument, "the pool has fewer than ", config.threads,
                " threads");
  }
  return {};
}

}  // namespace

Status check_conv_threads(const ConvProblem& problem, const CpuConvConfig& config,
                          const ThreadPool* pool, std::initializer_list<DataType> types) {
  const ConvLayout layout = config.algorithm == ConvAlgorithm::kPlanar ? ConvLayout::kChannelsFirst
                                                                       : ConvLayout::kChannelsLast;
  if (problem.layout() != layout || std::ranges::find(types, problem.dtype()) == types.end()) {
    return fail(ErrorCode::kUnsupported, "these kernels do not take ", to_string(problem.dtype()),
                " with ", to_string(problem.layout()));
  }
  return check_pool(config, pool);
}

Result<const TapKernelSet*> tap_kernels_for(const ConvProblem& problem, const CpuConvConfig& config,
                                            const ThreadPool* pool) {
  FORETUNE_TRY_STATUS(check_conv_threads(problem, config, pool));
  return tap_kernels_for(config, pool, KernelMath::kF32);
}

Result<const TapKernelSet*> tap_kernels_for(const CpuConvConfig& config, const ThreadPool* pool,
                                            KernelMath math) {
  FORETUNE_TRY_STATUS(check_pool(config, pool));
  const TapKernelSet* const kernels = tap_kernel_set(config.isa, math);
  if (kernels == nullptr) {
    return fail(ErrorCode::kUnsupported, "there are no ", to_string(config.isa), " kernels here");
  }
  if (config.nr % kernels->lanes != 0 ||
      kernels->find({.rows = config.mr, .vectors = config.nr / kernels->lanes}) == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "there is no register block of ", config.mr, " x ",
                config.nr);
  }
  return kernels;
}

Result<TapConv> TapConv::create(const ConvProblem& problem, const CpuConvConfig& config,
                                ThreadPool* pool) {
  if (problem.operation() == ConvOperation::kBackwardWeight) {
    return fail(ErrorCode::kUnsupported, "these kernels do not compute gradients of weights");
  }
  TapConv conv;
  FORETUNE_TRY(conv.kernels_, tap_kernels_for(problem, config, pool));
  conv.view_ = ConvView::of(problem);
  conv.config_ = config;
  conv.pool_ = pool;
  conv.join_groups();
  conv.out_channels_ = conv.view_.groups * conv.view_.outputs;
  for (const ConvGrid& grid : conv.view_.grids) {
    conv.plan(grid);
  }
  return conv;
}

void TapConv::join_groups() {
  joined_ = joined_groups(view_.groups, view_.outputs, config_.nr);
  view_.groups /= joined_;
  view_.inputs *= joined_;
  view_.outputs *= joined_;
}

void TapConv::plan(const ConvGrid& given) {
  Grid grid{.packed = packed_size_};
  grid.input = InputSlabs(view_, given,
                          {.rows = config_.rows,
                           .block_w = config_.mr,
                           .always_copies = config_.copy == ConvCopy::kAlways,
                           .never_copies = config_.taps == ConvTaps::kInner});
  grid.block_w = even_part(grid.input.grid().count.w, config_.mr);
  const bool is_row = config_.taps == ConvTaps::kRow && grid.input.has_dense_rows();
  const std::ptrdiff_t chunk = is_row ? view_.inputs : even_part(view_.inputs, config_.kc);
  for (std::ptrdiff_t begin = 0; begin < view_.inputs; begin += chunk) {
    grid.chunks.push_back({begin, std::min(view_.inputs, begin + chunk)});
  }
  const std::ptrdiff_t merged = is_row ? grid.input.taps_of_row() : 1;
  grid.merged = merged;
  grid.depth = is_row ? merged * view_.inputs : 0;
  for (std::size_t tap = 0; tap < given.taps.size(); tap += static_cast<std::size_t>(merged)) {
    grid.offsets.push_back(grid.input.offset(given.taps[tap]));
  }
  grid.panel_size = given.taps.size() * static_cast<std::size_t>(view_.inputs * config_.nr);
  if (!given.taps.empty()) {
    plan_rows(grid);
  }
  slab_size_ = std::max(slab_size_, grid.input.size());
  packed_size_ += static_cast<std::size_t>(view_.groups * panels()) * grid.panel_size;
  grids_.push_back(std::move(grid));
}

std::ptrdiff_t TapConv::panel_width(std::ptrdiff_t panel) const {
  const std::ptrdiff_t rest = view_.outputs - panel * config_.nr;
  return std::min<std::ptrdiff_t>(config_.nr, ceil_div(rest, kernels_->lanes) * kernels_->lanes);
}

void TapConv::plan_rows(Grid& grid) const {
  const InputSlabs& input = grid.input;
  std::map<std::array<std::ptrdiff_t, 4>, std::size_t> known;
  for (std::ptrdiff_t z = 0; z < input.grid().count.d; ++z) {
    for (std::ptrdiff_t y = 0; y < input.grid().count.h; ++y) {
      const Range planes = input.inner_planes(z);
      const Range rows = input.inner_rows(y);
      const auto [found, is_new] =
          known.try_emplace({planes.begin, planes.end, rows.begin, rows.end}, grid.plans.size());
      if (is_new) {
        const Range taps = input.inner_taps(z, y);
        grid.plans.push_back({.taps = taps, .strips = strips_of(grid, planes, rows, taps)});
      }
      grid.plan_of.push_back(found->second);
    }
  }
}

std::vector<TapConv::Strip> TapConv::strips_of(const Grid& grid, const Range& planes,
                                               const Range& rows, const Range& taps) const {
  const InputSlabs& input = grid.input;
  const ConvGrid& points = input.grid();
  const std::ptrdiff_t columns = input.taps_of_row();
  std::vector<Strip> strips;
  for (std::ptrdiff_t begin = 0; begin < points.count.w; begin += grid.block_w) {
    Strip strip{.first = begin, .length = std::min(grid.block_w, points.count.w - begin)};
    bool is_whole = true;
    for (std::ptrdiff_t tap = 0; config_.taps == ConvTaps::kInner && tap < taps.end; ++tap) {
      const std::ptrdiff_t row = tap / columns;
      const std::ptrdiff_t plane = row / input.rows_of_plane();
      const std::ptrdiff_t of_plane = row % input.rows_of_plane();
      const bool is_inside = planes.begin <= plane && plane < planes.end &&
                             rows.begin <= of_plane && of_plane < rows.end;
      const std::ptrdiff_t offset = points.taps[static_cast<std::size_t>(tap)].offset.w;
      std::uint32_t found = 0;
      for (std::ptrdiff_t point = 0; is_inside && point < strip.length; ++point) {
        const std::ptrdiff_t place = (begin + point) * points.stride.w + offset;
        found |= place >= 0 && place < input.width() ? 1U << static_cast<unsigned>(point) : 0U;
      }
      is_whole =
          is_whole && (tap < taps.begin || found + 1 == 1U << static_cast<unsigned>(strip.length));
      strip.rows.push_back(found);
    }
    if (is_whole) {
      strip.rows.clear();
    }
    if (!strips.empty() && strips.back().length == strip.length &&
        strips.back().rows == strip.rows) {
      ++strips.back().blocks;
    } else {
      strips.push_back(std::move(strip));
    }
  }
  return strips;
}

// Packed weights: for each grid, group, panel and chunk, one row of the panel for each tap and
// input channel of the chunk.
void TapConv::pack_weights(const float* weights, std::span<float> packed) const {
  FORETUNE_CHECK(packed.size() >= packed_size_);
  const std::ptrdiff_t points = view_.filter_points;
  // Sizes of the problem's groups.
  const std::ptrdiff_t inputs = view_.inputs / joined_;
  const std::ptrdiff_t outputs = view_.outputs / joined_;
  // Weights are stored by filter, point, channel; for gradients of inputs filters are summed over.
  const std::ptrdiff_t of_output = view_.is_transposed ? 1 : points * inputs;
  const std::ptrdiff_t of_input = view_.is_transposed ? points * outputs : 1;
  const std::ptrdiff_t of_point = view_.is_transposed ? outputs : inputs;
  const std::ptrdiff_t of_group = points * inputs * outputs;
  for (const Grid& grid : grids_) {
    for (std::ptrdiff_t group = 0; group < view_.groups; ++group) {
      for (std::ptrdiff_t panel = 0; panel < panels(); ++panel) {
        float* to = packed.data() + grid.packed +
                    static_cast<std::size_t>(group * panels() + panel) * grid.panel_size;
        const std::ptrdiff_t width = panel_width(panel);
        const std::ptrdiff_t first = panel * config_.nr;
        const std::ptrdiff_t filled = std::min<std::ptrdiff_t>(width, view_.outputs - first);
        for (const Range& chunk : grid.chunks) {
          for (const ConvTap& tap : grid.input.grid().taps) {
            for (std::ptrdiff_t input = chunk.begin; input < chunk.end; ++input) {
              // The lanes of the input's own group; all others are 0.
              const std::ptrdiff_t own = input / inputs;
              const float* const from = weights + (group * joined_ + own) * of_group +
                                        tap.point * of_point + input % inputs * of_input;
              const std::ptrdiff_t begin =
                  std::clamp<std::ptrdiff_t>(own * outputs - first, 0, filled);
              const std::ptrdiff_t end =
                  std::clamp<std::ptrdiff_t>((own + 1) * outputs - first, 0, filled);
              std::fill(to, to + width, 0.0F);
              for (std::ptrdiff_t lane = begin; lane < end; ++lane) {
                to[lane] = from[(first + lane - own * outputs) * of_output];
              }
              to += width;
            }
          }
        }
      }
    }
  }
}

void TapConv::run_tile(const Tile& tile, std::ptrdiff_t panel, std::size_t chunk) const {
  const Grid& grid = tile.grid;
  const ConvOperands& operands = tile.operands;
  const Range& channels = grid.chunks[chunk];
  const std::ptrdiff_t width = panel_width(panel);
  const std::ptrdiff_t first = panel * config_.nr;
  const int vectors = static_cast<int>(width / kernels_->lanes);
  const auto taps = static_cast<std::ptrdiff_t>(grid.input.grid().taps.size());
  const std::ptrdiff_t channel = tile.group * view_.outputs + first;
  const std::ptrdiff_t step = grid.input.grid().step.w * out_channels_;
  const std::ptrdiff_t a_stride = grid.input.grid().stride.w * grid.input.pitch().w;
  const int last = static_cast<int>(std::min<std::ptrdiff_t>(width, view_.outputs - first) -
                                    (vectors - 1) * kernels_->lanes);
  float* const c = operands.output + tile.to + channel;
  MicroKernelCall call{.a = tile.from + channels.begin,
                       .a_stride = a_stride,
                       .b = tile.packed + static_cast<std::size_t>(panel) * grid.panel_size +
                            (channels.begin * taps + tile.taps.begin * channels.length()) * width,
                       .b_stride = width,
                       .c = c,
                       .c_stride = step,
                       .k = grid.depth > 0 ? grid.depth : channels.length(),
                       .prefetch_c = true,
                       .last_columns = last,
                       .a_offsets = grid.offsets.data() + tile.taps.begin / grid.merged,
                       .taps = static_cast<int>(tile.taps.length() / grid.merged),
                       .tap_rows = tile.rows == nullptr ? nullptr : tile.rows + tile.taps.begin,
                       .blocks = tile.blocks,
                       .a_block = tile.points * a_stride,
                       .c_block = tile.points * step};
  if (chunk > 0 || operands.residual != nullptr) {
    call.beta = 1;
    call.c_in = chunk > 0 ? c : operands.residual + tile.to + channel;
    call.c_in_stride = step;
  }
  if (chunk == 0 && operands.bias != nullptr) {
    call.bias = operands.bias + channel;
  }
  if (operands.relu && chunk + 1 == grid.chunks.size()) {
    call.floor = 0;
  }
  kernels_->find({.rows = static_cast<int>(tile.points),
                  .vectors = vectors,
                  .tail = last < kernels_->lanes})(call);
}

void TapConv::run_slab(const Grid& grid, const Slab& slab, std::ptrdiff_t group,
                       const Range& panels_of_thread, const ConvOperands& operands,
                       const float* packed, float* workspace) const {
  const InputSlabs& input = grid.input;
  const float* const filled = input.fill(slab, group, operands.input, workspace);
  const auto for_each_row = [&](const auto& visit) {
    for (std::ptrdiff_t n = slab.images.begin; n < slab.images.end; ++n) {
      for (std::ptrdiff_t z = slab.d.begin; z < slab.d.end; ++z) {
        for (std::ptrdiff_t y = slab.h.begin; y < slab.h.end; ++y) {
          visit(n, z, y);
        }
      }
    }
  };
  // Visits the strips of a row that begin in the slab, each as one tile or a tile for each block.
  const auto for_each_tile = [&](std::ptrdiff_t n, std::ptrdiff_t z, std::ptrdiff_t y, bool single,
                                 const auto& visit) {
    const RowPlan& plan =
        grid.plans[grid.plan_of[static_cast<std::size_t>(z * input.grid().count.h + y)]];
    for (const Strip& strip : plan.strips) {
      // Slabs are cut between blocks.
      const Range blocks{
          std::max<std::ptrdiff_t>(0, ceil_div(slab.w.begin - strip.first, strip.length)),
          std::min(strip.blocks, ceil_div(slab.w.end - strip.first, strip.length))};
      const std::ptrdiff_t together = single ? 1 : blocks.length();
      for (std::ptrdiff_t block = blocks.begin; block < blocks.end; block += together) {
        const std::ptrdiff_t x = strip.first + block * strip.length;
        visit(Tile{.grid = grid,
                   .operands = operands,
                   .packed = packed,
                   .from = filled + input.place(slab, n, z, y, x),
                   .to = input.out_point(n, z, y, x) * out_channels_,
                   .group = group,
                   .points = strip.length,
                   .blocks = together,
                   .taps = plan.taps,
                   .rows = strip.rows.empty() ? nullptr : strip.rows.data()});
      }
    }
  };
  const auto for_each_product = [&](const auto& visit) {
    for (std::ptrdiff_t panel = panels_of_thread.begin; panel < panels_of_thread.end; ++panel) {
      for (std::size_t chunk = 0; chunk < grid.chunks.size(); ++chunk) {
        visit(panel, chunk);
      }
    }
  };
  switch (config_.order) {
    case ConvOrder::kFilters:
      for_each_product([&](std::ptrdiff_t panel, std::size_t chunk) {
        for_each_row([&](std::ptrdiff_t n, std::ptrdiff_t z, std::ptrdiff_t y) {
          for_each_tile(n, z, y, false, [&](const Tile& tile) { run_tile(tile, panel, chunk); });
        });
      });
      return;
    case ConvOrder::kRows:
      for_each_row([&](std::ptrdiff_t n, std::ptrdiff_t z, std::ptrdiff_t y) {
        for_each_product([&](std::ptrdiff_t panel, std::size_t chunk) {
          for_each_tile(n, z, y, false, [&](const Tile& tile) { run_tile(tile, panel, chunk); });
        });
      });
      return;
    case ConvOrder::kPoints:
      for_each_row([&](std::ptrdiff_t n, std::ptrdiff_t z, std::ptrdiff_t y) {
        for_each_tile(n, z, y, true, [&](const Tile& tile) {
          for_each_product(
              [&](std::ptrdiff_t panel, std::size_t chunk) { run_tile(tile, panel, chunk); });
        });
      });
  }
}

// Output points without taps get bias and residual only.
void TapConv::clear(const Grid& grid, const ConvOperands& operands) const {
  const Triple& count = grid.input.grid().count;
  for (std::ptrdiff_t n = 0; n < view_.images; ++n) {
    for (std::ptrdiff_t z = 0; z < count.d; ++z) {
      for (std::ptrdiff_t y = 0; y < count.h; ++y) {
        for (std::ptrdiff_t x = 0; x < count.w; ++x) {
          const std::ptrdiff_t at = grid.input.out_point(n, z, y, x) * out_channels_;
          for (std::ptrdiff_t channel = 0; channel < out_channels_; ++channel) {
            float value = operands.bias == nullptr ? 0.0F : operands.bias[channel];
            value += operands.residual == nullptr ? 0.0F : operands.residual[at + channel];
            operands.output[at + channel] = operands.relu && value < 0 ? 0.0F : value;
          }
        }
      }
    }
  }
}

void TapConv::run(const ConvOperands& operands, std::span<const float> packed,
                  std::span<float> workspace) const {
  for (const Grid& grid : grids_) {
    if (grid.input.grid().taps.empty()) {
      clear(grid, operands);
      continue;
    }
    const auto slabs = static_cast<std::ptrdiff_t>(grid.input.slabs().size());
    share_work(config_, pool_, view_.groups * slabs, panels(),
               [&](std::size_t thread, const Range& units, const Range& panels_of_thread) {
                 for (std::ptrdiff_t unit = units.begin; unit < units.end; ++unit) {
                   const std::ptrdiff_t group = unit / slabs;
                   run_slab(grid, grid.input.slabs()[static_cast<std::size_t>(unit % slabs)], group,
                            panels_of_thread, operands,
                            packed.data() + grid.packed +
                                static_cast<std::size_t>(group * panels()) * grid.panel_size,
                            workspace.data() + thread * slab_size_);
                 }
               });
  }
}

}  // namespace foretune::cpu_conv
