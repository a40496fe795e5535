#include "foretune/families/cpu_conv/weight_gradient.h"

#include <algorithm>
#include <utility>

namespace foretune::cpu_conv {

// One call of a micro-kernel.
struct WeightGradient::Block {
  const Rows& rows;
  Range chunk;           // of the rows
  std::ptrdiff_t depth;  // points of a row
  const float* output;   // gradient of the first row, at the first output channel
  const float* input;    // of the first row, at the first value
  float* to;
  std::ptrdiff_t channels;  // output channels
  std::ptrdiff_t values;
  bool adds;
};

Result<WeightGradient> WeightGradient::create(const ConvProblem& problem,
                                              const CpuConvConfig& config, ThreadPool* pool) {
  if (problem.operation() != ConvOperation::kBackwardWeight) {
    return fail(ErrorCode::kUnsupported, "these kernels compute gradients of weights only");
  }
  WeightGradient made;
  FORETUNE_TRY(made.kernels_, tap_kernels_for(problem, config, pool));
  made.view_ = ConvView::of(problem);
  made.config_ = config;
  made.pool_ = pool;
  const ConvGrid& grid = made.view_.grids.front();
  made.input_ = InputSlabs(
      made.view_, grid,
      {.rows = config.rows, .block_w = 1, .always_copies = config.copy == ConvCopy::kAlways});
  const std::ptrdiff_t inputs = made.view_.inputs;
  const bool is_row = config.taps == ConvTaps::kRow && made.input_.has_dense_rows();
  const std::ptrdiff_t merged = is_row ? made.input_.taps_of_row() : 1;
  for (std::size_t tap = 0; tap < grid.taps.size(); tap += static_cast<std::size_t>(merged)) {
    made.runs_.push_back({.offset = made.input_.offset(grid.taps[tap]),
                          .place = grid.taps[tap].point * inputs,
                          .length = merged * inputs,
                          .filter_row = tap / static_cast<std::size_t>(made.input_.taps_of_row())});
  }
  made.filter_rows_ = grid.taps.size() / static_cast<std::size_t>(made.input_.taps_of_row());
  for (const Slab& slab : made.input_.slabs()) {
    for (std::size_t row = 0; row < made.filter_rows_; ++row) {
      made.rows_.push_back(made.rows_of(slab, static_cast<std::ptrdiff_t>(row)));
    }
  }
  made.block_k_ = made.is_turned() ? std::min<std::ptrdiff_t>(config.nr, made.view_.outputs)
                                   : even_part(made.view_.outputs, config.mr);
  made.out_channels_ = made.view_.groups * made.view_.outputs;
  made.filter_size_ = made.view_.filter_points * inputs;
  made.slab_size_ = made.input_.size();
  made.gradient_size_ = in_lines(made.out_channels_ * made.filter_size_);
  return made;
}

WeightGradient::Rows WeightGradient::rows_of(const Slab& slab, std::ptrdiff_t filter_row) const {
  const std::ptrdiff_t tap = filter_row * input_.taps_of_row();
  Rows rows;
  const auto input_at = [&](std::ptrdiff_t n, std::ptrdiff_t z, std::ptrdiff_t y) {
    return input_.place(slab, n, z, y, slab.w.begin);
  };
  const std::ptrdiff_t first_input = input_at(slab.images.begin, slab.d.begin, slab.h.begin);
  const std::ptrdiff_t first_output =
      input_.out_point(slab.images.begin, slab.d.begin, slab.h.begin, slab.w.begin);
  const std::ptrdiff_t channels = view_.groups * view_.outputs;
  for (std::ptrdiff_t n = slab.images.begin; n < slab.images.end; ++n) {
    for (std::ptrdiff_t z = slab.d.begin; z < slab.d.end; ++z) {
      for (std::ptrdiff_t y = slab.h.begin; y < slab.h.end; ++y) {
        if (const Range inner = input_.inner_taps(z, y); tap < inner.begin || tap >= inner.end) {
          continue;
        }
        rows.input.push_back(input_at(n, z, y) - first_input);
        rows.output.push_back((input_.out_point(n, z, y, slab.w.begin) - first_output) * channels);
      }
    }
  }
  return rows;
}

void WeightGradient::run_block(const Block& block) const {
  if (is_turned()) {
    run_turned_block(block);
    return;
  }
  const int vectors = static_cast<int>(ceil_div(block.values, kernels_->lanes));
  const int last = static_cast<int>(block.values - (vectors - 1) * kernels_->lanes);
  const auto first = static_cast<std::size_t>(block.chunk.begin);
  const MicroKernel kernel = kernels_->find({.rows = static_cast<int>(block.channels),
                                             .vectors = vectors,
                                             .a_by_columns = true,
                                             .tail = last < kernels_->lanes});
  kernel({.a = block.output,
          .a_stride = out_channels_,
          .b = block.input,
          .b_stride = input_.grid().stride.w * input_.pitch().w,
          .c_in = block.to,
          .c_in_stride = filter_size_,
          .c = block.to,
          .c_stride = filter_size_,
          .k = block.depth,
          .beta = block.adds ? 1.0F : 0.0F,
          .last_columns = last,
          .a_offsets = block.rows.output.data() + first,
          .b_offsets = block.rows.input.data() + first,
          .taps = static_cast<int>(block.chunk.length())});
}

void WeightGradient::run_turned_block(const Block& block) const {
  const int vectors = static_cast<int>(ceil_div(block.channels, kernels_->lanes));
  const int last = static_cast<int>(block.channels - (vectors - 1) * kernels_->lanes);
  const auto first = static_cast<std::size_t>(block.chunk.begin);
  const MicroKernel kernel = kernels_->find({.rows = static_cast<int>(block.values),
                                             .vectors = vectors,
                                             .a_by_columns = true,
                                             .tail = last < kernels_->lanes});
  kernel({.a = block.input,
          .a_stride = input_.grid().stride.w * input_.pitch().w,
          .b = block.output,
          .b_stride = out_channels_,
          .c_in = block.to,
          .c_in_stride = view_.outputs,
          .c = block.to,
          .c_stride = view_.outputs,
          .k = block.depth,
          .beta = block.adds ? 1.0F : 0.0F,
          .last_columns = last,
          .a_offsets = block.rows.input.data() + first,
          .b_offsets = block.rows.output.data() + first,
          .taps = static_cast<int>(block.chunk.length())});
}

void WeightGradient::run_slab(std::size_t index, std::ptrdiff_t group, const Range& blocks,
                              const WeightGradientOperands& operands, bool adds,
                              float* workspace) const {
  const Slab& slab = input_.slabs()[index];
  const float* const input =
      input_.fill(slab, group, operands.input, workspace) +
      input_.place(slab, slab.images.begin, slab.d.begin, slab.h.begin, slab.w.begin);
  const float* const output =
      operands.output_gradient +
      input_.out_point(slab.images.begin, slab.d.begin, slab.h.begin, slab.w.begin) *
          out_channels_ +
      group * view_.outputs;
  const std::ptrdiff_t chunks =
      ceil_div(slab.images.length() * slab.d.length() * slab.h.length(), config_.kc);
  const auto block_at = [&](std::ptrdiff_t chunk, std::ptrdiff_t block, const Run& run,
                            std::ptrdiff_t value) {
    const Rows& rows = rows_[index * filter_rows_ + run.filter_row];
    const auto count = static_cast<std::ptrdiff_t>(rows.input.size());
    const std::ptrdiff_t channel = block * block_k_;
    const std::ptrdiff_t place =
        is_turned() ? (group * filter_size_ + run.place + value) * view_.outputs + channel
                    : (group * view_.outputs + channel) * filter_size_ + run.place + value;
    run_block({.rows = rows,
               .chunk = {count * chunk / chunks, count * (chunk + 1) / chunks},
               .depth = slab.w.length(),
               .output = output + channel,
               .input = input + run.offset + value,
               .to = operands.gradient + place,
               .channels = std::min(block_k_, view_.outputs - channel),
               .values = std::min(values_of(run), run.length - value),
               .adds = adds || chunk > 0});
  };
  for (std::ptrdiff_t chunk = 0; chunk < chunks; ++chunk) {
    if (config_.order == ConvOrder::kFilters) {
      for (std::ptrdiff_t block = blocks.begin; block < blocks.end; ++block) {
        for (const Run& run : runs_) {
          for (std::ptrdiff_t value = 0; value < run.length; value += values_of(run)) {
            block_at(chunk, block, run, value);
          }
        }
      }
    } else {
      for (const Run& run : runs_) {
        for (std::ptrdiff_t value = 0; value < run.length; value += values_of(run)) {
          for (std::ptrdiff_t block = blocks.begin; block < blocks.end; ++block) {
            block_at(chunk, block, run, value);
          }
        }
      }
    }
  }
}

// Stores sums that lie by value of a filter, then by output channel.
void WeightGradient::turn(const float* sums, const Range& blocks, float* gradient) const {
  constexpr std::ptrdiff_t kFilters = 16;  // as many places are written in turn
  const Range channels{blocks.begin * block_k_, std::min(view_.outputs, blocks.end * block_k_)};
  for (std::ptrdiff_t group = 0; group < view_.groups; ++group) {
    for (std::ptrdiff_t k = channels.begin; k < channels.end; k += kFilters) {
      const std::ptrdiff_t end = std::min(channels.end, k + kFilters);
      for (std::ptrdiff_t value = 0; value < filter_size_; ++value) {
        const float* const from = sums + (group * filter_size_ + value) * view_.outputs;
        for (std::ptrdiff_t channel = k; channel < end; ++channel) {
          gradient[(group * view_.outputs + channel) * filter_size_ + value] = from[channel];
        }
      }
    }
  }
}

void WeightGradient::run(const WeightGradientOperands& operands, std::span<float> workspace) const {
  const auto slabs = static_cast<std::ptrdiff_t>(input_.slabs().size());
  const std::ptrdiff_t blocks = ceil_div(view_.outputs, block_k_);
  const std::ptrdiff_t threads = config_.threads;
  float* const sums = workspace.data() + slab_size_ * static_cast<std::size_t>(threads);
  float* const first_sums = is_turned() ? sums : operands.gradient;
  float* const other_sums = sums + (is_turned() ? gradient_size_ : 0);
  const auto sums_of = [&](std::ptrdiff_t thread) {
    return thread == 0 || !shares_points()
               ? first_sums
               : other_sums + gradient_size_ * static_cast<std::size_t>(thread - 1);
  };
  const auto work = [&](std::size_t index) {
    const auto thread = static_cast<std::ptrdiff_t>(index);
    const Range mine = shares_points() ? Range{0, blocks} : share_of(blocks, thread, threads);
    const Range of_slabs = shares_points() ? share_of(slabs, thread, threads) : Range{0, slabs};
    WeightGradientOperands own = operands;
    own.gradient = sums_of(thread);
    if (of_slabs.length() == 0) {
      std::fill_n(own.gradient, out_channels_ * filter_size_, 0.0F);
      return;
    }
    for (std::ptrdiff_t group = 0; group < view_.groups && mine.length() > 0; ++group) {
      for (std::ptrdiff_t slab = of_slabs.begin; slab < of_slabs.end; ++slab) {
        run_slab(static_cast<std::size_t>(slab), group, mine, own, slab > of_slabs.begin,
                 workspace.data() + index * slab_size_);
      }
    }
    if (is_turned() && !shares_points()) {
      turn(first_sums, mine, operands.gradient);
    }
  };
  if (threads == 1) {
    work(0);
    return;
  }
  pool_->run(static_cast<std::size_t>(threads), work);
  if (shares_points()) {
    pool_->run(static_cast<std::size_t>(threads), [&](std::size_t index) {
      const Range mine =
          share_of(out_channels_ * filter_size_, static_cast<std::ptrdiff_t>(index), threads);
      for (std::ptrdiff_t other = 1; other < threads; ++other) {
        const float* const from = sums_of(other);
        for (std::ptrdiff_t i = mine.begin; i < mine.end; ++i) {
          first_sums[i] += from[i];
        }
      }
    });
    if (is_turned()) {
      pool_->run(static_cast<std::size_t>(threads), [&](std::size_t index) {
        turn(first_sums, share_of(blocks, static_cast<std::ptrdiff_t>(index), threads),
             operands.gradient);
      });
    }
  }
}

}  // namespace foretune::cpu_conv
