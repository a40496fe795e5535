// Loops around the register block, copies of packed inputs, passes over outputs.
#include <algorithm>

#include "foretune/loop/machine/emitter.h"

namespace foretune::loop {

namespace x86 = asmjit::x86;
namespace Inst = x86::Inst;

namespace {

// For the innermost loops; the others count in memory.
constexpr std::array<x86::Gp, 5> kCounters{x86::rbx, x86::r14, x86::r15, x86::rcx, x86::rdx};
constexpr std::array<x86::Gp, 5> kSaved{x86::rbx, x86::r12, x86::r13, x86::r14, x86::r15};
const x86::Gp kTarget = x86::rsi;  // where a copy writes

}  // namespace

Emitter::Emitter(const Computation& computation, const Lowered& plan, asmjit::CodeHolder& code)
    : c_(computation), p_(plan), a_(&code), is_avx512_(plan.unit.isa == CpuIsa::kAvx512) {}

Status Emitter::emit() {
  mask_table_ = a_.newLabel();
  prologue();
  const Extents extents = extents_of(c_);
  if (!p_.nest.loops.empty() && p_.nest.loops[0].mark == Mark::kParallel) {
    parallel_loop(extents);
  } else {
    nest_from(0, extents);
  }
  epilogue();
  write_shared();
  write_constants();
  if (is_too_large_) {
    return fail(ErrorCode::kUnsupported,
                "the loops that are unrolled or have remainders take too much code");
  }
  return {};
}

Emitter::Mem Emitter::slot(std::size_t index) const {
  return x86::qword_ptr(x86::rbp, -static_cast<std::int32_t>(8 * (kSaved.size() + 1 + index)));
}

void Emitter::prologue() {
  a_.push(x86::rbp);
  a_.mov(x86::rbp, x86::rsp);
  for (const x86::Gp& saved : kSaved) {
    a_.push(saved);
  }
  const std::size_t slots = p_.nest.loops.size() + kMaxTensors;
  a_.sub(x86::rsp, static_cast<std::int32_t>(8 * slots));
  for (std::size_t t = 0; t < p_.tensors.size(); ++t) {
    a_.mov(kPointers[t], x86::ptr(x86::rdi, static_cast<std::int32_t>(8 * t)));
  }
}

void Emitter::epilogue() {
  a_.vzeroupper();
  a_.lea(x86::rsp, x86::ptr(x86::rbp, -static_cast<std::int32_t>(8 * kSaved.size())));
  for (std::size_t i = kSaved.size(); i-- > 0;) {
    a_.pop(kSaved[i]);
  }
  a_.pop(x86::rbp);
  a_.ret();
}

// -- loops --

const Emitter::Gp* Emitter::counter(std::size_t level) const {
  const std::size_t from_inside = p_.nest.loops.size() - 1 - level;
  return from_inside < kCounters.size() ? &kCounters[from_inside] : nullptr;
}

void Emitter::start_counter(std::size_t level, std::int64_t rounds) {
  if (const Gp* const reg = counter(level)) {
    a_.mov(reg->r32(), static_cast<std::int32_t>(rounds));
  } else {
    a_.mov(slot(level), static_cast<std::int32_t>(rounds));
  }
}

void Emitter::count_down(std::size_t level, const asmjit::Label& top) {
  if (const Gp* const reg = counter(level)) {
    a_.dec(reg->r32());
  } else {
    a_.dec(slot(level));
  }
  a_.jnz(top);
}

void Emitter::move_pointer(const Gp& pointer, std::int64_t elements) {
  if (elements != 0) {
    a_.add(pointer, static_cast<std::int32_t>(4 * elements));
  }
}

void Emitter::move_all(std::size_t level, std::int64_t rounds) {
  for (std::size_t t = 0; t < p_.strides.size(); ++t) {
    move_pointer(kPointers[t], p_.strides[t][level] * rounds);
  }
}

void Emitter::nest_from(std::size_t level, const Extents& extents) {
  if (is_too_large_) {
    return;
  }
  enter_packs(level, extents);
  if (level == p_.outer_reduction) {
    pass(Pass::kStart, extents);
  }
  if (level == static_cast<std::size_t>(p_.nest.block)) {
    block(extents);
  } else {
    loop(level, extents);
  }
  if (level == p_.outer_reduction && !c_.steps.empty()) {
    pass(Pass::kFinish, extents);
  }
  leave_packs(level);
}

void Emitter::loop(std::size_t level, const Extents& extents) {
  const Loop& loop = p_.nest.loops[level];
  const std::int64_t whole = extents[loop.var] / loop.step;
  const std::int64_t rest = extents[loop.var] % loop.step;
  Extents inner = extents;
  inner[loop.var] = loop.step;
  std::int64_t moved = 0;
  if (loop.mark == Mark::kUnroll) {
    for (std::int64_t round = 0; round < whole; ++round) {
      nest_from(level + 1, inner);
      if (round + 1 < whole || rest > 0) {
        move_all(level, 1);
        ++moved;
      }
    }
  } else if (whole > 1) {
    start_counter(level, whole);
    const asmjit::Label top = a_.newLabel();
    a_.bind(top);
    nest_from(level + 1, inner);
    move_all(level, 1);
    count_down(level, top);
    moved = whole;
  } else if (whole == 1) {
    nest_from(level + 1, inner);
    if (rest > 0) {
      move_all(level, 1);
      moved = 1;
    }
  }
  if (rest > 0) {
    inner[loop.var] = rest;
    if (whole == 0) {
      nest_from(level + 1, inner);
    } else {
      shorter_round(level + 1, inner);
    }
  }
  move_all(level, -moved);
}

// Threads come with their part of the rounds, each with pointers of its own.
void Emitter::parallel_loop(const Extents& extents) {
  enter_packs(0, extents);
  const Loop& loop = p_.nest.loops[0];
  const std::int64_t rest = extents[loop.var] % loop.step;
  for (std::size_t t = 0; t < p_.strides.size(); ++t) {
    if (p_.strides[t][0] != 0) {
      a_.imul(x86::rax, x86::qword_ptr(x86::rdi, offsetof(KernelArguments, first_round)),
              static_cast<std::int32_t>(4 * p_.strides[t][0]));
      a_.add(kPointers[t], x86::rax);
    }
  }
  const asmjit::Label top = a_.newLabel();
  const asmjit::Label after = a_.newLabel();
  const asmjit::Label end = a_.newLabel();
  a_.mov(x86::rax, x86::qword_ptr(x86::rdi, offsetof(KernelArguments, rounds)));
  a_.test(x86::rax, x86::rax);
  a_.jz(after);
  if (const Gp* const reg = counter(0)) {
    a_.mov(*reg, x86::rax);
  } else {
    a_.mov(slot(0), x86::rax);
  }
  a_.bind(top);
  Extents inner = extents;
  inner[loop.var] = loop.step;
  nest_from(1, inner);
  move_all(0, 1);
  count_down(0, top);
  a_.bind(after);
  if (rest > 0) {
    a_.cmp(x86::qword_ptr(x86::rdi, offsetof(KernelArguments, does_remainder)), 0);
    a_.jz(end);
    inner[loop.var] = rest;
    nest_from(1, inner);
  }
  a_.bind(end);
}

// Called, not written in place: nested remainders would double the code with every loop.
void Emitter::shorter_round(std::size_t level, const Extents& extents) {
  const auto [entry, is_new] = shared_.try_emplace({level, extents});
  if (is_new) {
    entry->second = a_.newLabel();
    to_write_.emplace_back(level, extents);
  }
  a_.call(entry->second);
}

void Emitter::write_shared() {
  while (!to_write_.empty() && !is_too_large_) {
    const auto [level, extents] = to_write_.back();
    to_write_.pop_back();
    a_.align(asmjit::AlignMode::kCode, 32);
    a_.bind(shared_.at({level, extents}));
    nest_from(level, extents);
    a_.ret();
  }
  for (const auto& [level, extents] : to_write_) {
    a_.bind(shared_.at({level, extents}));  // never to run: the code is thrown away
  }
}

void Emitter::write_constants() {
  a_.align(asmjit::AlignMode::kData, 64);
  a_.bind(mask_table_);
  if (needs_mask_table_) {
    for (int i = 0; i < 2 * p_.unit.lanes; ++i) {
      a_.embedUInt32(i < p_.unit.lanes ? 0xffffffffU : 0);
    }
  }
  for (const auto& [bits, label] : constants_) {
    a_.bind(label);
    a_.embedUInt32(bits);
  }
}

// -- packs --

void Emitter::enter_packs(std::size_t level, const Extents& extents) {
  for (const PackPlan& plan : p_.packs) {
    if (plan.level != level) {
      continue;
    }
    const auto start = [&](const Gp& reg) {
      a_.mov(reg, x86::ptr(x86::rdi, offsetof(KernelArguments, packs)));
      move_pointer(reg, plan.offset);
    };
    start(kTarget);
    copy(plan, plan.level, extents);
    a_.mov(slot(p_.nest.loops.size() + plan.tensor), kPointers[plan.tensor]);
    start(kPointers[plan.tensor]);
  }
}

void Emitter::leave_packs(std::size_t level) {
  for (const PackPlan& plan : p_.packs) {
    if (plan.level == level) {
      a_.mov(kPointers[plan.tensor], slot(p_.nest.loops.size() + plan.tensor));
    }
  }
}

// The loops from `level` on that move the input; the innermost one is contiguous in the buffer.
void Emitter::copy(const PackPlan& plan, std::size_t level, const Extents& extents) {
  const std::size_t levels = p_.nest.loops.size();
  while (level < levels && plan.strides[level] == 0) {
    ++level;
  }
  if (level == levels) {
    copy_elements(plan, 0, 0, 1);
    return;
  }
  const Loop& loop = p_.nest.loops[level];
  const std::int64_t covers = extents[loop.var];
  bool is_last = true;
  for (std::size_t inner = level + 1; inner < levels; ++inner) {
    is_last = is_last && plan.strides[inner] == 0;
  }
  if (is_last) {
    copy_row(plan, level, covers);
    return;
  }
  const std::int64_t whole = covers / loop.step;
  const std::int64_t rest = covers % loop.step;
  const Gp& source = kPointers[plan.tensor];
  const std::int64_t target_stride = p_.strides[plan.tensor][level];
  Extents inner = extents;
  inner[loop.var] = loop.step;
  if (whole > 0) {
    const asmjit::Label top = a_.newLabel();
    start_counter(level, whole);
    a_.bind(top);
    copy(plan, level + 1, inner);
    move_pointer(source, plan.strides[level]);
    move_pointer(kTarget, target_stride);
    count_down(level, top);
  }
  if (rest > 0) {
    inner[loop.var] = rest;
    copy(plan, level + 1, inner);
  }
  move_pointer(source, -whole * plan.strides[level]);
  move_pointer(kTarget, -whole * target_stride);
  check_size();
}

void Emitter::copy_row(const PackPlan& plan, std::size_t level, std::int64_t count) {
  const Gp& source = kPointers[plan.tensor];
  const std::int64_t stride = plan.strides[level];
  const int width = stride == 1 ? p_.unit.lanes : 1;
  constexpr std::int64_t kInPlace = 8;
  const std::int64_t whole = count / width;
  const std::int64_t body = std::min(whole, kInPlace);
  const std::int64_t rounds = body == 0 ? 0 : whole / body;
  const auto write = [&](std::int64_t vectors) {
    for (std::int64_t i = 0; i < vectors; ++i) {
      copy_elements(plan, i * width * stride, i * width, width);
    }
  };
  if (rounds > 1) {
    const asmjit::Label top = a_.newLabel();
    start_counter(level, rounds);
    a_.bind(top);
    write(body);
    move_pointer(source, body * width * stride);
    move_pointer(kTarget, body * width);
    count_down(level, top);
  }
  const std::int64_t left = rounds > 1 ? whole - rounds * body : whole;
  write(left);
  if (count % width != 0) {
    copy_elements(plan, left * width, left * width, static_cast<int>(count % width));
  }
  if (rounds > 1) {
    move_pointer(source, -rounds * body * width * stride);
    move_pointer(kTarget, -rounds * body * width);
  }
}

void Emitter::copy_elements(const PackPlan& plan, std::int64_t source, std::int64_t target,
                            int count) {
  const Mem to = x86::ptr(kTarget, static_cast<std::int32_t>(4 * target));
  const Mem from = address(plan.tensor, source);
  if (count == 1) {
    a_.vmovss(x86::xmm0, from);
    a_.vmovss(to, x86::xmm0);
  } else if (count == p_.unit.lanes) {
    a_.emit(Inst::kIdVmovups, vec(0), from);
    a_.emit(Inst::kIdVmovups, to, vec(0));
  } else {
    set_masks({count});
    use_mask(count);
    if (is_avx512_) {
      a_.z().emit(Inst::kIdVmovups, vec(0), from);
      use_mask(count);
      a_.emit(Inst::kIdVmovups, to, vec(0));
    } else {
      a_.vmaskmovps(x86::ymm0, x86::ymm15, from);
      a_.vmaskmovps(to, x86::ymm15, x86::ymm0);
    }
  }
}

// -- passes over the outputs that lie inside an outer reduction: what they start from, the steps --

void Emitter::pass(Pass kind, const Extents& extents) {
  std::vector<std::size_t> vars;
  for (std::size_t v = 0; v < c_.vars.size(); ++v) {
    if (!c_.vars[v].is_reduction && extents[v] > 1) {
      vars.push_back(v);
    }
  }
  std::stable_sort(vars.begin(), vars.end(), [&](std::size_t a, std::size_t b) {
    return p_.var_strides[0][a] > p_.var_strides[0][b];
  });
  if (kind == Pass::kStart) {
    broadcast_constant(0, c_.neutral());
  }
  pass_dimension(kind, vars, 0, extents);
}

void Emitter::pass_move(Pass kind, std::size_t var, std::int64_t steps) {
  move_pointer(kPointers[0], p_.var_strides[0][var] * steps);
  if (kind == Pass::kFinish) {
    for (std::size_t t = static_cast<std::size_t>(c_.combined) + 1; t < p_.tensors.size(); ++t) {
      move_pointer(kPointers[t], p_.var_strides[t][var] * steps);
    }
  }
}

// Loops are counted where those of the nest are from the reduction on: they have not begun.
void Emitter::pass_dimension(Pass kind, std::span<const std::size_t> vars, std::size_t index,
                             const Extents& extents) {
  if (index == vars.size()) {
    pass_elements(kind, 1, c_.vars.size());
    return;
  }
  const std::size_t var = vars[index];
  bool has_lanes = index + 1 == vars.size() && p_.var_strides[0][var] == 1;
  for (std::size_t t = static_cast<std::size_t>(c_.combined) + 1; t < p_.tensors.size(); ++t) {
    has_lanes = has_lanes && p_.var_strides[t][var] <= 1 && p_.var_strides[t][var] >= 0;
  }
  const int width = has_lanes ? p_.unit.lanes : 1;
  const std::int64_t whole = extents[var] / width;
  if (whole > 0) {
    const std::size_t level = p_.outer_reduction + index;
    const asmjit::Label top = a_.newLabel();
    start_counter(level, whole);
    a_.bind(top);
    if (has_lanes) {
      pass_elements(kind, width, var);
    } else {
      pass_dimension(kind, vars, index + 1, extents);
    }
    pass_move(kind, var, width);
    count_down(level, top);
  }
  if (has_lanes && extents[var] % width != 0) {
    pass_elements(kind, static_cast<int>(extents[var] % width), var);
  }
  pass_move(kind, var, -whole * width);
}

void Emitter::pass_elements(Pass kind, int count, std::size_t var) {
  const bool is_single = var == c_.vars.size();
  if (!is_single && count != p_.unit.lanes) {
    set_masks({count});
  }
  const Value output{.tensor = 0, .offset = 0, .count = count, .is_broadcast = is_single};
  if (kind == Pass::kFinish) {
    load(0, output);
    apply_steps(0, {}, count, var, 1);
  }
  store(output, 0);
}

}  // namespace foretune::loop
