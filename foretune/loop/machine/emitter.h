// Writes a lowered nest as machine code (inside of jit.cc; nothing else includes this).
//
// The function is void(const KernelArguments*). Each tensor has a pointer register, which loops
// move and move back, so that all addresses below a loop are constant offsets. The last, shorter
// round of a loop is the same code for other extents; all places that need it share it.
//
// Thread safety: an emitter belongs to one thread.
#pragma once

#include <asmjit/x86.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/lowering.h"

namespace foretune::loop {

// Where the tensors' pointers are.
inline constexpr std::array<asmjit::x86::Gp, kMaxTensors> kPointers{
    asmjit::x86::r8,  asmjit::x86::r9,  asmjit::x86::r10,
    asmjit::x86::r11, asmjit::x86::r12, asmjit::x86::r13};

struct KernelArguments {
  std::array<const float*, kMaxTensors> tensors{};  // at their origins; the output first
  float* packs = nullptr;
  // Rounds of a parallel loop: the first, their number, and whether they include the shorter last
  // one.
  std::int64_t first_round = 0;
  std::int64_t rounds = 0;
  std::int64_t does_remainder = 0;
};

class Emitter {
 public:
  Emitter(const Computation& computation, const Lowered& plan, asmjit::CodeHolder& code);
  // Errors: kUnsupported where the code would get too large.
  Status emit();

 private:
  using Gp = asmjit::x86::Gp;
  using Vec = asmjit::x86::Vec;
  using Mem = asmjit::x86::Mem;
  using InstId = asmjit::InstId;
  using Offsets = std::array<std::int64_t, kMaxTensors>;

  // A value of an output's elements in a register of the block.
  struct Point {
    Offsets offsets{};
    int count = 1;  // lanes in use
  };
  // An operand's vector or element, at an address known when the block is written.
  struct Value {
    std::size_t tensor = 0;
    std::int64_t offset = 0;
    int count = 1;
    bool is_broadcast = false;
    auto operator<=>(const Value&) const = default;
  };
  struct Operation {
    std::array<std::size_t, 2> values{};
    int accumulator = 0;
    int count = 1;
  };
  // Which values are in registers while a leaf is written.
  struct Cache {
    std::vector<Value> values;
    std::vector<std::vector<std::size_t>> uses;  // of each value, by operation, in order
    std::vector<int> reg;                        // of each value; -1: in memory
    std::vector<int> holds;                      // of each register: a value, -1: none
    int first_register = 0;
  };
  enum class Pass : std::uint8_t { kStart, kFinish };

  // -- emitter_nest.cc: loops, packs, passes over outputs --
  void prologue();
  void epilogue();
  void nest_from(std::size_t level, const Extents& extents);
  void loop(std::size_t level, const Extents& extents);
  void parallel_loop(const Extents& extents);
  void shorter_round(std::size_t level, const Extents& extents);
  void write_shared();
  void enter_packs(std::size_t level, const Extents& extents);
  void leave_packs(std::size_t level);
  void copy(const PackPlan& plan, std::size_t level, const Extents& extents);
  void copy_row(const PackPlan& plan, std::size_t level, std::int64_t count);
  void copy_elements(const PackPlan& plan, std::int64_t source, std::int64_t target, int count);
  void pass(Pass kind, const Extents& extents);
  void pass_dimension(Pass kind, std::span<const std::size_t> vars, std::size_t index,
                      const Extents& extents);
  void pass_elements(Pass kind, int count, std::size_t var);
  void pass_move(Pass kind, std::size_t var, std::int64_t steps);
  void move_all(std::size_t level, std::int64_t rounds);
  void move_pointer(const Gp& pointer, std::int64_t elements);
  void start_counter(std::size_t level, std::int64_t rounds);
  void count_down(std::size_t level, const asmjit::Label& top);
  [[nodiscard]] const Gp* counter(std::size_t level) const;
  [[nodiscard]] Mem slot(std::size_t index) const;
  void write_constants();

  // -- emitter_block.cc: the register block --
  void block(const Extents& extents);
  void find_points(std::size_t level, Extents extents, Offsets offsets);
  void start_sums();
  void reduce(std::size_t index, const Extents& extents, const Offsets& offsets);
  void leaf(const Extents& extents, const Offsets& offsets);
  void finish_sums();
  void finish_point(std::size_t point);
  void add_lanes(int reg);
  void prepare_masks();
  [[nodiscard]] std::vector<Offsets> lane_rounds(const Extents& extents, const Offsets& offsets,
                                                 std::vector<int>& counts) const;

  // -- emitter_values.cc: operands, operations on vectors --
  void write_operations(std::span<const Operation> operations, Cache& cache);
  void write_product(const Operation& operation, std::size_t index, Cache& cache);
  void write_general(const Operation& operation, std::size_t index, Cache& cache);
  std::size_t find_value(Cache& cache, const Value& value) const;
  int take_register(Cache& cache, std::size_t value, std::size_t index, int pinned);
  [[nodiscard]] bool is_worth_loading(const Cache& cache, std::size_t value, std::size_t index,
                                      int pinned) const;
  [[nodiscard]] bool can_be_memory(const Value& value) const;
  [[nodiscard]] static std::size_t next_use(const Cache& cache, std::size_t value,
                                            std::size_t index);
  void load(int reg, const Value& value);
  void store(const Value& value, int reg);
  void broadcast_constant(int reg, float value);
  void apply_steps(int reg, const Offsets& offsets, int count, std::size_t lane_var, int scratch);
  void operate(Op op, int target, int left, int right);
  void set_masks(std::vector<int> counts);
  void use_mask(int count);
  [[nodiscard]] Vec vec(int reg) const;
  [[nodiscard]] Mem address(std::size_t tensor, std::int64_t element) const;
  [[nodiscard]] Mem operand_memory(const Value& value) const;
  [[nodiscard]] bool moves_lanes(std::size_t tensor) const;
  [[nodiscard]] bool is_lane_reduction() const;
  [[nodiscard]] bool adds_products() const;
  void check_size();
  asmjit::Label constant(float value);

  const Computation& c_;
  const Lowered& p_;
  asmjit::x86::Assembler a_;
  bool is_avx512_ = true;
  bool is_too_large_ = false;

  std::map<std::pair<std::size_t, Extents>, asmjit::Label> shared_;
  std::vector<std::pair<std::size_t, Extents>> to_write_;
  std::map<std::uint32_t, asmjit::Label> constants_;
  asmjit::Label mask_table_;
  bool needs_mask_table_ = false;

  // The state of the block that is being written.
  std::vector<Point> points_;
  std::vector<std::size_t> reductions_;
  int copies_ = 1;
  int leaves_ = 0;
  std::vector<int> mask_counts_;
  int first_operand_register_ = 0;
  int last_operand_register_ = 0;  // one past
  int loaded_mask_ = 0;            // AVX2: the contents of the mask register, 0 when unknown
};

}  // namespace foretune::loop
