// The dispatcher for convolutions.
//
//   FORETUNE_TRY(const auto dispatcher, ConvDispatcher::for_this_cpu({}));
//   FORETUNE_TRY(const ConvProblem problem, ConvProblem::create({.c = 64, .k = 64, ...}));
//   FORETUNE_TRY_STATUS(dispatcher->run(problem, {.input = x, .weights = w, .result = y}));
//
// Weights that stay the same are packed once, into a layer:
//
//   FORETUNE_TRY(const auto layer, dispatcher->layer(problem));
//   FORETUNE_TRY_STATUS(layer->pack(w));
//   FORETUNE_TRY_STATUS(layer->run({.input = x, .result = y}));
//
// The shipped model is for f32, channels last, AVX-512 and one thread. Elsewhere the family's
// textbook config runs; with `measure_top` trials compare it with configs close to it. A model that
// `foretune train` made of the family's measurements, or measured choices, know better ones.
//
// Thread safety and cost: as Dispatcher; convolutions of several threads take turns.
#pragma once

#include <memory>
#include <optional>

#include "foretune/base/result.h"
#include "foretune/dispatch/conv_layer.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/dispatch/gemm_dispatch.h"
#include "foretune/families/cpu_conv/cpu_conv.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {

class ConvDispatcher {
 public:
  explicit ConvDispatcher(const DispatchOptions& options)
      : trials_(options.measure_top), dispatcher_(options) {}
  // Makes a dispatcher with cpu-conv for this machine. Errors: kMismatch for a model of another
  // family, kInvalidArgument for more threads than cores.
  static Result<std::unique_ptr<ConvDispatcher>> for_this_cpu(CpuDispatchOptions options);

  Status add(std::shared_ptr<const CpuConv> family, std::optional<Model> model);

  // Computes the convolution; weights are packed in every call. Errors: kUnsupported when nothing
  // runs it, kInvalidArgument when a tensor is missing.
  Status run(const ConvProblem& problem, const CpuConvOperands& operands);

  // Decides the problem and returns it as a layer, which must not outlive this. Errors:
  // kUnsupported when nothing runs it.
  Result<std::unique_ptr<ConvLayer>> layer(const ConvProblem& problem);

  // Gives access to decisions and measured choices.
  Dispatcher& dispatcher() { return dispatcher_; }

 private:
  int trials_;
  Dispatcher dispatcher_;
};

}  // namespace foretune
