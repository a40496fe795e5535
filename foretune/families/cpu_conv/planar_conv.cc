#include "foretune/families/cpu_conv/planar_conv.h"

#include <algorithm>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/families/cpu_conv/work_shares.h"

namespace foretune::cpu_conv {
namespace {

// Sums of the largest register block; those of AVX-512 take 31 registers of 16 lanes.
constexpr std::ptrdiff_t kMaxBlock = 512;

}  // namespace

// One register block of columns of a line.
struct PlanarConv::Tile {
  const Grid& grid;
  const ConvOperands& operands;
  const float* packed;  // of the group
  const float* from;    // the input of its first column, without taps
  PlaneSlabs::Line line;
  Range columns;  // of the line
  Range taps;
  std::ptrdiff_t group;
};

Result<PlanarConv> PlanarConv::create(const ConvProblem& problem, const CpuConvConfig& config,
                                      ThreadPool* pool) {
  if (problem.operation() == ConvOperation::kBackwardWeight) {
    return fail(ErrorCode::kUnsupported, "these kernels do not compute gradients of weights");
  }
  PlanarConv conv;
  FORETUNE_TRY(conv.kernels_, tap_kernels_for(problem, config, pool));
  conv.view_ = ConvView::of(problem);
  conv.config_ = config;
  conv.pool_ = pool;
  conv.panel_rows_ = even_part(conv.view_.outputs, config.mr);
  conv.chunk_ = even_part(conv.view_.inputs, config.kc);
  for (const ConvGrid& grid : conv.view_.grids) {
    conv.plan(grid);
  }
  return conv;
}

void PlanarConv::plan(const ConvGrid& given) {
  Grid grid;
  grid.packed = packed_size_;
  grid.input = PlaneSlabs(view_, given,
                          {.rows = config_.rows,
                           .joins_rows = config_.taps == ConvTaps::kRow,
                           .always_copies = config_.copy == ConvCopy::kAlways});
  const std::ptrdiff_t vectors = ceil_div(grid.input.longest_line(), kernels_->lanes);
  grid.block_columns = even_part(vectors, config_.nr / kernels_->lanes) * kernels_->lanes;
  const std::ptrdiff_t last_rows = rows_of(panels() - 1);
  merge_taps(grid);
  for (std::size_t tap = 0; tap < given.taps.size(); tap += static_cast<std::size_t>(grid.merged)) {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(tap) * view_.inputs;
    grid.panel_offsets.push_back(first * panel_rows_);
    grid.last_offsets.push_back(first * last_rows);
    grid.offsets.push_back(grid.input.offset(given.taps[tap]));
  }
  slab_size_ = std::max(slab_size_, grid.input.size());
  packed_size_ += static_cast<std::size_t>(view_.groups * group_size(grid, view_));
  grids_.push_back(std::move(grid));
}

void PlanarConv::merge_taps(Grid& grid) const {
  grid.distance = grid.input.channel_pitch();
  const std::vector<ConvTap>& taps = grid.input.grid().taps;
  const auto of_row = static_cast<std::size_t>(grid.input.taps_of_row());
  if (view_.inputs > 1 || of_row < 2) {
    return;
  }
  const auto distance_to_next = [&](std::size_t tap) {
    return grid.input.offset(taps[tap + 1]) - grid.input.offset(taps[tap]);
  };
  for (std::size_t tap = 0; tap < taps.size(); ++tap) {
    if (tap % of_row + 1 < of_row && distance_to_next(tap) != distance_to_next(0)) {
      return;  // a stride has parted the columns
    }
  }
  grid.merged = grid.input.taps_of_row();
  grid.distance = distance_to_next(0);
}

// Packed weights: for each grid, group and panel one column of the panel for each tap and input
// channel.
void PlanarConv::pack_weights(const float* weights, std::span<float> packed) const {
  FORETUNE_CHECK(packed.size() >= packed_size_);
  const std::ptrdiff_t points = view_.filter_points;
  // Weights are stored by filter, channel, point; for gradients of inputs filters are summed over.
  const std::ptrdiff_t of_output = view_.is_transposed ? points : points * view_.inputs;
  const std::ptrdiff_t of_input = view_.is_transposed ? points * view_.outputs : points;
  float* to = packed.data();
  for (const Grid& grid : grids_) {
    for (std::ptrdiff_t group = 0; group < view_.groups; ++group) {
      for (std::ptrdiff_t panel = 0; panel < panels(); ++panel) {
        const float* const from = weights + group * points * view_.inputs * view_.outputs +
                                  panel * panel_rows_ * of_output;
        const std::ptrdiff_t rows = rows_of(panel);
        for (const ConvTap& tap : grid.input.grid().taps) {
          for (std::ptrdiff_t input = 0; input < view_.inputs; ++input) {
            for (std::ptrdiff_t row = 0; row < rows; ++row) {
              *to++ = from[row * of_output + input * of_input + tap.point];
            }
          }
        }
      }
    }
  }
}

// Calls visit(row, column of the block, count, place in the output) for neighbours of the output.
template <class Visit>
void PlanarConv::for_each_part(const Tile& tile, std::ptrdiff_t first, std::ptrdiff_t rows,
                               const Visit& visit) const {
  const std::ptrdiff_t points = view_.out.volume();
  const std::ptrdiff_t channel =
      (tile.line.image * view_.groups + tile.group) * view_.outputs + first;
  tile.grid.input.for_each_run(
      tile.line, tile.columns,
      [&](std::ptrdiff_t column, std::ptrdiff_t count, std::ptrdiff_t point) {
        for (std::ptrdiff_t row = 0; row < rows; ++row) {
          visit(row, column - tile.columns.begin, count, (channel + row) * points + point);
        }
      });
}

// Sets a block to the values that its sums are added to.
void PlanarConv::begin_sums(const Tile& tile, std::ptrdiff_t first, std::ptrdiff_t rows,
                            bool is_first_chunk, float* block) const {
  const ConvOperands& operands = tile.operands;
  const std::ptrdiff_t step = tile.grid.input.grid().step.w;
  const float* const addend = is_first_chunk ? operands.residual : operands.output;
  const float* const bias = is_first_chunk ? operands.bias : nullptr;
  for_each_part(
      tile, first, rows,
      [&](std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t count, std::ptrdiff_t place) {
        float* const to = block + row * config_.nr + column;
        const float base = bias == nullptr ? 0.0F : bias[tile.group * view_.outputs + first + row];
        if (addend == nullptr) {
          std::fill_n(to, count, base);
          return;
        }
        for (std::ptrdiff_t i = 0; i < count; ++i) {
          to[i] = addend[place + i * step] + base;
        }
      });
}

void PlanarConv::run_tile(const Tile& tile, std::ptrdiff_t panel, std::ptrdiff_t chunk) const {
  const Grid& grid = tile.grid;
  const ConvOperands& operands = tile.operands;
  const std::ptrdiff_t first = panel * panel_rows_;
  const std::ptrdiff_t rows = rows_of(panel);
  const auto& taps_of_panel = panel + 1 == panels() ? grid.last_offsets : grid.panel_offsets;
  const std::ptrdiff_t first_input = chunk * chunk_;
  const std::ptrdiff_t inputs = std::min(chunk_, view_.inputs - first_input);
  const std::ptrdiff_t points = view_.out.volume();
  const std::ptrdiff_t columns = tile.columns.length();
  const int vectors = static_cast<int>(ceil_div(columns, kernels_->lanes));
  const int last = static_cast<int>(columns - (vectors - 1) * kernels_->lanes);
  const bool is_dense = grid.input.has_dense_lines();
  const auto taps = static_cast<std::ptrdiff_t>(grid.input.grid().taps.size());
  MicroKernelCall call{.a = tile.packed + first * taps * view_.inputs + first_input * rows,
                       .a_stride = rows,
                       .b = tile.from + first_input * grid.input.channel_pitch(),
                       .b_stride = grid.distance,
                       .k = inputs * grid.merged,
                       .last_columns = last,
                       .a_offsets = taps_of_panel.data() + tile.taps.begin / grid.merged,
                       .b_offsets = grid.offsets.data() + tile.taps.begin / grid.merged,
                       .taps = static_cast<int>(tile.taps.length() / grid.merged)};
  alignas(AlignedBuffer::kAlignment) float block[kMaxBlock];  // NOLINT(*-avoid-c-arrays)
  const bool adds = chunk > 0 || operands.bias != nullptr || operands.residual != nullptr;
  if (adds && (chunk == 0 || !is_dense)) {
    begin_sums(tile, first, rows, chunk == 0, block);
    call.c_in = block;
    call.c_in_stride = config_.nr;
  }
  if (is_dense) {
    const std::ptrdiff_t point = grid.input.out_point(tile.line.z, tile.line.y, tile.columns.begin);
    call.c = operands.output +
             ((tile.line.image * view_.groups + tile.group) * view_.outputs + first) * points +
             point;
    call.c_stride = points;
    call.prefetch_c = true;
    if (chunk > 0) {
      call.c_in = call.c;
      call.c_in_stride = points;
    }
  } else {
    call.c = block;
    call.c_stride = config_.nr;
  }
  call.beta = adds ? 1.0F : 0.0F;
  if (operands.relu && first_input + inputs == view_.inputs) {
    call.floor = 0;
  }
  const MicroKernel kernel = kernels_->find({.rows = static_cast<int>(rows),
                                             .vectors = vectors,
                                             .a_by_columns = true,
                                             .tail = last < kernels_->lanes});
  kernel(call);
  if (is_dense) {
    return;
  }
  const std::ptrdiff_t step = grid.input.grid().step.w;
  for_each_part(
      tile, first, rows,
      [&](std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t count, std::ptrdiff_t place) {
        const float* const from = block + row * config_.nr + column;
        float* const to = operands.output + place;
        for (std::ptrdiff_t i = 0; i < count; ++i) {
          to[i * step] = from[i];
        }
      });
}

void PlanarConv::run_slab(const Grid& grid, const Slab& slab, std::ptrdiff_t group,
                          const Range& panels_of_thread, const ConvOperands& operands,
                          const float* packed, float* workspace) const {
  const PlaneSlabs& input = grid.input;
  const float* const filled = input.fill(slab, group, operands.input, workspace);
  const std::ptrdiff_t chunks = ceil_div(view_.inputs, chunk_);
  const auto for_each_tile = [&](const auto& visit) {
    input.for_each_line(slab, [&](const PlaneSlabs::Line& line) {
      const float* const from = filled + input.place(slab, line);
      const Range taps = input.inner_taps(line);
      for (std::ptrdiff_t at = 0; at < line.columns; at += grid.block_columns) {
        visit(Tile{.grid = grid,
                   .operands = operands,
                   .packed = packed,
                   .from = from + at,
                   .line = line,
                   .columns = {at, std::min(at + grid.block_columns, line.columns)},
                   .taps = taps,
                   .group = group});
      }
    });
  };
  if (config_.order == ConvOrder::kPoints) {
    for_each_tile([&](const Tile& tile) {
      for (std::ptrdiff_t panel = panels_of_thread.begin; panel < panels_of_thread.end; ++panel) {
        for (std::ptrdiff_t chunk = 0; chunk < chunks; ++chunk) {
          run_tile(tile, panel, chunk);
        }
      }
    });
    return;
  }
  for (std::ptrdiff_t panel = panels_of_thread.begin; panel < panels_of_thread.end; ++panel) {
    for (std::ptrdiff_t chunk = 0; chunk < chunks; ++chunk) {
      for_each_tile([&](const Tile& tile) { run_tile(tile, panel, chunk); });
    }
  }
}

// Output points without taps get bias and residual only.
void PlanarConv::clear(const Grid& grid, const ConvOperands& operands) const {
  const Triple& count = grid.input.grid().count;
  const std::ptrdiff_t channels = view_.groups * view_.outputs;
  for (std::ptrdiff_t image = 0; image < view_.images; ++image) {
    for (std::ptrdiff_t channel = 0; channel < channels; ++channel) {
      const float bias = operands.bias == nullptr ? 0.0F : operands.bias[channel];
      for (std::ptrdiff_t z = 0; z < count.d; ++z) {
        for (std::ptrdiff_t y = 0; y < count.h; ++y) {
          for (std::ptrdiff_t x = 0; x < count.w; ++x) {
            const std::ptrdiff_t at =
                (image * channels + channel) * view_.out.volume() + grid.input.out_point(z, y, x);
            const float value =
                bias + (operands.residual == nullptr ? 0.0F : operands.residual[at]);
            operands.output[at] = operands.relu && value < 0 ? 0.0F : value;
          }
        }
      }
    }
  }
}

void PlanarConv::run(const ConvOperands& operands, std::span<const float> packed,
                     std::span<float> workspace) const {
  for (const Grid& grid : grids_) {
    if (grid.input.grid().taps.empty()) {
      clear(grid, operands);
      continue;
    }
    const auto slabs = static_cast<std::ptrdiff_t>(grid.input.slabs().size());
    share_work(config_, pool_, view_.groups * slabs, panels(),
               [&](std::size_t thread, const Range& units, const Range& of_panels) {
                 for (std::ptrdiff_t unit = units.begin; unit < units.end; ++unit) {
                   const std::ptrdiff_t group = unit / slabs;
                   run_slab(grid, grid.input.slabs()[static_cast<std::size_t>(unit % slabs)], group,
                            of_panels, operands,
                            packed.data() + grid.packed + group * group_size(grid, view_),
                            workspace.data() + thread * slab_size_);
                 }
               });
  }
}

}  // namespace foretune::cpu_conv
