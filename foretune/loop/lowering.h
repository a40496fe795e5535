// Prepares a nest for machine code: the loop across vector lanes, the start of the register block,
// the strides of each tensor along each loop, and the packed copies. It chooses whatever the
// schedule leaves open, and refuses an impossible schedule with a reason.
//
// Thread safety: free functions. Cost: about a microsecond per loop.
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

// The largest size of one packed copy.
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
  std::vector<std::int64_t> strides;  // of the source, by loop, in elements per round
};

struct Lowered {
  VectorUnit unit;
  Nest nest;  // with a block, and further splits where the compiler needs them
  // The loop across lanes; there is none with one lane.
  std::size_t vector_level = 0;
  int lanes = 1;
  // By tensor and loop: elements that one round moves the tensor by.
  std::vector<std::vector<std::int64_t>> strides;
  // The same numbers by variable, for tensors that are not packed.
  std::vector<std::vector<std::int64_t>> var_strides;
  std::vector<PackPlan> packs;
  std::int64_t pack_floats = 0;
  // Inputs whose padding must be written out, and the tensors with their shapes then.
  std::vector<bool> is_padded;
  std::vector<Tensor> tensors;
  // The outermost reduction loop around the block.
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t outer_reduction = kNone;
};

// The registers that operands need besides the sums, and the sums in flight that hide the latency
// of an addition: 4 cycles with two each.
inline constexpr std::int64_t kOperandRegisters = 4;
inline constexpr std::int64_t kChains = 8;
// Returns the registers per sum for a block of `points` sums. Too few sums would wait for each
// other.
int copies_of_sums(const VectorUnit& unit, std::int64_t points);

// Returns the extents of a computation's variables.
Extents extents_of(const Computation& computation);

// Errors: kUnsupported with the obstacle: lanes along a loop in whose direction a tensor has gaps,
// too many registers, buffers of more than 64 MiB.
Result<Lowered> lower(const Computation& computation, const Nest& nest, const VectorUnit& unit);

}  // namespace foretune::loop
