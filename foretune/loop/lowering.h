// A nest made ready for machine code: which loop lies across vector lanes, where the register block
// starts, how each tensor moves with each loop, what is packed where. Chosen here where the
// schedule leaves it open; refused with a reason where what it asks for is not possible.
//
// Thread safety: free functions. Cost: about a microsecond a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/hardware/cpu.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

// The output, then the inputs.
inline constexpr std::size_t kMaxTensors = 1 + kMaxInputs;

// Of one packed copy.
inline constexpr std::int64_t kMaxPackFloats = std::int64_t{16} << 20U;

// f32 vectors of an instruction set.
struct VectorUnit {
  CpuIsa isa = CpuIsa::kAvx512;
  int lanes = 16;
  int registers = 32;
  static VectorUnit of(CpuIsa isa);  // kAvx2 or kAvx512
};

struct PackPlan {
  std::size_t tensor = 1;
  std::size_t level = 0;
  std::int64_t floats = 0;
  std::int64_t offset = 0;            // in the buffer of all packs, in floats
  std::vector<std::int64_t> strides;  // of the source, per loop, in elements per round
};

struct Lowered {
  VectorUnit unit;
  Nest nest;  // with a block, and with further splits where the compiler had to make them
  // The loop across lanes; none: one lane.
  std::size_t vector_level = 0;
  int lanes = 1;
  // Of each tensor, per loop: elements that one round moves it by.
  std::vector<std::vector<std::int64_t>> strides;
  // Of each tensor that is not packed, per variable.
  std::vector<std::vector<std::int64_t>> var_strides;
  std::vector<PackPlan> packs;
  std::int64_t pack_floats = 0;
  // Inputs whose padding has to be written out, with the shape they then have.
  std::vector<bool> is_padded;
  std::vector<Tensor> tensors;
  // The outermost reduction loop around the block.
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t outer_reduction = kNone;
};

// Registers that operands need beside the sums, and sums in flight that hide the latency of adding:
// 4 cycles, two each.
inline constexpr std::int64_t kOperandRegisters = 4;
inline constexpr std::int64_t kChains = 8;
// Registers per sum of a block of so many: few of them would wait for each other.
int copies_of_sums(const VectorUnit& unit, std::int64_t points);

// Extents of a computation's variables.
Extents extents_of(const Computation& computation);

// Errors: kUnsupported with what is not possible: lanes along a loop in whose direction a tensor
// has gaps, more registers than there are, buffers of more than 64 MiB.
Result<Lowered> lower(const Computation& computation, const Nest& nest, const VectorUnit& unit);

}  // namespace foretune::loop
