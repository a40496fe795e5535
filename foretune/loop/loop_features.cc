#include "foretune/loop/loop_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "foretune/base/check.h"

namespace foretune::loop {
namespace {

constexpr std::array<std::string_view, kLoopFeatureColumns> kFeatureNames = {"is_loop",
                                                                             "cursor",
                                                                             "is_reduction",
                                                                             "unroll",
                                                                             "vector",
                                                                             "parallel",
                                                                             "starts_block",
                                                                             "packs",
                                                                             "loops_around",
                                                                             "log2_rounds",
                                                                             "log2_step",
                                                                             "remainder",
                                                                             "output_is_still",
                                                                             "output_log2_stride",
                                                                             "output_log2_bytes",
                                                                             "input0_is_still",
                                                                             "input0_log2_stride",
                                                                             "input0_log2_bytes",
                                                                             "input1_is_still",
                                                                             "input1_log2_stride",
                                                                             "input1_log2_bytes"};

float log2_of(std::int64_t value) {
  return static_cast<float>(std::log2(static_cast<double>(value)));
}

// Bytes of a tensor that are touched where the variables cover these extents. Where several
// variables index a dimension, as in a convolution, all counts that lies between the first and the
// last index, unless the variables are too short to touch it.
std::int64_t touched_bytes(const Tensor& tensor, const Extents& extents, std::size_t var_count) {
  const std::int64_t most = tensor.elements();
  std::int64_t elements = 1;
  for (const Dimension& dimension : tensor.dimensions) {
    std::int64_t span = 1;
    std::int64_t points = 1;
    for (std::size_t v = 0; v < var_count; ++v) {
      const std::int64_t coefficient = dimension.coefficients[v];
      if (coefficient != 0) {
        span += (coefficient < 0 ? -coefficient : coefficient) * (extents[v] - 1);
        points = std::min(points * extents[v], kMaxElements);
      }
    }
    elements = std::min(elements * std::min({span, points, dimension.size}), most);
  }
  return elements * static_cast<std::int64_t>(sizeof(float));
}

// Fills a row from the left.
class Row {
 public:
  explicit Row(std::span<float> values) : values_(values) {}
  void add(float value) { values_[next_++] = value; }
  void add(bool value) { add(value ? 1.0F : 0.0F); }
  [[nodiscard]] std::size_t size() const { return next_; }

 private:
  std::span<float> values_;
  std::size_t next_ = 0;
};

void add_tensor(const Computation& computation, const Tensor& tensor, const Loop& loop,
                const Extents& extents, Row& row) {
  const std::int64_t stride = stride_of(tensor, loop);
  row.add(stride == 0);
  row.add(stride == 0 ? 0.0F : log2_of(stride));
  row.add(log2_of(touched_bytes(tensor, extents, computation.vars.size())));
}

void add_loop(const Computation& computation, const State& state, std::size_t level, Row& row) {
  const Nest& nest = state.nest;
  const Loop& loop = nest.loops[level];
  row.add(true);
  row.add(level == state.cursor);
  row.add(computation.vars[loop.var].is_reduction);
  row.add(loop.mark == Mark::kUnroll);
  row.add(loop.mark == Mark::kVector);
  row.add(loop.mark == Mark::kParallel);
  row.add(std::cmp_equal(nest.block, level));
  row.add(static_cast<float>(std::count_if(nest.packs.begin(), nest.packs.end(),
                                           [&](const Pack& pack) { return pack.level == level; })));
  row.add(static_cast<float>(
      std::count_if(nest.loops.begin(), nest.loops.begin() + level,
                    [&](const Loop& around) { return around.var == loop.var; })));
  row.add(log2_of(nest.rounds(computation, level)));
  row.add(log2_of(loop.step));
  row.add(static_cast<float>(nest.remainder(computation, level)) / static_cast<float>(loop.step));
}

}  // namespace

std::int64_t stride_of(const Tensor& tensor, const Loop& loop) {
  const std::int64_t stride = tensor.stride_of(loop.var) * loop.step;
  return stride < 0 ? -stride : stride;
}

void write_loops_features(const Computation& computation, const State& state,
                          std::span<float> out) {
  FORETUNE_DCHECK(out.size() % kLoopFeatureColumns == 0);
  std::fill(out.begin(), out.end(), 0.0F);
  const Nest& nest = state.nest;
  const std::size_t count = std::min(nest.loops.size(), out.size() / kLoopFeatureColumns);
  const auto combined = static_cast<std::size_t>(computation.combined);
  Extents extents;
  extents.fill(1);
  // From the inside, since what a loop touches grows with each loop around.
  for (std::size_t level = nest.loops.size(); level-- > 0;) {
    const Loop& loop = nest.loops[level];
    extents[loop.var] = nest.covers(computation, level);
    if (level >= count) {
      continue;
    }
    Row row(out.subspan(level * kLoopFeatureColumns, kLoopFeatureColumns));
    add_loop(computation, state, level, row);
    add_tensor(computation, computation.output, loop, extents, row);
    for (std::size_t i = 0; i < combined; ++i) {
      add_tensor(computation, computation.inputs[i], loop, extents, row);
    }
    FORETUNE_DCHECK(row.size() == kLoopFeatureColumns - (2 - combined) * 3);
  }
}

std::span<const std::string_view> loops_feature_names() { return kFeatureNames; }

}  // namespace foretune::loop
