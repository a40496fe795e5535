#include "foretune/families/cpu_conv/word_conv.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/families/cpu_conv/conv_values.h"
#include "foretune/families/cpu_conv/weight_places.h"
#include "foretune/families/cpu_conv/work_shares.h"
#include "foretune/kernels/tile_scope.h"

namespace foretune::cpu_conv {
namespace {

// The floats before a panel's start row: the rows of taps that it is for. Whole lines, so that the
// row is aligned.
constexpr std::ptrdiff_t kStartKey = 16;

std::int32_t integer_at(const float* values, std::ptrdiff_t index) {
  std::int32_t value = 0;
  std::memcpy(&value, values + index, sizeof value);
  return value;
}

void put_integer(float* values, std::ptrdiff_t index, std::int32_t value) {
  std::memcpy(values + index, &value, sizeof value);
}

}  // namespace

// Register blocks of points of a slab: side by side, in one row or in rows of a plane alike.
struct WordConv::Tile {
  const Grid& grid;
  const ConvOperands& operands;
  const Scratch& scratch;
  const float* packed;  // of the group
  const float* from;    // the input of its first point, without taps
  std::ptrdiff_t to;    // position in the output, without output channel
  std::ptrdiff_t group;
  std::ptrdiff_t points;  // of a block
  std::ptrdiff_t blocks;
  std::ptrdiff_t rows;
  std::ptrdiff_t a_row;    // between rows, in words of the input
  std::ptrdiff_t out_row;  // ... in points of the output
  std::ptrdiff_t number;   // of the first block, among those of the slab
  Range taps;
};

Support WordConv::supports(const ConvProblem& problem) {
  if (problem.dtype() != DataType::kBf16 && problem.dtype() != DataType::kI8) {
    return Support::no("there are no words of ", to_string(problem.dtype()));
  }
  if (problem.layout() != ConvLayout::kChannelsLast) {
    return Support::no("bf16 and i8 are computed with channels last, not ",
                       to_string(problem.layout()));
  }
  if (problem.dtype() == DataType::kI8 && problem.operation() != ConvOperation::kForward) {
    return Support::no("gradients are computed in f32 and bf16, not i8");
  }
  if (problem.operation() == ConvOperation::kBackwardWeight) {
    return Support::no("gradients of weights are not sums over taps");
  }
  return Support::yes();
}

Result<WordConv> WordConv::create(const ConvProblem& problem, const CpuConvConfig& config,
                                  ThreadPool* pool) {
  if (const Support support = supports(problem); !support) {
    return fail(ErrorCode::kUnsupported, support.reason());
  }
  if (config.taps == ConvTaps::kInner) {
    return fail(ErrorCode::kUnsupported, "taps=inner is for f32");
  }
  WordConv conv;
  FORETUNE_TRY(conv.format_, WordFormat::of(problem.dtype(), config.isa,
                                            config.algorithm == ConvAlgorithm::kTiles));
  FORETUNE_TRY(conv.kernels_, tap_kernels_for(config, pool, conv.format_.math));
  conv.output_ = result_type(problem);
  conv.stage_ = output_stage(config.isa, conv.output_);
  conv.view_ = ConvView::of(problem);
  conv.config_ = config;
  conv.pool_ = pool;
  conv.join_groups();
  conv.out_channels_ = conv.view_.groups * conv.view_.outputs;
  conv.words_ = conv.format_.words_of(conv.view_.inputs);
  for (const ConvGrid& grid : conv.view_.grids) {
    conv.plan(grid);
  }
  conv.starts_size_ = static_cast<std::size_t>(conv.panels() * (config.nr + kStartKey));
  conv.thread_size_ =
      in_lines(static_cast<std::ptrdiff_t>(conv.slab_size_ + conv.sums_size_ + conv.starts_size_));
  return conv;
}

void WordConv::join_groups() {
  joined_ = joined_groups(view_.groups, view_.outputs, config_.nr);
  view_.groups /= joined_;
  view_.inputs *= joined_;
  view_.outputs *= joined_;
}

void WordConv::plan(const ConvGrid& given) {
  Grid grid{.packed = packed_size_};
  ConvView view = view_;
  view.inputs = words_;
  const bool has_whole_words = view_.inputs == words_ * elements_per_word(format_.words);
  grid.input = InputSlabs(
      view, given,
      {.rows = config_.rows,
       .block_w = config_.mr,
       .always_copies = config_.copy == ConvCopy::kAlways || format_.widens() || !has_whole_words});
  grid.block_w = even_part(grid.input.grid().count.w, config_.mr);
  const bool is_row = config_.taps == ConvTaps::kRow && grid.input.has_dense_rows();
  const std::ptrdiff_t bound =
      std::max<std::ptrdiff_t>(1, config_.kc / elements_per_word(format_.words));
  const std::ptrdiff_t chunk = is_row ? words_ : even_part(words_, bound);
  for (std::ptrdiff_t begin = 0; begin < words_; begin += chunk) {
    grid.chunks.push_back({begin, std::min(words_, begin + chunk)});
  }
  grid.merged = is_row ? grid.input.taps_of_row() : 1;
  grid.depth = is_row ? grid.merged * words_ : 0;
  for (std::size_t tap = 0; tap < given.taps.size(); tap += static_cast<std::size_t>(grid.merged)) {
    grid.offsets.push_back(grid.input.offset(given.taps[tap]));
  }
  slab_size_ = std::max(slab_size_, grid.input.size());
  // Chunks of a tile follow each other, except when a panel is visited by chunk, then by tile.
  std::ptrdiff_t tiles = 1;
  if (grid.chunks.size() > 1 && config_.order == ConvOrder::kFilters) {
    for (const Slab& slab : grid.input.slabs()) {
      tiles = std::max(tiles, slab.images.length() * slab.d.length() * slab.h.length() *
                                  ceil_div(slab.w.length(), grid.block_w));
    }
  }
  sums_size_ = std::max(sums_size_, in_lines(tiles * grid.block_w * config_.nr));
  packed_size_ += static_cast<std::size_t>(view_.groups * panels()) * panel_size(grid);
  grids_.push_back(std::move(grid));
}

std::ptrdiff_t WordConv::panel_width(std::ptrdiff_t panel) const {
  const std::ptrdiff_t rest = view_.outputs - panel * config_.nr;
  return std::min<std::ptrdiff_t>(config_.nr, ceil_div(rest, kernels_->lanes) * kernels_->lanes);
}

// Packed weights of a panel: sums of the first rows of taps, then for each chunk and tap a row for
// each word.
template <class Element>
void WordConv::pack_panel(const Grid& grid, std::ptrdiff_t group, std::ptrdiff_t panel,
                          const Element* weights, float* packed) const {
  const WeightPlaces places(view_, joined_);
  const std::ptrdiff_t width = panel_width(panel);
  const std::ptrdiff_t first = panel * config_.nr;
  const std::ptrdiff_t filled = std::min<std::ptrdiff_t>(width, view_.outputs - first);
  const std::ptrdiff_t elements = elements_per_word(format_.words);
  const auto weight = [&](std::ptrdiff_t output, const ConvTap& tap, std::ptrdiff_t input) {
    // Behind the last channel, a word is filled up with zeros.
    const std::ptrdiff_t place =
        input < view_.inputs ? places.find(group, output, tap.point, input) : -1;
    return place < 0 ? Element{0} : weights[place];
  };
  const std::vector<ConvTap>& taps = grid.input.grid().taps;
  float* to = packed + rows_of_sums(grid) * width;
  for (const Range& chunk : grid.chunks) {
    for (const ConvTap& tap : taps) {
      for (std::ptrdiff_t word = chunk.begin; word < chunk.end; ++word, to += width) {
        std::memset(to, 0, static_cast<std::size_t>(width) * sizeof(float));
        for (std::ptrdiff_t lane = 0; lane < filled; ++lane) {
          std::uint32_t bits = 0;
          for (std::ptrdiff_t i = 0; i < elements; ++i) {
            bits |= format_.bits_of(weight(first + lane, tap, word * elements + i), i);
          }
          std::memcpy(to + lane, &bits, sizeof bits);
        }
      }
    }
  }
  if constexpr (sizeof(Element) == 1) {
    std::memset(packed, 0, static_cast<std::size_t>(rows_of_sums(grid) * width) * sizeof(float));
    for (std::ptrdiff_t row = 0; row < grid.rows(); ++row) {
      for (std::ptrdiff_t lane = 0; lane < filled; ++lane) {
        std::int32_t sum = integer_at(packed, row * width + lane);
        for (std::ptrdiff_t tap = 0; tap < grid.input.taps_of_row(); ++tap) {
          for (std::ptrdiff_t input = 0; input < view_.inputs; ++input) {
            sum +=
                weight(first + lane,
                       taps[static_cast<std::size_t>(row * grid.input.taps_of_row() + tap)], input);
          }
        }
        put_integer(packed, (row + 1) * width + lane, sum);
      }
    }
  }
}

template <class Element>
void WordConv::pack(const Element* weights, float* packed) const {
  for (const Grid& grid : grids_) {
    for (std::ptrdiff_t group = 0; group < view_.groups; ++group) {
      for (std::ptrdiff_t panel = 0; panel < panels(); ++panel) {
        pack_panel(grid, group, panel, weights,
                   packed + grid.packed +
                       static_cast<std::size_t>(group * panels() + panel) * panel_size(grid));
      }
    }
  }
}

void WordConv::pack_weights(const float* weights, std::span<float> packed) const {
  FORETUNE_CHECK(packed.size() >= packed_size_);
  if (format_.is_integer()) {
    pack(reinterpret_cast<const std::int8_t*>(weights), packed.data());
  } else {
    pack(reinterpret_cast<const std::uint16_t*>(weights), packed.data());
  }
}

// Returns the row with which the sums of a tile start, or null. Integers start with the bias, less
// what the shift and the input's zero add to the products.
const float* WordConv::start_row(const Tile& tile, std::ptrdiff_t panel) const {
  const std::ptrdiff_t first = panel * config_.nr;
  const float* const bias = tile.operands.bias == nullptr
                                ? nullptr
                                : tile.operands.bias + tile.group * view_.outputs + first;
  const ConvQuantization* const quantization = tile.operands.quantization;
  const std::int32_t extra =
      format_.shift() + (quantization == nullptr ? 0 : quantization->input_zero);
  if (!format_.is_integer() || extra == 0) {
    return bias;
  }
  const std::ptrdiff_t taps_of_row = tile.grid.input.taps_of_row();
  const auto begin = static_cast<std::int32_t>(tile.taps.begin / taps_of_row);
  const auto end = static_cast<std::int32_t>(tile.taps.end / taps_of_row);
  float* const key = tile.scratch.starts + panel * (config_.nr + kStartKey);
  float* const row = key + kStartKey;
  if (integer_at(key, 0) == begin && integer_at(key, 1) == end) {
    return row;
  }
  put_integer(key, 0, begin);
  put_integer(key, 1, end);
  const std::ptrdiff_t width = panel_width(panel);
  const float* const sums = tile.packed + static_cast<std::size_t>(panel) * panel_size(tile.grid);
  const std::ptrdiff_t outputs = std::min<std::ptrdiff_t>(width, view_.outputs - first);
  for (std::ptrdiff_t lane = 0; lane < outputs; ++lane) {
    // Modulo 2^32, as the kernels add.
    const auto covered = static_cast<std::uint32_t>(integer_at(sums, end * width + lane)) -
                         static_cast<std::uint32_t>(integer_at(sums, begin * width + lane));
    const auto start = static_cast<std::uint32_t>(bias == nullptr ? 0 : integer_at(bias, lane));
    put_integer(row, lane,
                static_cast<std::int32_t>(start - static_cast<std::uint32_t>(extra) * covered));
  }
  return row;
}

void WordConv::run_tile(const Tile& tile, std::ptrdiff_t panel, std::size_t chunk) const {
  const Grid& grid = tile.grid;
  const ConvOperands& operands = tile.operands;
  const Range& words = grid.chunks[chunk];
  const std::ptrdiff_t width = panel_width(panel);
  const std::ptrdiff_t first = panel * config_.nr;
  const std::ptrdiff_t outputs = std::min<std::ptrdiff_t>(width, view_.outputs - first);
  const int vectors = static_cast<int>(width / kernels_->lanes);
  const int last = static_cast<int>(outputs - (vectors - 1) * kernels_->lanes);
  const std::ptrdiff_t channel = tile.group * view_.outputs + first;
  const std::ptrdiff_t step = grid.input.grid().step.w * out_channels_;
  const bool is_word = bytes_of(output_) == sizeof(float);  // sums are the output
  const bool keeps_tiles = grid.chunks.size() > 1 && config_.order == ConvOrder::kFilters;
  float* const sums =
      is_word ? operands.output + tile.to + channel
              : tile.scratch.sums + (keeps_tiles ? tile.number * grid.block_w * config_.nr : 0);
  const std::ptrdiff_t stride = is_word ? step : width;
  MicroKernelCall call{
      .a = tile.from + words.begin,
      .a_stride = grid.input.grid().stride.w * grid.input.pitch().w,
      .b = tile.packed + static_cast<std::size_t>(panel) * panel_size(grid) +
           (rows_of_sums(grid) + words.begin * grid.taps() + tile.taps.begin * words.length()) *
               width,
      .b_stride = width,
      .c = sums,
      .c_stride = stride,
      .k = grid.depth > 0 ? grid.depth : words.length(),
      .last_columns = last,
      .a_offsets = grid.offsets.data() + tile.taps.begin / grid.merged,
      .taps = static_cast<int>(tile.taps.length() / grid.merged),
      .blocks = tile.rows * tile.blocks,
      .a_block = tile.points * grid.input.grid().stride.w * grid.input.pitch().w,
      .c_block = tile.points * step,
      .row_blocks = tile.blocks,
      .a_row = tile.a_row,
      .c_row = tile.out_row * out_channels_};
  if (chunk > 0) {
    call.c_in = sums;
    call.c_in_stride = stride;
    call.beta = 1;
  } else if (const float* const start = start_row(tile, panel); start != nullptr) {
    call.c_in = start;
    call.beta = 1;
  }
  const MicroKernel kernel = kernels_->find(
      {.rows = static_cast<int>(tile.points), .vectors = vectors, .tail = last < kernels_->lanes});
  if (chunk + 1 < grid.chunks.size()) {
    kernel(call);
    return;
  }
  OutputStageCall finish = finishing(operands, sums, stride, tile.blocks * tile.points, outputs,
                                     channel, tile.to + channel, step);
  if (kernels_round()) {
    call.rounding = &finish;
    kernel(call);
    return;
  }
  kernel(call);
  if (!is_word || operands.residual != nullptr || operands.relu) {
    for (std::ptrdiff_t row = 0; row < tile.rows; ++row) {
      const std::ptrdiff_t moved = row * call.c_row;
      finish = finishing(operands, sums + moved, stride, tile.blocks * tile.points, outputs,
                         channel, tile.to + moved + channel, step);
      stage_(finish);
    }
  }
}

// Returns the step from sums to the output at position `to`.
OutputStageCall WordConv::finishing(const ConvOperands& operands, const float* sums,
                                    std::ptrdiff_t sums_stride, std::ptrdiff_t rows,
                                    std::ptrdiff_t columns, std::ptrdiff_t channel,
                                    std::ptrdiff_t to, std::ptrdiff_t step) const {
  const std::ptrdiff_t bytes = bytes_of(output_);
  OutputStageCall call{
      .sums = sums,
      .sums_stride = sums_stride,
      .rows = rows,
      .columns = columns,
      .output = reinterpret_cast<std::byte*>(operands.output) + to * bytes,
      .output_stride = step,
      .addend = operands.residual == nullptr
                    ? nullptr
                    : reinterpret_cast<const std::byte*>(operands.residual) + to * bytes,
      .relu = operands.relu};
  if (output_ == OutputType::kI8) {
    const ConvQuantization& quantization = *operands.quantization;
    call.scales = quantization.scales + channel;
    call.addend_scale = quantization.addend_scale;
    call.addend_zero = quantization.addend_zero;
    call.zero = quantization.output_zero;
  }
  return call;
}

void WordConv::run_slab(const Grid& grid, const Slab& slab, std::ptrdiff_t group,
                        const Range& panels_of_thread, const ConvOperands& operands,
                        const float* packed, const Scratch& scratch) const {
  const InputSlabs& input = grid.input;
  const float* filled = scratch.slab;
  if (input.copies()) {
    const WordSource source{
        .values = reinterpret_cast<const std::byte*>(operands.input) +
                  group * view_.inputs * format_.element_bytes(),
        .inputs = view_.inputs,
        .channels = view_.groups * view_.inputs,
        .zero = operands.quantization == nullptr ? 0 : operands.quantization->input_zero};
    for (std::ptrdiff_t row = 0; row < input.copied_rows(slab); ++row) {
      copy_word_row(format_, source, input.copied_row(slab, row, scratch.slab));
    }
  } else {
    filled = operands.input + group * words_;
  }
  for (std::ptrdiff_t panel = 0; panel < panels(); ++panel) {
    put_integer(scratch.starts + panel * (config_.nr + kStartKey), 0, -1);
  }
  // Blocks of a row, and rows alike, are computed by one call, except where their sums are kept.
  const bool joins =
      config_.order != ConvOrder::kPoints &&
      (bytes_of(output_) == sizeof(float) || (grid.chunks.size() == 1 && kernels_round()));
  const std::ptrdiff_t width = slab.w.length();
  const bool joins_rows = joins && (width <= grid.block_w || width % grid.block_w == 0);
  const auto for_each_tile = [&](const auto& visit) {
    std::ptrdiff_t number = 0;
    for (std::ptrdiff_t n = slab.images.begin; n < slab.images.end; ++n) {
      for (std::ptrdiff_t z = slab.d.begin; z < slab.d.end; ++z) {
        std::ptrdiff_t rows = 1;
        for (std::ptrdiff_t y = slab.h.begin; y < slab.h.end; y += rows) {
          const Range taps = input.inner_taps(z, y);
          rows = 1;
          while (joins_rows && y + rows < slab.h.end && input.inner_taps(z, y + rows) == taps) {
            ++rows;
          }
          for (std::ptrdiff_t x = slab.w.begin; x < slab.w.end;) {
            const std::ptrdiff_t points = std::min(grid.block_w, slab.w.end - x);
            const std::ptrdiff_t blocks = joins ? (slab.w.end - x) / points : 1;
            const std::ptrdiff_t from = input.place(slab, n, z, y, x);
            const std::ptrdiff_t to = input.out_point(n, z, y, x);
            visit(Tile{.grid = grid,
                       .operands = operands,
                       .scratch = scratch,
                       .packed = packed,
                       .from = filled + from,
                       .to = to * out_channels_,
                       .group = group,
                       .points = points,
                       .blocks = blocks,
                       .rows = rows,
                       .a_row = input.place(slab, n, z, y + 1, x) - from,
                       .out_row = input.out_point(n, z, y + 1, x) - to,
                       .number = number,
                       .taps = taps});
            number += blocks;
            x += blocks * points;
          }
        }
      }
    }
  };
  if (config_.order != ConvOrder::kFilters) {
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

// Output points without taps get bias and addend only.
void WordConv::clear(const Grid& grid, const ConvOperands& operands) const {
  const Triple& count = grid.input.grid().count;
  constexpr std::ptrdiff_t kColumns = 64;
  for (std::ptrdiff_t point = 0; point < view_.images * count.volume(); ++point) {
    const std::ptrdiff_t row = point / count.w;
    const std::ptrdiff_t plane = row / count.h;
    const std::ptrdiff_t to =
        grid.input.out_point(plane / count.d, plane % count.d, row % count.h, point % count.w) *
        out_channels_;
    for (std::ptrdiff_t channel = 0; channel < out_channels_; channel += kColumns) {
      const std::ptrdiff_t columns = std::min(kColumns, out_channels_ - channel);
      float sums[kColumns] = {};  // NOLINT(*-avoid-c-arrays)
      if (operands.bias != nullptr) {
        std::memcpy(sums, operands.bias + channel,
                    static_cast<std::size_t>(columns) * sizeof(float));
      }
      stage_(finishing(operands, sums, kColumns, 1, columns, channel, to + channel, out_channels_));
    }
  }
}

void WordConv::run(const ConvOperands& operands, std::span<const float> packed,
                   std::span<float> workspace) const {
  FORETUNE_CHECK(output_ != OutputType::kI8 ||
                 (operands.quantization != nullptr && operands.quantization->scales != nullptr));
  for (const Grid& grid : grids_) {
    if (grid.taps() == 0) {
      clear(grid, operands);
      continue;
    }
    const auto slabs = static_cast<std::ptrdiff_t>(grid.input.slabs().size());
    share_work(config_, pool_, view_.groups * slabs, panels(),
               [&](std::size_t thread, const Range& units, const Range& panels_of_thread) {
                 const TileScope scope(kernels_->in_tiles);
                 float* const own = workspace.data() + thread * thread_size_;
                 const Scratch scratch{.slab = own,
                                       .sums = own + slab_size_,
                                       .starts = own + slab_size_ + sums_size_};
                 for (std::ptrdiff_t unit = units.begin; unit < units.end; ++unit) {
                   const std::ptrdiff_t group = unit / slabs;
                   run_slab(grid, grid.input.slabs()[static_cast<std::size_t>(unit % slabs)], group,
                            panels_of_thread, operands,
                            packed.data() + grid.packed +
                                static_cast<std::size_t>(group * panels()) * panel_size(grid),
                            scratch);
                 }
               });
  }
}

}  // namespace foretune::cpu_conv
