// The register block: sums stay in registers while the reductions run.
#include <algorithm>
#include <utility>

#include "foretune/loop/machine/emitter.h"

namespace foretune::loop {

namespace x86 = asmjit::x86;
namespace Inst = x86::Inst;

namespace {

// Number of operations in the body of the innermost loop, so that counting rounds costs little in
// comparison.
constexpr std::size_t kBodyOperations = 32;
constexpr std::int64_t kMaxBodyRounds = 8;

}  // namespace

void Emitter::block(const Extents& extents) {
  points_.clear();
  reductions_.clear();
  const auto start = static_cast<std::size_t>(p_.nest.block);
  find_points(start, extents, {});
  for (std::size_t level = start; level < p_.nest.loops.size(); ++level) {
    if (c_.vars[p_.nest.loops[level].var].is_reduction &&
        !(p_.lanes > 1 && level == p_.vector_level)) {
      reductions_.push_back(level);
    }
  }
  copies_ =
      c_.has_reduction() ? copies_of_sums(p_.unit, static_cast<std::int64_t>(points_.size())) : 1;
  prepare_masks();
  start_sums();
  leaves_ = 0;
  reduce(0, extents, {});
  finish_sums();
}

// Lists the outputs of the block in the order of its loops.
void Emitter::find_points(std::size_t level, Extents extents, Offsets offsets) {
  const std::size_t levels = p_.nest.loops.size();
  if (level == levels) {
    const std::size_t lanes = p_.vector_level;
    const bool is_vector = p_.lanes > 1 && !is_lane_reduction();
    const std::uint8_t var = is_vector ? p_.nest.loops[lanes].var : 0;
    points_.push_back(
        {.offsets = offsets, .count = is_vector ? static_cast<int>(extents[var]) : 1});
    return;
  }
  const Loop& loop = p_.nest.loops[level];
  if (c_.vars[loop.var].is_reduction) {
    find_points(level + 1, extents, offsets);
    return;
  }
  const bool is_vector = p_.lanes > 1 && level == p_.vector_level;
  const std::int64_t step = is_vector ? p_.lanes : loop.step;
  const std::int64_t covers = extents[loop.var];
  for (std::int64_t done = 0; done < covers; done += step) {
    Extents inner = extents;
    inner[loop.var] = std::min(step, covers - done);
    find_points(level + 1, inner, offsets);
    for (std::size_t t = 0; t < p_.strides.size(); ++t) {
      offsets[t] += p_.strides[t][level] * (is_vector ? step : 1);
    }
  }
}

// Finds the partial vectors of the block, and the registers that are left for operands.
void Emitter::prepare_masks() {
  std::vector<int> partial;
  const auto add = [&](std::int64_t count) {
    const int rest = static_cast<int>(count % p_.unit.lanes);
    if (p_.lanes > 1 && rest != 0 &&
        std::find(partial.begin(), partial.end(), rest) == partial.end()) {
      partial.push_back(rest);
    }
  };
  for (const Point& point : points_) {
    if (!is_lane_reduction()) {
      add(point.count);
    }
  }
  if (is_lane_reduction()) {
    // The ranges that the loop covers, inside of whole and of shorter rounds of the loops around
    // it.
    std::vector<std::int64_t> covers{c_.vars[p_.nest.loops[p_.vector_level].var].extent};
    for (std::size_t level = 0; level < p_.vector_level; ++level) {
      const Loop& loop = p_.nest.loops[level];
      if (loop.var != p_.nest.loops[p_.vector_level].var) {
        continue;
      }
      std::vector<std::int64_t> inner;
      for (const std::int64_t cover : covers) {
        if (cover >= loop.step) {
          inner.push_back(loop.step);
        }
        if (cover % loop.step != 0) {
          inner.push_back(cover % loop.step);
        }
      }
      covers = inner;
    }
    for (const std::int64_t cover : covers) {
      add(cover);
    }
  }
  set_masks(std::move(partial));
  const bool combines = !adds_products() || (is_lane_reduction() && !is_avx512_);
  first_operand_register_ = static_cast<int>(points_.size()) * copies_ + (combines ? 1 : 0);
  last_operand_register_ = p_.unit.registers - (!is_avx512_ && !mask_counts_.empty() ? 1 : 0);
}

void Emitter::start_sums() {
  if (!c_.has_reduction()) {
    return;
  }
  const bool continues = p_.outer_reduction != Lowered::kNone && !is_lane_reduction();
  const int sums = static_cast<int>(points_.size()) * copies_;
  for (int sum = 0; sum < sums; ++sum) {
    const Point& point = points_[static_cast<std::size_t>(sum / copies_)];
    if (continues && sum % copies_ == 0) {
      load(sum, {.tensor = 0,
                 .offset = point.offsets[0],
                 .count = point.count,
                 .is_broadcast = p_.lanes == 1});
    } else if (c_.reduce == Op::kAdd) {
      a_.vxorps(x86::xmm(static_cast<std::uint32_t>(sum)),
                x86::xmm(static_cast<std::uint32_t>(sum)),
                x86::xmm(static_cast<std::uint32_t>(sum)));
    } else {
      broadcast_constant(sum, c_.neutral());
    }
  }
}

// Writes the reduction loops from `index` on. `offsets` are those of the unrolled loops around
// them.
void Emitter::reduce(std::size_t index, const Extents& extents, const Offsets& offsets) {
  if (is_too_large_) {
    return;
  }
  if (index == reductions_.size()) {
    leaf(extents, offsets);
    return;
  }
  const std::size_t level = reductions_[index];
  const Loop& loop = p_.nest.loops[level];
  const std::int64_t whole = extents[loop.var] / loop.step;
  const std::int64_t rest = extents[loop.var] % loop.step;
  Extents inner = extents;
  inner[loop.var] = loop.step;
  std::int64_t body = 1;
  if (loop.mark == Mark::kUnroll) {
    body = std::max<std::int64_t>(1, whole);
  } else if (index + 1 == reductions_.size()) {
    const std::size_t operations = std::max<std::size_t>(1, points_.size());
    body = static_cast<std::int64_t>((kBodyOperations + operations - 1) / operations);
    body = std::clamp<std::int64_t>(std::max<std::int64_t>(body, copies_), 1, kMaxBodyRounds);
    body = std::max<std::int64_t>(1, std::min(body, whole));
  }
  const auto at = [&](std::int64_t round) {
    Offsets moved = offsets;
    for (std::size_t t = 0; t < p_.strides.size(); ++t) {
      moved[t] += p_.strides[t][level] * round;
    }
    return moved;
  };
  const std::int64_t loops = whole / body;
  std::int64_t base = 0;
  if (loops > 1) {
    start_counter(level, loops);
    const asmjit::Label top = a_.newLabel();
    a_.align(asmjit::AlignMode::kCode, 32);
    a_.bind(top);
    leaves_ = 0;
    for (std::int64_t round = 0; round < body; ++round) {
      reduce(index + 1, inner, at(round));
    }
    move_all(level, body);
    count_down(level, top);
  } else {
    for (std::int64_t round = 0; round < loops * body; ++round) {
      reduce(index + 1, inner, at(round));
    }
    base = loops * body;
  }
  for (std::int64_t round = 0; round < whole - loops * body; ++round) {
    reduce(index + 1, inner, at(base + round));
  }
  if (rest > 0) {
    inner[loop.var] = rest;
    reduce(index + 1, inner, at(base + whole - loops * body));
  }
  if (loops > 1) {
    move_all(level, -loops * body);
  }
}

// Returns the offsets of the vectors of a reduction across lanes; one place without such a
// reduction.
std::vector<Emitter::Offsets> Emitter::lane_rounds(const Extents& extents, const Offsets& offsets,
                                                   std::vector<int>& counts) const {
  std::vector<Offsets> rounds;
  if (!is_lane_reduction()) {
    counts.push_back(0);
    rounds.push_back(offsets);
    return rounds;
  }
  const std::int64_t covers = extents[p_.nest.loops[p_.vector_level].var];
  for (std::int64_t done = 0; done < covers; done += p_.lanes) {
    Offsets moved = offsets;
    for (std::size_t t = 0; t < p_.strides.size(); ++t) {
      moved[t] += p_.strides[t][p_.vector_level] * done;
    }
    rounds.push_back(moved);
    counts.push_back(static_cast<int>(std::min<std::int64_t>(p_.lanes, covers - done)));
  }
  return rounds;
}

// Writes straight-line code: one operation for every point, and for every vector of a reduction
// across lanes.
void Emitter::leaf(const Extents& extents, const Offsets& offsets) {
  std::vector<int> counts;
  const std::vector<Offsets> rounds = lane_rounds(extents, offsets, counts);
  Cache cache;
  cache.first_register = first_operand_register_;
  cache.holds.assign(static_cast<std::size_t>(last_operand_register_ - first_operand_register_),
                     -1);
  std::vector<Operation> operations;
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    for (std::size_t p = 0; p < points_.size(); ++p) {
      const int count = is_lane_reduction() ? counts[round] : points_[p].count;
      Operation operation{.accumulator = static_cast<int>(p) * copies_ + leaves_ % copies_,
                          .count = count};
      for (int i = 0; i < c_.combined; ++i) {
        const std::size_t tensor = static_cast<std::size_t>(i) + 1;
        const bool moves = moves_lanes(tensor);
        const std::size_t value =
            find_value(cache, {.tensor = tensor,
                               .offset = points_[p].offsets[tensor] + rounds[round][tensor],
                               .count = moves ? count : p_.unit.lanes,
                               .is_broadcast = !moves});
        operation.values[static_cast<std::size_t>(i)] = value;
        cache.uses[value].push_back(operations.size());
      }
      operations.push_back(operation);
    }
    ++leaves_;
  }
  write_operations(operations, cache);
  check_size();
}

void Emitter::finish_sums() {
  for (std::size_t p = 0; p < points_.size(); ++p) {
    finish_point(p);
  }
}

void Emitter::finish_point(std::size_t p) {
  const Point& point = points_[p];
  const int sum = static_cast<int>(p) * copies_;
  const int scratch = first_operand_register_;
  for (int copy = 1; copy < copies_; ++copy) {
    operate(c_.reduce, sum, sum, sum + copy);
  }
  const bool is_inside = p_.outer_reduction != Lowered::kNone;
  const bool is_single = p_.lanes == 1 || is_lane_reduction();
  if (is_lane_reduction()) {
    add_lanes(sum);
    if (is_inside) {
      load(scratch, {.tensor = 0, .offset = point.offsets[0], .is_broadcast = true});
      operate(c_.reduce, sum, scratch, sum);
    }
  }
  if (!is_inside) {
    const std::size_t lane_var =
        is_single ? c_.vars.size() : std::size_t{p_.nest.loops[p_.vector_level].var};
    apply_steps(sum, point.offsets, point.count, lane_var, scratch);
  }
  store({.tensor = 0, .offset = point.offsets[0], .count = point.count, .is_broadcast = is_single},
        sum);
}

// Reduces the lanes of a register into its lowest one.
void Emitter::add_lanes(int reg) {
  const auto source = static_cast<std::uint32_t>(reg);
  const auto other = static_cast<std::uint32_t>(first_operand_register_);
  const auto fold = [&](const Vec& target, const Vec& with) {
    switch (c_.reduce) {
      case Op::kMax:
        a_.vmaxps(target, target, with);
        break;
      case Op::kMin:
        a_.vminps(target, target, with);
        break;
      default:
        a_.vaddps(target, target, with);
    }
  };
  if (is_avx512_) {
    a_.vextractf64x4(x86::ymm(other), x86::zmm(source), 1);
    fold(x86::ymm(source), x86::ymm(other));
    a_.vextractf32x4(x86::xmm(other), x86::ymm(source), 1);
  } else {
    a_.vextractf128(x86::xmm(other), x86::ymm(source), 1);
  }
  fold(x86::xmm(source), x86::xmm(other));
  a_.vshufps(x86::xmm(other), x86::xmm(source), x86::xmm(source), 0b01001110);
  fold(x86::xmm(source), x86::xmm(other));
  a_.vshufps(x86::xmm(other), x86::xmm(source), x86::xmm(source), 0b10110001);
  fold(x86::xmm(source), x86::xmm(other));
}

}  // namespace foretune::loop
