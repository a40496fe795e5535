// Runs cublasLtMatmul with an algorithm that a model chose instead of the library's heuristic.
//
//   FORETUNE_TRY(const auto dispatcher, CublasltDispatcher::open({}));
//   const int status = dispatcher->matmul({.handle = handle, .descriptor = descriptor, ...});
//
// This is the front end of a Dispatcher for calls of cublasLtMatmul. It decides once for all calls
// that look alike: same problem, leading dimensions, strides, epilogue, types, workspace, alignment
// and device. It follows the model's ranking until the library's own check
// (cublasLtMatmulAlgoCheck) accepts a config for the caller's descriptors. The first algorithm of
// the library's heuristic runs, as it would without us, where the model abstains, was made for
// another device or another version of the library, or does not know the call. It also runs from
// the moment when the library refuses to run a chosen algorithm. Results are those of the library
// in every case; sums of parts of k are never made in place.
//
// With `dispatch.measure_top` the first calls of a kind are trials, which the device's events time
// on the caller's stream: no call waits. Calls that are captured into a graph are never trials.
//
// No part of CUDA is linked: the dispatcher uses the libraries that the process has loaded, or
// loads them.
//
// Thread safety: any number of threads. Cost: a call like an earlier one takes no lock and does not
// allocate; it costs the library's own call and about 25 queries of the descriptors (0.2 to 0.5
// us). The first call of its kind takes up to a millisecond.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dispatch/cublaslt_call.h"
#include "foretune/dispatch/dispatcher.h"
#include "foretune/model/model_file.h"

namespace foretune {

// Chosen on products left out of training: half of the possible gain is kept. On fresh products the
// chosen algorithm is slower than the heuristic's first by more than 2 % on 3.6 %, with 0.06 on 2.0
// % (docs/benchmarks.md).
inline constexpr double kDefaultCublasltMargin = 0.04;

struct CublasltDispatchOptions {
  std::optional<Model> model;  // without: the shipped one for the device and library, if any
  // Names of the library; the first one is used that is loaded already or can be loaded. Default:
  // versions 13 and 12.
  std::vector<std::string> cublaslt;
  std::string driver = "libcuda.so.1";
  // Beyond `max_problems` kinds of calls, others go to the library without an algorithm. The
  // library's heuristic is the baseline of the margin.
  DispatchOptions dispatch{.margin = kDefaultCublasltMargin, .max_problems = std::size_t{1} << 17U};
};

// The algorithm that runs calls like a given one, and the reason for it.
struct CublasltDecision {
  ChoiceSource source = ChoiceSource::kHeuristic;
  std::string config_text;  // the algorithm's values; empty when the library gets no algorithm
  int rank = 0;             // in the heuristic's answer, 0 when it is not in it
  std::string reason;       // why not the model's first; may be empty
  bool is_settled = true;   // false while trials go on
  double measured_ns = -1;  // of the fastest trial, or remembered; -1: unknown
  // Returns all of this in one line.
  [[nodiscard]] std::string text() const;
};

class CublasltDispatcher {
 public:
  // Errors: kUnsupported where a library cannot be loaded, kMismatch for a model of another
  // family: give one that was trained on data of a family with cuBLASLt's configs.
  static Result<std::unique_ptr<CublasltDispatcher>> open(CublasltDispatchOptions options);
  ~CublasltDispatcher();
  CublasltDispatcher(const CublasltDispatcher&) = delete;
  CublasltDispatcher& operator=(const CublasltDispatcher&) = delete;

  // Returns the library's status: 0, or for example 7 for wrong arguments. Passes a call that
  // brings its own algorithm on unchanged.
  int matmul(const MatmulCall& call) noexcept;

  // Returns what matmul() does with calls that have these descriptors, and decides it if no such
  // call came before. It looks only at the alignment of the operands; they may be missing. So may
  // the workspace, whose size counts. Errors: kInvalidArgument when descriptors are missing or the
  // library does not know them.
  Result<CublasltDecision> decision(const MatmulCall& call);

  // Gives access to measured choices; load them before the first call. Trials whose work has not
  // ended yet are not among them.
  Dispatcher& dispatcher();

 private:
  CublasltDispatcher();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune
