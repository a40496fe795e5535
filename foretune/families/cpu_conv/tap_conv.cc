#include "foretune/families/cpu_conv/tap_conv.h"

#include <algorithm>
#include <utility>

#include "foretune/base/check.h"

namespace foretune::cpu_conv {

// One register block of points of a slab.
struct TapConv::Tile {
  const Grid& grid;
  const ConvOperands& operands;
  const float* packed;  // of the group
  const float* from;    // the input of its first point, without taps
  std::ptrdiff_t to;    // position in the output, without output channel
  std::ptrdiff_t group;
  std::ptrdiff_t points;
  const Pieces* pieces;
};

Status check_conv_threads(const ConvProblem& problem, const CpuConvConfig& config,
                          const ThreadPool* pool) {
  if (problem.layout() != ConvLayout::kChannelsLast || problem.dtype() != DataType::kF32) {
    return fail(ErrorCode::kUnsupported,
                "kernels of convolutions take f32 with channels last, not ",
                to_string(problem.dtype()), " with ", to_string(problem.layout()));
  }
  if (config.threads > 1 &&
      (pool == nullptr || pool->threads() < static_cast<std::size_t>(config.threads))) {
    return fail(ErrorCode::kInvalidArgument, "the pool has fewer than ", config.threads,
                " threads");
  }
  return {};
}

Result<const TapKernelSet*> tap_kernels_for(const ConvProblem& problem, const CpuConvConfig& config,
                                            const ThreadPool* pool) {
  FORETUNE_TRY_STATUS(check_conv_threads(problem, config, pool));
  const TapKernelSet* const kernels = tap_kernel_set(config.isa);
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
  const std::int64_t columns = problem.sizes().x * problem.sizes().z;
  if (config.taps == ConvTaps::kInner && columns + 2 > static_cast<std::int64_t>(Pieces::kMost)) {
    return fail(ErrorCode::kUnsupported, "the filter has too many columns to part them");
  }
  for (const ConvGrid& grid : conv.view_.grids) {
    conv.plan(grid);
  }
  return conv;
}

void TapConv::join_groups() {
  for (std::ptrdiff_t count = config_.nr / view_.outputs; count > 1; --count) {
    if (view_.groups % count == 0) {
      joined_ = count;
      break;
    }
  }
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
  grid.taps = given.taps;
  if (config_.taps == ConvTaps::kInner && !given.taps.empty()) {
    // By column, so that the taps of a column are a range.
    std::ranges::stable_sort(grid.taps, {}, [](const ConvTap& tap) { return tap.offset.w; });
    const std::ptrdiff_t columns = grid.input.taps_of_row();
    grid.taps_of_column = static_cast<std::ptrdiff_t>(grid.taps.size()) / columns;
    for (std::ptrdiff_t column = 0; column < columns; ++column) {
      grid.columns.push_back(
          grid.taps[static_cast<std::size_t>(column * grid.taps_of_column)].offset.w);
    }
  }
  for (std::size_t tap = 0; tap < grid.taps.size(); tap += static_cast<std::size_t>(merged)) {
    grid.offsets.push_back(grid.input.offset(grid.taps[tap]));
  }
  slab_size_ = std::max(slab_size_, grid.input.size());
  packed_size_ += static_cast<std::size_t>(view_.groups * panels()) * panel_size(grid);
  grids_.push_back(std::move(grid));
}

std::ptrdiff_t TapConv::panel_width(std::ptrdiff_t panel) const {
  const std::ptrdiff_t rest = view_.outputs - panel * config_.nr;
  return std::min<std::ptrdiff_t>(config_.nr, ceil_div(rest, kernels_->lanes) * kernels_->lanes);
}

std::size_t TapConv::panel_size(const Grid& grid) const {
  return grid.input.grid().taps.size() * static_cast<std::size_t>(view_.inputs * config_.nr);
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
                    static_cast<std::size_t>(group * panels() + panel) * panel_size(grid);
        const std::ptrdiff_t width = panel_width(panel);
        const std::ptrdiff_t first = panel * config_.nr;
        const std::ptrdiff_t filled = std::min<std::ptrdiff_t>(width, view_.outputs - first);
        for (const Range& chunk : grid.chunks) {
          for (const ConvTap& tap : grid.taps) {
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
  const std::ptrdiff_t outputs = std::min<std::ptrdiff_t>(width, view_.outputs - first);
  const int vectors = static_cast<int>(width / kernels_->lanes);
  const auto taps = static_cast<std::ptrdiff_t>(grid.input.grid().taps.size());
  const std::ptrdiff_t channel = tile.group * view_.outputs + first;
  const std::ptrdiff_t step = grid.input.grid().step.w * out_channels_;
  float* const c = operands.output + tile.to + channel;
  MicroKernelCall call{.a = tile.from + channels.begin,
                       .a_stride = grid.input.grid().stride.w * grid.input.pitch().w,
                       .b = tile.packed + static_cast<std::size_t>(panel) * panel_size(grid) +
                            channels.begin * taps * width,
                       .b_stride = width,
                       .c = c,
                       .c_stride = step,
                       .k = grid.depth > 0 ? grid.depth : channels.length(),
                       .prefetch_c = true,
                       .last_columns = static_cast<int>(outputs - (vectors - 1) * kernels_->lanes),
                       .a_offsets = grid.offsets.data()};
  if (chunk > 0) {
    call.c_in = c;
    call.c_in_stride = step;
    call.beta = 1;
  } else if (operands.residual != nullptr) {
    const float* residual = operands.residual + tile.to + channel;
    call.beta = 1;
    call.c_in = residual;
    call.c_in_stride = step;
    if (operands.bias != nullptr) {
      for (std::ptrdiff_t point = 0; point < tile.points; ++point) {
        for (std::ptrdiff_t output = 0; output < outputs; ++output) {
          c[point * step + output] =
              residual[point * step + output] + operands.bias[channel + output];
        }
      }
      call.c_in = c;
    }
  } else if (operands.bias != nullptr) {
    call.c_in = operands.bias + channel;
    call.c_in_stride = 0;
    call.beta = 1;
  }
  const bool is_last_chunk = chunk + 1 == grid.chunks.size();
  for (std::size_t i = 0; i < tile.pieces->count; ++i) {
    const Piece& piece = tile.pieces->list[i];
    MicroKernelCall part = call;
    if (i > 0) {
      part.c_in = c + piece.points.begin * step;
      part.c_in_stride = step;
      part.beta = 1;
    }
    part.a += piece.points.begin * call.a_stride;
    part.b += piece.taps.begin * channels.length() * width;
    part.c += piece.points.begin * step;
    part.a_offsets += piece.taps.begin / grid.merged;
    part.taps = static_cast<int>(piece.taps.length() / grid.merged);
    if (operands.relu && is_last_chunk && i + 1 == tile.pieces->count) {
      part.floor = 0;
    }
    const MicroKernel kernel = kernels_->find({.rows = static_cast<int>(piece.points.length()),
                                               .vectors = vectors,
                                               .tail = call.last_columns < kernels_->lanes});
    kernel(part);
  }
}

// Columns that all points find within the image are one call; the others a call each, for the
// points that find them.
TapConv::Pieces TapConv::inner_pieces(const Grid& grid, std::ptrdiff_t z, std::ptrdiff_t y,
                                      const Range& points) {
  const InputSlabs& input = grid.input;
  const std::ptrdiff_t stride = input.grid().stride.w;
  const Range planes = input.inner_planes(z);
  const Range rows = input.inner_rows(y);
  const std::ptrdiff_t rows_of_plane = input.rows_of_plane();
  const bool is_whole = planes.length() * rows.length() == grid.taps_of_column;
  Pieces pieces;
  const Range all{0, points.length()};
  const auto add_column = [&](const Range& covered, std::ptrdiff_t column) {
    const std::ptrdiff_t first = column * grid.taps_of_column;
    // Rows of several planes are a range only when they are all rows.
    const bool is_range = planes.length() <= 1 || rows.length() == rows_of_plane;
    for (std::ptrdiff_t plane = planes.begin; plane < planes.end && rows.length() > 0; ++plane) {
      const std::ptrdiff_t last = is_range ? planes.end - 1 : plane;
      pieces.add(
          {covered,
           {first + plane * rows_of_plane + rows.begin, first + last * rows_of_plane + rows.end}});
      plane = last;
    }
  };
  // The points that find a column.
  const auto covered_by = [&](std::ptrdiff_t column) {
    const std::ptrdiff_t offset = grid.columns[static_cast<std::size_t>(column)];
    return inside(all, input.width(),
                  [&](std::ptrdiff_t point) { return (points.begin + point) * stride + offset; });
  };
  const auto columns = static_cast<std::ptrdiff_t>(grid.columns.size());
  Range full{columns, columns};  // columns that all points find, which are neighbours
  for (std::ptrdiff_t column = 0; column < columns; ++column) {
    if (covered_by(column).length() == all.length()) {
      full.begin = std::min(full.begin, column);
      full.end = column + 1;
    }
  }
  if (full.length() < columns || full.length() == 0) {
    pieces.add({all, {0, 0}});  // begins the sums of all points
  }
  for (std::ptrdiff_t column = 0; column < columns; ++column) {
    const Range covered = covered_by(column);
    if (covered.length() > 0 && covered.length() < all.length()) {
      add_column(covered, column);
    }
  }
  if (is_whole && full.length() > 0) {
    pieces.add({all, {full.begin * grid.taps_of_column, full.end * grid.taps_of_column}});
  } else {
    for (std::ptrdiff_t column = full.begin; column < full.end; ++column) {
      add_column(all, column);
    }
  }
  if (pieces.count == 0 || pieces.list[pieces.count - 1].points.length() < all.length()) {
    pieces.add({all, {0, 0}});
  }
  return pieces;
}

void TapConv::run_slab(const Grid& grid, const Slab& slab, std::ptrdiff_t group,
                       const Range& panels_of_thread, const ConvOperands& operands,
                       const float* packed, float* workspace) const {
  const InputSlabs& input = grid.input;
  const float* const filled = input.fill(slab, group, operands.input, workspace);
  const auto for_each_tile = [&](const auto& visit) {
    for (std::ptrdiff_t n = slab.images.begin; n < slab.images.end; ++n) {
      for (std::ptrdiff_t z = slab.d.begin; z < slab.d.end; ++z) {
        for (std::ptrdiff_t y = slab.h.begin; y < slab.h.end; ++y) {
          Pieces pieces;
          if (config_.taps != ConvTaps::kInner) {
            pieces.add({{}, input.inner_taps(z, y)});
          }
          for (std::ptrdiff_t x = slab.w.begin; x < slab.w.end; x += grid.block_w) {
            const Range points{x, std::min(x + grid.block_w, slab.w.end)};
            if (config_.taps == ConvTaps::kInner) {
              pieces = inner_pieces(grid, z, y, points);
            } else {
              pieces.list[0].points = {0, points.length()};
            }
            visit(Tile{.grid = grid,
                       .operands = operands,
                       .packed = packed,
                       .from = filled + input.place(slab, n, z, y, x),
                       .to = input.out_point(n, z, y, x) * out_channels_,
                       .group = group,
                       .points = points.length(),
                       .pieces = &pieces});
          }
        }
      }
    }
  };
  if (config_.order == ConvOrder::kPoints) {
    for_each_tile([&](const Tile& tile) {
      for (std::ptrdiff_t panel = panels_of_thread.begin; panel < panels_of_thread.end; ++panel) {
        for (std::size_t chunk = 0; chunk < grid.chunks.size(); ++chunk) {
          run_tile(tile, panel, chunk);
        }
      }
    });
    return;
  }
  for (std::ptrdiff_t panel = panels_of_thread.begin; panel < panels_of_thread.end; ++panel) {
    for (std::size_t chunk = 0; chunk < grid.chunks.size(); ++chunk) {
      for_each_tile([&](const Tile& tile) { run_tile(tile, panel, chunk); });
    }
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
    const std::ptrdiff_t threads = config_.threads;
    const bool shares_points = config_.split == ConvSplit::kPoints;
    const auto work = [&](std::size_t index) {
      const auto thread = static_cast<std::ptrdiff_t>(index);
      const Range panels_of_thread =
          shares_points ? Range{0, panels()} : share_of(panels(), thread, threads);
      const Range units = shares_points ? share_of(view_.groups * slabs, thread, threads)
                                        : Range{0, view_.groups * slabs};
      float* const own = workspace.data() + index * slab_size_;
      for (std::ptrdiff_t unit = units.begin; unit < units.end && panels_of_thread.length() > 0;
           ++unit) {
        const std::ptrdiff_t group = unit / slabs;
        run_slab(grid, grid.input.slabs()[static_cast<std::size_t>(unit % slabs)], group,
                 panels_of_thread, operands,
                 packed.data() + grid.packed +
                     static_cast<std::size_t>(group * panels()) * panel_size(grid),
                 own);
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
