// Runs convolutions by cuDNN with an engine and knobs that a model chose instead of the library's
// heuristic.
//
//   FORETUNE_TRY(const auto dispatcher, CudnnDispatcher::open({}));
//   FORETUNE_TRY(const auto plan, dispatcher->prepare({.sizes = {...}}));
//   const int status = dispatcher->run(*plan, handle, stream, operands);
//
// This is the front end of a Dispatcher for convolutions on NVIDIA's GPUs. It decides once for all
// convolutions with the same problem, device, workspace and demand for determinism, and follows the
// model's ranking until the library makes a plan of a config. The first answer of the library's
// heuristic A runs, as it would without us, where the model abstains or was made for another device
// or another version of the library, and after a refusal to run. Results are those of the library
// in every case.
//
// The model ranks its pool together with the answers of the heuristics A and B for the convolution.
// With `dispatch.measure_top` the first runs of a plan are trials, which the device's events time
// on the caller's stream: no call waits. The heuristic's first answer takes part; where the model
// abstains, the answers after it do. Work of less than a millisecond is timed as part of up to 50
// runs in a graph, and one call tries all engines: six calls settle a convolution, and cost up to
// 0.4 ms of the device for an engine and call. Longer work is timed once a call. Runs that are
// captured into a graph are never trials, nor are deterministic calls, whose results must not
// change with the engine.
//
// No part of CUDA is linked: the dispatcher uses the libraries that the process has loaded, or
// loads them. The context of the device has to be current wherever a plan is made or run. Where one
// is current when the dispatcher is opened, the library's handles for it are made then, which
// cannot be done while a stream captures.
//
// Thread safety: any number of threads; those that run one plan at once take turns. Cost: a known
// convolution takes a look-up under a shared lock; a new one the ranking, some calls of the library
// and the making of a plan, up to milliseconds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/fork.h"
#include "foretune/base/result.h"
#include "foretune/cuda/driver_api.h"
#include "foretune/cudnn/convolution.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/conv/conv.h"

namespace foretune {

struct CudnnDispatchOptions {
  // For each direction the first model that was trained on it, for the device and the version of
  // the library. Without: the shipped ones, if there are any, else the heuristic chooses.
  std::vector<Model> models;
  // Names of the library; the first one is used that is loaded already or can be loaded. Default:
  // version 9.
  std::vector<std::string> cudnn;
  std::string driver = "libcuda.so.1";
  // Up to two engines of a convolution may be such that compile their kernel when the plan is made,
  // for up to a second each.
  bool compiles = false;
  // The share of the time that trials may take, with the making of their engines: above 0. Below 1
  // the heuristic's first answer runs until the trials of a convolution have their turn.
  double trial_share = 1;
  // The heuristic's first answer is the baseline of the margin.
  DispatchOptions dispatch;
};

struct CudnnCall {
  ConvSizes sizes;
  std::size_t workspace_bytes = std::size_t{1} << 30U;  // that a plan may need
  bool deterministic = false;  // refuses engines whose results may differ from run to run
  bool operator==(const CudnnCall&) const = default;
};

// The way to run a convolution, and the reason for it. While trials go on, these are of the best so
// far, except for the workspace.
class CudnnPlan {
 public:
  // Returns what the next run may need: while trials go on, the most of all configs on trial.
  [[nodiscard]] std::size_t workspace_bytes() const;
  [[nodiscard]] std::int32_t engine() const;
  [[nodiscard]] bool is_deterministic() const;
  [[nodiscard]] ChoiceSource source() const;
  // Returns false until trials are over.
  [[nodiscard]] bool is_settled() const {
    return settled_.load(std::memory_order_acquire) != nullptr;
  }
  // Returns the choice in one line: "model: engine=62 tile_size=12", "heuristic: rank 1 of a:
  // engine=5; The problem lies outside of ...".
  [[nodiscard]] std::string text() const;

 private:
  friend class CudnnDispatcher;
  // Returns the kernel that runs now, a CudnnKernel.
  [[nodiscard]] std::shared_ptr<const void> kernel() const;

  CudnnCall call_;
  std::int32_t device_ = 0;
  mutable std::atomic<const void*> settled_{nullptr};          // the kernel, once trials are over
  mutable std::atomic<bool> is_open_{false};                   // counted in State::open
  mutable std::atomic<bool> is_postponed_{false};              // no engine on trial is made yet
  mutable ForkSafeMutex mutex_;                                // of the members below, until then
  mutable std::shared_ptr<const void> kernel_;                 // the best so far
  mutable std::vector<std::shared_ptr<const void>> captured_;  // others that graphs may hold
  mutable std::size_t workspace_bytes_ = 0;
  mutable ChoiceSource source_ = ChoiceSource::kHeuristic;
  mutable std::string note_;
};

class CudnnDispatcher {
 public:
  // Errors: kUnsupported where a library cannot be loaded, kMismatch for a model of another
  // family: give one that was trained on data of the family cudnn.
  static Result<std::unique_ptr<CudnnDispatcher>> open(CudnnDispatchOptions options);
  ~CudnnDispatcher();
  CudnnDispatcher(const CudnnDispatcher&) = delete;
  CudnnDispatcher& operator=(const CudnnDispatcher&) = delete;

  // Returns the plan of a convolution on the device of the current context. It may be run after the
  // dispatcher has forgotten it. Errors: kInvalidArgument for sizes that make no convolution,
  // kUnsupported for one that the library does not run.
  Result<std::shared_ptr<const CudnnPlan>> prepare(const CudnnCall& call);

  // Enqueues a plan on the stream of the handle; without a handle, on `stream` with one of our own.
  // Operands lie at multiples of 16 bytes. Returns the library's status: 0, or for example 3000 for
  // a refusal, 2000 for too small a workspace. A trial that needs more than `workspace_bytes` is
  // given up.
  int run(const CudnnPlan& plan, cudnn::Handle handle, cuda::Stream stream,
          const cudnn::ConvOperands& operands, std::size_t workspace_bytes) noexcept;

  // Prepares and runs. After a refusal to run, another plan is chosen for this convolution if it
  // needs no more than the call's workspace.
  int convolve(const CudnnCall& call, cudnn::Handle handle,
               const cudnn::ConvOperands& operands) noexcept;

  // Gives access to measured choices; load them before the first call. Trials whose work has not
  // ended yet are not among them.
  Dispatcher& dispatcher();

 private:
  CudnnDispatcher();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune
