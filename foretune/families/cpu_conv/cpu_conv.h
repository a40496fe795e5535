// The family "cpu-conv": convolutions in one to three dimensions, in f32 with channels last or
// first, in bf16 and i8 with channels last: forward passes with bias, ReLU and an added tensor, and
// the gradients of inputs and weights; groups, strides, padding, dilation; any instruction set of
// this CPU, any number of threads. Products of bf16 are summed in f32, those of i8 in i32
// (quantization.h); `out` says which of both types the result has. Integers have no gradients.
// FamilyOptions::threads and the parameters threads=N and isa=NAME restrict it
// (kernels/cpu_limits). The parameter winograd=on makes Winograd's algorithm legal, which rounds
// differently (docs/guides/convolutions.md); tiles=off leaves out the matrix tiles of AMX, which
// are used where the CPU has them and the system lets this process use them. Constant weights
// (`weights=constant`) are packed before the clock runs, others in each run. Groups of few channels
// may be computed several at once: a NaN or an infinity in the input of one then spreads to the
// others.
//
//   FORETUNE_TRY(const auto family, create_cpu_conv({.fingerprint = machine}));
//   FORETUNE_TRY(const auto kernel, family->kernel(problem, config));
//   FORETUNE_TRY_STATUS(kernel->run({.input = x, .weights = w, .result = y}));
//
// Weights that stay the same from call to call are packed once:
//
//   std::vector<std::byte> packed(kernel->packed_bytes());
//   FORETUNE_TRY_STATUS(kernel->pack(w, packed));
//   FORETUNE_TRY_STATUS(kernel->run({.input = x, .packed_weights = packed.data(), .result = y}));
//
// Thread safety: as Family. Any number of threads may run kernels at once; kernels that use several
// threads take turns.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "foretune/base/result.h"
#include "foretune/families/cpu_conv/quantization.h"
#include "foretune/family/family.h"

namespace foretune {

// The tensors of a call, dense, each of the shape and layout that the problem gives. The one that
// is computed must not overlap the others.
struct CpuConvOperands {
  const float* input = nullptr;    // the input, or null when its gradient is computed
  const float* weights = nullptr;  // null when their gradient is computed
  // Written by pack() of the same kernel and read instead of the weights, unless null.
  const std::byte* packed_weights = nullptr;
  const float* output = nullptr;  // the gradient of the output, for both other gradients
  const float* bias = nullptr;    // of each filter, when the epilogue has one
  const float* addend = nullptr;  // of the output's shape, when the epilogue adds one
  float* result = nullptr;
  const ConvQuantization* quantization = nullptr;  // needed for a result of i8
};

// One problem and config, ready for a caller's tensors.
class CpuConvKernel {
 public:
  virtual ~CpuConvKernel() = default;
  // Packs the weights in every call, unless it gets packed ones. Errors: kInvalidArgument for a
  // tensor that is missing and for a result that overlaps another tensor, kUnsupported when there
  // is no memory to work in; the result is then unchanged.
  virtual Status run(const CpuConvOperands& operands) const = 0;
  // Returns the size of packed weights; 0 for gradients of weights, which read none.
  [[nodiscard]] virtual std::size_t packed_bytes() const = 0;
  // Packs weights of the problem's type and shape for later runs of this kernel. `packed` has
  // packed_bytes(), best on a cache line. Errors: kInvalidArgument for no weights, for another size
  // and for memory that is not aligned to 4 bytes.
  virtual Status pack(const void* weights, std::span<std::byte> packed) const = 0;
};

class CpuConv : public Family {
 public:
  // The kernel may outlive the family. Errors: as prepare().
  [[nodiscard]] virtual Result<std::shared_ptr<const CpuConvKernel>> kernel(
      const Problem& problem, const Config& config) const = 0;
};

// Errors: as apply_cpu_limits().
Result<std::unique_ptr<CpuConv>> create_cpu_conv(const FamilyOptions& options);

// The row of the table of families.
const FamilyEntry& cpu_conv_family();

}  // namespace foretune
