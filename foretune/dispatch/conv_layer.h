// One convolution of a program, with the kernel that a dispatcher chose for it and, where its
// weights are constant, with its weights as that kernel wants them. ConvDispatcher::layer() makes
// it.
//
// While the dispatcher measures, each kernel on trial gets packed weights of its own, before its
// clock starts; they are freed when the trials end, as is a copy of the plain weights. The decision
// is kept then: choices loaded later are for layers made later.
//
// Thread safety: any number of threads. A run that overlaps a pack() uses either the old weights or
// the new. Cost: a run takes an uncontended lock beside the kernel.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "foretune/base/fork.h"
#include "foretune/base/result.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/families/cpu_conv/cpu_conv.h"
#include "foretune/kernels/aligned_buffer.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/problem.h"

namespace foretune {

class ConvLayer {
 public:
  // The dispatcher runs cpu-conv and outlives the layer. Errors: kUnsupported when nothing runs the
  // problem.
  static Result<std::unique_ptr<ConvLayer>> create(Dispatcher& dispatcher,
                                                   const ConvProblem& problem);

  [[nodiscard]] const ConvProblem& problem() const { return problem_; }

  // Takes weights of the problem's type and shape for all later runs; the caller may free them.
  // Errors: kInvalidArgument for no weights, and for a problem whose weights vary; kUnsupported
  // when memory is short, and the weights of before stay.
  Status pack(const void* weights);

  // Computes the convolution. Operands with weights are run with those, which costs packing them;
  // operands without use the packed ones. Errors: kInvalidArgument when a tensor is missing or the
  // result overlaps another, kUnsupported when there is no memory to work in.
  Status run(const CpuConvOperands& operands);

  // Returns what runs the layer and why. Errors: as create().
  [[nodiscard]] Result<Decision> decision() const { return dispatcher_.decision(asked_); }

 private:
  using Kernel = std::shared_ptr<const CpuConvKernel>;
  struct Packed {
    Kernel kernel;
    AlignedBuffer weights;
    [[nodiscard]] const std::byte* data() const {
      return reinterpret_cast<const std::byte*>(weights.data());
    }
  };
  // The same weights, for all kernels that have run with them.
  struct Weights {
    std::shared_ptr<const AlignedBuffer> plain;  // null once the kernel is final
    std::vector<std::shared_ptr<const Packed>> packed;
  };

  ConvLayer(Dispatcher& dispatcher, const ConvProblem& problem)
      : dispatcher_(dispatcher), problem_(problem), asked_(problem.to_problem()) {}
  static Result<std::shared_ptr<const Packed>> pack_for(const Kernel& kernel, const void* weights);
  Kernel final_kernel();
  void keep(const Kernel& kernel);
  // Returns the layer's weights as the kernel wants them or, when the trials have just ended, as
  // the final one does.
  Result<std::shared_ptr<const Packed>> packed_for(const Kernel& kernel, bool is_final);

  Dispatcher& dispatcher_;
  ConvProblem problem_;
  Problem asked_;
  ForkSafeMutex mutex_;
  // Under the mutex.
  Kernel final_;                      // null while the dispatcher may still change its mind
  std::shared_ptr<Weights> weights_;  // null before pack()
};

}  // namespace foretune
