// The tensors of a computation with values, and the check of an output.
//
//   FORETUNE_TRY(Operands operands, Operands::create(computation, 1));
//   operands.poison();
//   kernel.run(operands.inputs(), operands.output().view(), workspace);
//   const std::string wrong = operands.wrong_output(jit);   // empty where all outputs are right
//
// Thread safety: one thread at a time. Cost: the first wrong_output() computes the right outputs
// (expected_outputs.h); each compares all of them, some 2 ns an output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/machine/interpreter.h"
#include "foretune/loop/machine/jit.h"

namespace foretune::loop {

class Operands {
 public:
  // Inputs are whole numbers whose sums are exact in f32, drawn by `seed`, on cache lines. Errors:
  // kUnsupported when there is no memory for them.
  static Result<Operands> create(Computation computation, std::uint64_t seed);

  [[nodiscard]] const Computation& computation() const { return computation_; }
  [[nodiscard]] AlignedBuffer& input(std::size_t i) { return inputs_[i]; }
  [[nodiscard]] const Inputs& inputs() const { return views_; }
  [[nodiscard]] AlignedBuffer& output() { return output_; }
  // Returns the bytes of all tensors together.
  [[nodiscard]] std::int64_t bytes() const;

  // Fills the output with values that no run leaves behind.
  void poison();
  // Returns an empty text when every output is right; otherwise one sentence with the first wrong
  // place.
  [[nodiscard]] std::string wrong_output(const Jit& jit);

 private:
  explicit Operands(Computation computation) : computation_(std::move(computation)) {}

  Computation computation_;
  std::vector<AlignedBuffer> inputs_;
  Inputs views_;
  AlignedBuffer output_;
  std::vector<double> expected_;  // once it was asked for
};

}  // namespace foretune::loop
