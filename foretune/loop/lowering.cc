#include "foretune/loop/lowering.h"

#include <algorithm>
#include <utility>

namespace foretune::loop {
namespace {

// Multiply-adds that a block may unroll to, and rounds of a loop across lanes that adds up.
constexpr std::int64_t kMaxBlockPoints = 512;
constexpr std::int64_t kMaxOperations = 4096;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class Lowering {
 public:
  Lowering(const Computation& computation, const Nest& nest, const VectorUnit& unit)
      : c_(computation), unit_(unit) {
    out_.unit = unit;
    out_.nest = nest;
  }

  Result<Lowered> run() {
    FORETUNE_TRY_STATUS(check(c_, out_.nest));
    write_out_padding();
    FORETUNE_TRY_STATUS(choose_lanes());
    if (out_.nest.block == Nest::kNoBlock) {
      choose_block();
    }
    FORETUNE_TRY_STATUS(plan_strides());
    FORETUNE_TRY_STATUS(check_block());
    find_outer_reduction();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const SmallVector<Loop, 12>& loops() const { return out_.nest.loops; }
  [[nodiscard]] bool is_reduction(std::size_t level) const {
    return c_.vars[loops()[level].var].is_reduction;
  }

  // A padded input is copied with its border, so that every index is inside.
  void write_out_padding() {
    out_.tensors.push_back(c_.output);
    out_.is_padded.push_back(false);
    for (const Tensor& input : c_.inputs) {
      Tensor whole = input;
      bool padded = false;
      for (Dimension& dimension : whole.dimensions) {
        std::int64_t low = dimension.offset;
        std::int64_t high = dimension.offset;
        for (std::size_t v = 0; v < c_.vars.size(); ++v) {
          const std::int64_t reach = dimension.coefficients[v] * (c_.vars[v].extent - 1);
          (reach < 0 ? low : high) += reach;
        }
        const std::int64_t before = std::max<std::int64_t>(0, -low);
        const std::int64_t after = std::max<std::int64_t>(0, high - (dimension.size - 1));
        padded = padded || before > 0 || after > 0;
        dimension.size += before + after;
        dimension.offset += before;
      }
      if (padded) {
        make_dense(whole, input);
      }
      out_.is_padded.push_back(padded);
      out_.tensors.push_back(std::move(whole));
    }
    for (const Tensor& tensor : out_.tensors) {
      std::vector<std::int64_t> strides;
      for (std::size_t v = 0; v < c_.vars.size(); ++v) {
        strides.push_back(tensor.stride_of(v));
      }
      out_.var_strides.push_back(std::move(strides));
    }
  }

  // Strides for the larger sizes, dimensions in memory in the order they had.
  static void make_dense(Tensor& whole, const Tensor& input) {
    std::vector<std::size_t> order(whole.dimensions.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return input.dimensions[a].stride > input.dimensions[b].stride;
    });
    std::int64_t stride = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
      whole.dimensions[order[i]].stride = stride;
      stride *= whole.dimensions[order[i]].size;
    }
  }

  [[nodiscard]] const Pack* pack_of(std::size_t tensor) const {
    for (const Pack& pack : out_.nest.packs) {
      if (tensor == std::size_t{pack.input} + 1) {
        return &pack;
      }
    }
    return nullptr;
  }

  // The innermost loop inside a pack that moves its input is contiguous in the buffer.
  [[nodiscard]] std::int64_t stride_at(std::size_t tensor, std::size_t level) const {
    const std::uint8_t var = loops()[level].var;
    const std::int64_t stride = out_.var_strides[tensor][var] * loops()[level].step;
    const Pack* const pack = pack_of(tensor);
    if (stride == 0 || pack == nullptr || level < pack->level) {
      return stride;
    }
    std::int64_t dense = 1;
    for (std::size_t inner = level + 1; inner < loops().size(); ++inner) {
      if (out_.var_strides[tensor][loops()[inner].var] != 0) {
        dense *= out_.nest.rounds(c_, inner);
      }
    }
    return dense;
  }

  // Why the loop cannot lie across lanes.
  [[nodiscard]] Support lanes_fit(std::size_t level) const {
    const Loop& loop = loops()[level];
    for (std::size_t t = 0; t < out_.tensors.size(); ++t) {
      const bool is_step_input = t > static_cast<std::size_t>(c_.combined);
      if (is_reduction(level) && (t == 0 || is_step_input)) {
        continue;
      }
      const std::int64_t stride = stride_at(t, level);
      if (stride != 1 && (t == 0 || stride != 0)) {
        return Support::no(out_.tensors[t].name, " moves by ", stride, " elements along ",
                           c_.vars[loop.var].name,
                           ", where vector lanes need neighbours; pack it or take another loop");
      }
    }
    return Support::yes();
  }

  // Blocks and everything across lanes lie inside all packs.
  [[nodiscard]] std::size_t first_block_level() const {
    std::size_t first = 0;
    for (const Pack& pack : out_.nest.packs) {
      first = std::max<std::size_t>(first, pack.level);
    }
    if (!loops().empty() && loops()[0].mark == Mark::kParallel) {
      first = std::max<std::size_t>(first, 1);
    }
    return first;
  }

  Status choose_lanes() {
    for (std::size_t level = 0; level < loops().size(); ++level) {
      if (loops()[level].mark == Mark::kVector) {
        if (const Support fits = lanes_fit(level); !fits) {
          return fail(ErrorCode::kUnsupported, fits.reason());
        }
        take_lanes(level);
        return {};
      }
    }
    const std::size_t outermost =
        std::max(first_block_level(), static_cast<std::size_t>(std::max(0, out_.nest.block)));
    for (std::size_t level = loops().size(); level-- > outermost;) {
      if (loops()[level].step == 1 && out_.nest.covers(c_, level) > 1 && lanes_fit(level) &&
          points_inside(level + 1) <= budget()) {
        out_.nest.loops[level].mark = Mark::kVector;
        take_lanes(level);
        return {};
      }
    }
    out_.vector_level = loops().size();
    return {};
  }

  void take_lanes(std::size_t level) {
    out_.vector_level = level;
    out_.lanes = unit_.lanes;
  }

  [[nodiscard]] std::int64_t budget() const { return unit_.registers - kOperandRegisters; }

  // Rounds that a loop of the block is unrolled to.
  [[nodiscard]] std::int64_t unrolled_rounds(std::size_t level) const {
    return level == out_.vector_level ? ceil_div(out_.nest.covers(c_, level), out_.lanes)
                                      : out_.nest.rounds(c_, level);
  }

  // Points of a block that starts at `level`: all loops but the reductions, unrolled.
  [[nodiscard]] std::int64_t points_inside(std::size_t level) const {
    std::int64_t points = 1;
    for (std::size_t i = level; i < loops().size() && points <= kMaxBlockPoints; ++i) {
      if (!is_reduction(i)) {
        points *= unrolled_rounds(i);
      }
    }
    return points;
  }

  // The largest block that fits; the loop across lanes is cut where it alone does not. Reductions
  // around it stay inside: their sums then live in registers.
  void choose_block() {
    cut_lanes();
    std::size_t level = loops().size();
    while (level > first_block_level() && points_inside(level - 1) <= budget()) {
      --level;
    }
    out_.nest.block = static_cast<int>(level);
  }

  // A loop across lanes with more rounds than there are registers for moves in steps of as many as
  // there are; of a reduction, of as many as hide an addition's latency.
  void cut_lanes() {
    if (out_.lanes == 1) {
      return;
    }
    const std::size_t level = out_.vector_level;
    const std::int64_t covers = out_.nest.covers(c_, level);
    const std::int64_t rounds = ceil_div(covers, out_.lanes);
    std::int64_t most = budget() / std::max<std::int64_t>(1, points_inside(level + 1));
    if (is_reduction(level)) {
      most = std::min<std::int64_t>(kChains, most);
    }
    most = std::max<std::int64_t>(1, most);
    if (rounds <= most) {
      return;
    }
    // As many equal parts as needed.
    const std::int64_t parts = ceil_div(rounds, most);
    const std::int64_t step = ceil_div(rounds, parts) * out_.lanes;
    if (step >= covers) {
      return;
    }
    Loop outer = loops()[level];
    outer.mark = Mark::kNone;
    outer.step = step;
    SmallVector<Loop, 12> cut;
    for (std::size_t i = 0; i < loops().size(); ++i) {
      if (i == level) {
        cut.push_back(outer);
      }
      cut.push_back(loops()[i]);
    }
    out_.nest.loops = cut;
    for (Pack& pack : out_.nest.packs) {
      pack.level = static_cast<std::uint8_t>(pack.level + (pack.level > level ? 1 : 0));
    }
    ++out_.vector_level;
  }

  Status plan_strides() {
    for (std::size_t t = 0; t < out_.tensors.size(); ++t) {
      std::vector<std::int64_t> strides;
      for (std::size_t level = 0; level < loops().size(); ++level) {
        strides.push_back(stride_at(t, level));
      }
      out_.strides.push_back(std::move(strides));
    }
    for (const Pack& pack : out_.nest.packs) {
      PackPlan plan;
      plan.tensor = std::size_t{pack.input} + 1;
      plan.level = pack.level;
      plan.floats = 1;
      for (std::size_t level = 0; level < loops().size(); ++level) {
        const std::int64_t stride =
            out_.var_strides[plan.tensor][loops()[level].var] * loops()[level].step;
        plan.strides.push_back(stride);
        if (level >= plan.level && stride != 0) {
          plan.floats *= out_.nest.rounds(c_, level);
        }
        if (plan.floats > kMaxPackFloats) {
          return fail(ErrorCode::kUnsupported, "packing ", out_.tensors[plan.tensor].name,
                      " takes a buffer of more than 64 MiB");
        }
      }
      plan.offset = out_.pack_floats;
      out_.pack_floats += ceil_div(plan.floats, 16) * 16;
      out_.packs.push_back(std::move(plan));
    }
    return {};
  }

  Status check_block() {
    const auto block = static_cast<std::size_t>(out_.nest.block);
    if (out_.lanes > 1 && out_.vector_level < block) {
      return fail(ErrorCode::kUnsupported,
                  "the loop across vector lanes lies outside of the block");
    }
    const std::int64_t points = points_inside(block);
    if (points > budget()) {
      return fail(ErrorCode::kUnsupported, "the block keeps ",
                  points > kMaxBlockPoints ? "over " : "", std::min(points, kMaxBlockPoints),
                  " values in registers and its operands need ", kOperandRegisters,
                  " more; there are ", unit_.registers);
    }
    std::int64_t operations = points;
    for (std::size_t level = block; level < loops().size(); ++level) {
      if (is_reduction(level) &&
          (loops()[level].mark == Mark::kUnroll || level == out_.vector_level)) {
        operations *= unrolled_rounds(level);
      }
    }
    if (operations > kMaxOperations) {
      return fail(ErrorCode::kUnsupported, "the block unrolls to more than ", kMaxOperations,
                  " operations");
    }
    return {};
  }

  void find_outer_reduction() {
    const auto block = static_cast<std::size_t>(out_.nest.block);
    for (std::size_t level = 0; level < block; ++level) {
      if (is_reduction(level)) {
        out_.outer_reduction = level;
        return;
      }
    }
  }

  const Computation& c_;
  VectorUnit unit_;
  Lowered out_;
};

}  // namespace

VectorUnit VectorUnit::of(CpuIsa isa) {
  return isa == CpuIsa::kAvx512 ? VectorUnit{.isa = isa, .lanes = 16, .registers = 32}
                                : VectorUnit{.isa = isa, .lanes = 8, .registers = 16};
}

int copies_of_sums(const VectorUnit& unit, std::int64_t points) {
  const std::int64_t wanted = ceil_div(kChains, points);
  const std::int64_t room = (unit.registers - kOperandRegisters) / points;
  return static_cast<int>(std::clamp<std::int64_t>(std::min(wanted, room), 1, kChains));
}

Extents extents_of(const Computation& computation) {
  Extents extents{};
  for (std::size_t v = 0; v < computation.vars.size(); ++v) {
    extents[v] = computation.vars[v].extent;
  }
  return extents;
}

Result<Lowered> lower(const Computation& computation, const Nest& nest, const VectorUnit& unit) {
  return Lowering(computation, nest, unit).run();
}

}  // namespace foretune::loop
