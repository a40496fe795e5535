// Operands of a loop nest and the outputs that are right.
//
//   FORETUNE_TRY(std::unique_ptr<NestData> data, NestData::create(computation, seed));
//   kernel.run(data->inputs(), data->output(), workspace);
//   data->verify(jit)
//
// Thread safety: one thread at a time. Cost: the first verify() computes the outputs
// (loop/machine/expected_outputs.h); each compares all of them, some 2 ns an output.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/family/family.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/machine/interpreter.h"
#include "foretune/loop/machine/jit.h"

namespace foretune {

class NestData final : public ProblemData {
 public:
  // Inputs are whole numbers whose sums are exact in f32, drawn by `seed`, on cache lines. Errors:
  // kUnsupported when there is no memory for the operands.
  static Result<std::unique_ptr<NestData>> create(loop::Computation computation, std::uint64_t seed,
                                                  std::shared_ptr<const loop::Jit> jit);

  [[nodiscard]] const loop::Computation& computation() const { return computation_; }
  [[nodiscard]] const loop::Inputs& inputs() const { return views_; }
  [[nodiscard]] std::span<float> output() { return output_.view(); }

  void poison() override;
  Support verify() override;
  std::int64_t bytes() const override;

 private:
  NestData(loop::Computation computation, std::shared_ptr<const loop::Jit> jit)
      : computation_(std::move(computation)), jit_(std::move(jit)) {}

  loop::Computation computation_;
  std::shared_ptr<const loop::Jit> jit_;
  std::vector<AlignedBuffer> inputs_;
  loop::Inputs views_;
  AlignedBuffer output_;
  std::vector<double> expected_;  // once it was asked for
};

}  // namespace foretune
