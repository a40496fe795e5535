// Loop nests as machine code for AVX2 and AVX-512, in some ten microseconds.
//
//   Jit jit(VectorUnit::of(best_cpu_isa()));
//   FORETUNE_TRY(const Kernel kernel, jit.compile(computation, nest));
//   FORETUNE_TRY(Kernel::Workspace workspace, kernel.make_workspace(1));
//   kernel.run(inputs, output, workspace);
//
// No page of memory is writable and executable at once: code is written through one mapping and
// run through another. Results are sums in f32, in the order of the schedule.
//
// Thread safety: a Jit may compile on several threads at once; a Kernel may run on several threads
// at once, each with a workspace of its own. Kernels keep alive the parts of their Jit that they
// need. Forked children share code: a child compiles into memory of its own, and may run kernels
// that were compiled before the fork for as long as its parent keeps them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/base/thread_pool.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/loop/computation.h"
#include "foretune/loop/lowering.h"
#include "foretune/loop/nest.h"

namespace foretune::loop {

class Kernel {
 public:
  // Buffers for packed and padded inputs.
  struct Workspace {
    std::vector<AlignedBuffer> packs;   // one per thread
    std::vector<AlignedBuffer> padded;  // of each tensor; empty where it has no padding
  };

  ~Kernel();
  Kernel(Kernel&&) noexcept;
  Kernel& operator=(Kernel&&) noexcept;

  // Errors: kUnsupported when there is no memory for it.
  [[nodiscard]] Result<Workspace> make_workspace(std::size_t threads) const;
  // `inputs` has one span per input tensor, with tensor.elements() floats each; `output` has as
  // many floats as the output tensor. With a pool, its threads share the rounds of a parallel loop,
  // as far as the workspace has buffers for them.
  void run(std::span<const std::span<const float>> inputs, std::span<float> output,
           Workspace& workspace, ThreadPool* pool = nullptr) const;

  [[nodiscard]] std::size_t code_bytes() const;
  [[nodiscard]] const void* code() const;
  [[nodiscard]] const Lowered& plan() const;

 private:
  friend class Jit;
  Kernel();
  struct State;
  std::unique_ptr<State> state_;
};

class Jit {
 public:
  explicit Jit(const VectorUnit& unit);
  ~Jit();
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;

  [[nodiscard]] const VectorUnit& unit() const { return unit_; }
  // Errors: kUnsupported with the reason (see lower()), or when the code would get too large;
  // kInvalidArgument for an invalid nest.
  [[nodiscard]] Result<Kernel> compile(const Computation& computation, const Nest& nest) const;

  struct Memory;

 private:
  [[nodiscard]] std::shared_ptr<Memory> memory() const;

  VectorUnit unit_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune::loop
