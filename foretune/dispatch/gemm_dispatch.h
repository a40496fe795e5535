// The dispatcher for matrix products.
//
//   FORETUNE_TRY(const auto dispatcher, GemmDispatcher::for_this_cpu({}));
//   FORETUNE_TRY(const GemmProblem problem, GemmProblem::create({.m = m, .n = n, .k = k}));
//   FORETUNE_TRY_STATUS(dispatcher->run(problem, {.a = a, .a_stride = k, .b = b, .b_stride = n,
//                                                 .c = c, .c_stride = n}));
//
// Thread safety and cost: as Dispatcher; products of several threads take turns.
#pragma once

#include <memory>
#include <optional>

#include "foretune/base/result.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/families/cpu_gemm/cpu_gemm.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {

struct CpuDispatchOptions {
  int threads = 0;             // 0: all cores that this process may use
  std::optional<Model> model;  // without: the shipped one for this CPU
  DispatchOptions dispatch;
};

class GemmDispatcher {
 public:
  explicit GemmDispatcher(const DispatchOptions& options) : dispatcher_(options) {}
  // Makes a dispatcher with cpu-gemm for this machine. Takes as long as reading a model (about
  // 20 ms); nothing is measured. Errors: kMismatch for a model of another family, kInvalidArgument
  // for more threads than cores.
  static Result<std::unique_ptr<GemmDispatcher>> for_this_cpu(CpuDispatchOptions options);

  Status add(std::shared_ptr<const CpuGemm> family, std::optional<Model> model);

  // Computes the product of the operands. The problem's operation has to say whether there is a
  // bias, but only for the choice of the kernel; the operands decide the computation. Errors:
  // kUnsupported when nothing runs it, kInvalidArgument when the operands are of another type.
  Status run(const GemmProblem& problem, const GemmOperands& operands) {
    return run_any(problem, operands);
  }
  Status run(const GemmProblem& problem, const Bf16GemmOperands& operands) {
    return run_any(problem, operands);
  }
  Status run(const GemmProblem& problem, const I8GemmOperands& operands) {
    return run_any(problem, operands);
  }

  // Returns the best known kernel, for callers that keep it; its calls are not timed.
  Result<std::shared_ptr<const CpuGemmKernel>> kernel(const GemmProblem& problem);

  // Gives access to decisions and measured choices.
  Dispatcher& dispatcher() { return dispatcher_; }

 private:
  template <class Operands>
  Status run_any(const GemmProblem& problem, const Operands& operands);

  Dispatcher dispatcher_;
};

}  // namespace foretune
