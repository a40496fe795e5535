// Operands of the register block: when each is loaded, and for how long it is kept.
#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/loop/machine/emitter.h"

namespace foretune::loop {

namespace x86 = asmjit::x86;
namespace Inst = x86::Inst;

namespace {

constexpr std::size_t kMaxCodeBytes = std::size_t{256} << 10U;
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

asmjit::InstId instruction_of(Op op) {
  switch (op) {
    case Op::kAdd:
      return Inst::kIdVaddps;
    case Op::kSubtract:
      return Inst::kIdVsubps;
    case Op::kMultiply:
      return Inst::kIdVmulps;
    case Op::kDivide:
      return Inst::kIdVdivps;
    case Op::kMax:
      return Inst::kIdVmaxps;
    case Op::kMin:
      return Inst::kIdVminps;
  }
  return Inst::kIdVaddps;
}

}  // namespace

Emitter::Vec Emitter::vec(int reg) const {
  const auto id = static_cast<std::uint32_t>(reg);
  return is_avx512_ ? Vec(x86::zmm(id)) : Vec(x86::ymm(id));
}

Emitter::Mem Emitter::address(std::size_t tensor, std::int64_t element) const {
  return x86::ptr(kPointers[tensor], static_cast<std::int32_t>(element * 4));
}

Emitter::Mem Emitter::operand_memory(const Value& value) const {
  const Mem memory = address(value.tensor, value.offset);
  return value.is_broadcast ? memory._1to16() : memory;
}

bool Emitter::is_lane_reduction() const {
  return p_.lanes > 1 && c_.vars[p_.nest.loops[p_.vector_level].var].is_reduction;
}

// True when one instruction can multiply and add.
bool Emitter::adds_products() const {
  return c_.combined == 2 && c_.combine == Op::kMultiply && c_.reduce == Op::kAdd &&
         c_.has_reduction();
}

void Emitter::check_size() { is_too_large_ = is_too_large_ || a_.offset() > kMaxCodeBytes; }

// True when neighbouring lanes of the vector loop are neighbours in the tensor.
bool Emitter::moves_lanes(std::size_t tensor) const {
  return p_.lanes > 1 && p_.strides[tensor][p_.vector_level] != 0;
}

asmjit::Label Emitter::constant(float value) {
  const auto [entry, is_new] = constants_.try_emplace(std::bit_cast<std::uint32_t>(value));
  if (is_new) {
    entry->second = a_.newLabel();
  }
  return entry->second;
}

void Emitter::broadcast_constant(int reg, float value) {
  a_.emit(Inst::kIdVbroadcastss, vec(reg), x86::ptr(constant(value)));
}

// Sets masks for the lanes of the partial vectors that follow.
void Emitter::set_masks(std::vector<int> counts) {
  constexpr std::size_t kMaskRegisters = 7;
  is_too_large_ = is_too_large_ || counts.size() > kMaskRegisters;
  counts.resize(std::min(counts.size(), kMaskRegisters));
  mask_counts_ = std::move(counts);
  loaded_mask_ = 0;
  for (std::size_t i = 0; is_avx512_ && i < mask_counts_.size(); ++i) {
    a_.mov(x86::eax, (1 << mask_counts_[i]) - 1);
    a_.kmovw(x86::k(static_cast<std::uint32_t>(i) + 1), x86::eax);
  }
}

// Selects the mask for a count of lanes: AVX-512 has a mask register for each, AVX2 loads one
// register.
void Emitter::use_mask(int count) {
  if (is_avx512_) {
    const auto place = std::find(mask_counts_.begin(), mask_counts_.end(), count);
    FORETUNE_CHECK(place != mask_counts_.end());
    a_.k(x86::k(static_cast<std::uint32_t>(place - mask_counts_.begin()) + 1));
  } else if (loaded_mask_ != count || mask_counts_.size() > 1) {
    needs_mask_table_ = true;
    loaded_mask_ = count;
    a_.vmovups(x86::ymm(15), x86::ptr(mask_table_, (p_.unit.lanes - count) * 4));
  }
}

void Emitter::load(int reg, const Value& value) {
  const Mem memory = address(value.tensor, value.offset);
  if (value.is_broadcast) {
    a_.emit(Inst::kIdVbroadcastss, vec(reg), memory);
  } else if (value.count == p_.unit.lanes) {
    a_.emit(Inst::kIdVmovups, vec(reg), memory);
  } else if (is_avx512_) {
    use_mask(value.count);
    a_.z().emit(Inst::kIdVmovups, vec(reg), memory);
  } else {
    use_mask(value.count);
    a_.emit(Inst::kIdVmaskmovps, vec(reg), x86::ymm(15), memory);
  }
}

void Emitter::store(const Value& value, int reg) {
  const Mem memory = address(value.tensor, value.offset);
  if (value.is_broadcast) {
    a_.emit(Inst::kIdVmovss, memory, x86::xmm(static_cast<std::uint32_t>(reg)));
  } else if (value.count == p_.unit.lanes) {
    a_.emit(Inst::kIdVmovups, memory, vec(reg));
  } else if (is_avx512_) {
    use_mask(value.count);
    a_.emit(Inst::kIdVmovups, memory, vec(reg));
  } else {
    use_mask(value.count);
    a_.emit(Inst::kIdVmaskmovps, memory, x86::ymm(15), vec(reg));
  }
}

void Emitter::operate(Op op, int target, int left, int right) {
  a_.emit(instruction_of(op), vec(target), vec(left), vec(right));
}

void Emitter::apply_steps(int reg, const Offsets& offsets, int count, std::size_t lane_var,
                          int scratch) {
  for (const Step& step : c_.steps) {
    if (step.input < 0) {
      broadcast_constant(scratch, step.constant);
    } else {
      const std::size_t tensor = static_cast<std::size_t>(step.input) + 1;
      const bool moves = lane_var < c_.vars.size() && p_.var_strides[tensor][lane_var] != 0;
      load(scratch,
           {.tensor = tensor, .offset = offsets[tensor], .count = count, .is_broadcast = !moves});
    }
    operate(step.op, reg, reg, scratch);
  }
}

// -- the cache of operands: a register is given up whose value is needed last (Belady 1966) --

std::size_t Emitter::find_value(Cache& cache, const Value& value) const {
  const auto found = std::find(cache.values.begin(), cache.values.end(), value);
  if (found != cache.values.end()) {
    return static_cast<std::size_t>(found - cache.values.begin());
  }
  cache.values.push_back(value);
  cache.uses.emplace_back();
  cache.reg.push_back(-1);
  return cache.values.size() - 1;
}

// Returns the first operation after `index` that needs the value.
std::size_t Emitter::next_use(const Cache& cache, std::size_t value, std::size_t index) {
  const std::vector<std::size_t>& uses = cache.uses[value];
  const auto found = std::upper_bound(uses.begin(), uses.end(), index);
  return found == uses.end() ? kNever : *found;
}

bool Emitter::can_be_memory(const Value& value) const {
  return value.is_broadcast ? is_avx512_ : value.count == p_.unit.lanes;
}

bool Emitter::is_worth_loading(const Cache& cache, std::size_t value, std::size_t index,
                               int pinned) const {
  const std::size_t next = next_use(cache, value, index);
  if (next == kNever) {
    return false;
  }
  for (std::size_t r = 0; r < cache.holds.size(); ++r) {
    const int held = cache.holds[r];
    if (held < 0 || (static_cast<int>(r) != pinned &&
                     next_use(cache, static_cast<std::size_t>(held), index) > next)) {
      return true;
    }
  }
  return false;
}

int Emitter::take_register(Cache& cache, std::size_t value, std::size_t index, int pinned) {
  std::size_t best = cache.holds.size();
  std::size_t latest = 0;
  for (std::size_t r = 0; r < cache.holds.size(); ++r) {
    if (static_cast<int>(r) == pinned) {
      continue;
    }
    const int held = cache.holds[r];
    const std::size_t next =
        held < 0 ? kNever : next_use(cache, static_cast<std::size_t>(held), index);
    if (best == cache.holds.size() || next > latest || (next == latest && held < 0)) {
      best = r;
      latest = next;
    }
  }
  FORETUNE_CHECK(best < cache.holds.size());
  if (cache.holds[best] >= 0) {
    cache.reg[static_cast<std::size_t>(cache.holds[best])] = -1;
  }
  cache.holds[best] = static_cast<int>(value);
  cache.reg[value] = static_cast<int>(best);
  load(cache.first_register + static_cast<int>(best), cache.values[value]);
  return static_cast<int>(best);
}

void Emitter::write_operations(std::span<const Operation> operations, Cache& cache) {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const bool is_partial = is_lane_reduction() && operations[i].count != p_.unit.lanes;
    if (adds_products() && (!is_partial || is_avx512_)) {
      write_product(operations[i], i, cache);
    } else {
      write_general(operations[i], i, cache);
    }
  }
}

// sum += left * right
void Emitter::write_product(const Operation& operation, std::size_t index, Cache& cache) {
  std::size_t first = operation.values[0];
  std::size_t second = operation.values[1];
  if (cache.reg[first] < 0 && (cache.reg[second] >= 0 || !can_be_memory(cache.values[second]) ||
                               (can_be_memory(cache.values[first]) &&
                                next_use(cache, second, index) < next_use(cache, first, index)))) {
    std::swap(first, second);
  }
  if (cache.reg[first] < 0) {
    take_register(cache, first, index, cache.reg[second]);
  }
  const int pinned = cache.reg[first];
  if (cache.reg[second] < 0 &&
      (!can_be_memory(cache.values[second]) || is_worth_loading(cache, second, index, pinned))) {
    take_register(cache, second, index, pinned);
  }
  const Vec left = vec(cache.first_register + pinned);
  if (is_lane_reduction() && operation.count != p_.unit.lanes) {
    use_mask(operation.count);  // lanes beyond the end keep their sums
  }
  if (cache.reg[second] >= 0) {
    a_.emit(Inst::kIdVfmadd231ps, vec(operation.accumulator), left,
            vec(cache.first_register + cache.reg[second]));
  } else {
    a_.emit(Inst::kIdVfmadd231ps, vec(operation.accumulator), left,
            operand_memory(cache.values[second]));
  }
}

// Writes any other combination and reduction. The register before those of the cache is for the
// combined value.
void Emitter::write_general(const Operation& operation, std::size_t index, Cache& cache) {
  const int sum = operation.accumulator;
  const int combined = c_.has_reduction() ? cache.first_register - 1 : sum;
  std::array<int, 2> regs{};
  for (int i = 0; i < c_.combined; ++i) {
    const std::size_t value = operation.values[static_cast<std::size_t>(i)];
    if (cache.reg[value] < 0) {
      take_register(cache, value, index, i == 0 ? -1 : cache.reg[operation.values[0]]);
    }
    regs[static_cast<std::size_t>(i)] = cache.first_register + cache.reg[value];
  }
  if (c_.combined == 2) {
    operate(c_.combine, combined, regs[0], regs[1]);
  } else {
    a_.emit(Inst::kIdVmovups, vec(combined), vec(regs[0]));
  }
  if (!c_.has_reduction()) {
    return;
  }
  const bool is_partial = is_lane_reduction() && operation.count != p_.unit.lanes;
  if (is_partial && !is_avx512_) {
    // Lanes beyond the end get 0 for a sum, and an existing value for a maximum.
    use_mask(operation.count);
    const auto value = x86::ymm(static_cast<std::uint32_t>(combined));
    if (c_.reduce == Op::kAdd) {
      a_.vandps(value, value, x86::ymm(15));
    } else {
      a_.vblendvps(value, x86::ymm(static_cast<std::uint32_t>(sum)), value, x86::ymm(15));
    }
  } else if (is_partial) {
    use_mask(operation.count);
  }
  operate(c_.reduce, sum, sum, combined);
}

}  // namespace foretune::loop
