#include "foretune/loop/gym/observations.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/loop/loop_features.h"

namespace foretune::loop::gym {
namespace {

// Rounded up, for a value of at least 1.
std::size_t log2_bin(std::int64_t value, std::size_t bins) {
  const auto bin = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(value) - 1));
  return std::min(bin, bins - 1);
}

void count_stride(std::int64_t stride, std::span<float> bins) {
  if (stride != 0) {
    bins[log2_bin(stride, bins.size())] += 1;
  }
}

void normalise(std::span<float> bins) {
  float sum = 0;
  for (const float bin : bins) {
    sum += bin;
  }
  if (sum > 0) {
    for (float& bin : bins) {
      bin /= sum;
    }
  }
}

}  // namespace

void write_loops_tensor(const loop::Computation& computation, const State& state,
                        std::span<float> out) {
  FORETUNE_DCHECK(out.size() % kLoopsTensorColumns == 0);
  std::fill(out.begin(), out.end(), 0.0F);
  const loop::Nest& nest = state.nest;
  const std::size_t count = std::min(nest.loops.size(), out.size() / kLoopsTensorColumns);
  for (std::size_t level = 0; level < count; ++level) {
    const loop::Loop& loop = nest.loops[level];
    const std::int64_t covers = nest.covers(computation, level);
    const std::span<float> row = out.subspan(level * kLoopsTensorColumns, kLoopsTensorColumns);
    row[0] = level == state.cursor ? 1 : 0;
    const std::int64_t whole_rounds = covers / loop.step;
    row[1] = static_cast<float>(whole_rounds);
    row[2] = static_cast<float>(covers % loop.step);
    row[3] = 1;
    const std::span<float> bins = row.subspan(4);
    for (const loop::Tensor& input : computation.inputs) {
      count_stride(loop::stride_of(input, loop), bins);
    }
    normalise(bins);
  }
}

void write_stride_tensor(const loop::Computation& computation, const loop::Nest& nest,
                         std::span<float, kStrideBins> out) {
  std::fill(out.begin(), out.end(), 0.0F);
  for (const loop::Loop& loop : nest.loops) {
    count_stride(loop::stride_of(computation.output, loop), out);
    for (const loop::Tensor& input : computation.inputs) {
      count_stride(loop::stride_of(input, loop), out);
    }
  }
  normalise(out);
}

void write_previous_actions(const ActionSet& actions, std::span<const CursorAction> taken,
                            std::span<float> out) {
  FORETUNE_DCHECK(out.size() % actions.size() == 0);
  std::fill(out.begin(), out.end(), 0.0F);
  const std::size_t rows = out.size() / actions.size();
  const std::size_t shown = std::min(rows, taken.size());
  for (std::size_t i = 0; i < shown; ++i) {
    if (const auto index = actions.find(taken[taken.size() - shown + i])) {
      out[(rows - shown + i) * actions.size() + *index] = 1;
    }
  }
}

}  // namespace foretune::loop::gym
