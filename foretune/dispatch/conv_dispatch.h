// The dispatcher for convolutions.
//
//   FORETUNE_TRY(const auto dispatcher, ConvDispatcher::for_this_cpu({.dispatch = {.measure_top =
//   6}})); FORETUNE_TRY(const ConvProblem problem, ConvProblem::create({.c = 64, .k = 64, ...}));
//   FORETUNE_TRY_STATUS(dispatcher->run(problem, {.input = x, .weights = w, .result = y}));
//
// There is no shipped model: without one the family's textbook config runs, and trials measure only
// that. Give a model that `foretune train` made of the family's measurements.
//
// Thread safety and cost: as Dispatcher; convolutions of several threads take turns.
#pragma once

#include <memory>
#include <optional>

#include "foretune/base/result.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/dispatch/gemm_dispatch.h"
#include "foretune/families/cpu_conv/cpu_conv.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {

class ConvDispatcher {
 public:
  explicit ConvDispatcher(const DispatchOptions& options) : dispatcher_(options) {}
  // Makes a dispatcher with cpu-conv for this machine. Errors: kMismatch for a model of another
  // family, kInvalidArgument for more threads than cores.
  static Result<std::unique_ptr<ConvDispatcher>> for_this_cpu(CpuDispatchOptions options);

  Status add(std::shared_ptr<const CpuConv> family, std::optional<Model> model);

  // Computes the convolution; weights are packed in every call. Errors: kUnsupported when nothing
  // runs it, kInvalidArgument when a tensor is missing.
  Status run(const ConvProblem& problem, const CpuConvOperands& operands);

  // Gives access to decisions and measured choices.
  Dispatcher& dispatcher() { return dispatcher_; }

 private:
  Dispatcher dispatcher_;
};

}  // namespace foretune
