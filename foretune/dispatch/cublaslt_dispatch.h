// cublasLtMatmul with an algorithm of a model's choice instead of the library's heuristic's.
//
//   FORETUNE_TRY(const auto dispatcher, CublasltDispatcher::open({}));
//   const int status = dispatcher->matmul({.handle = handle, .descriptor = descriptor, ...});
//
// An algorithm is decided on once for all calls that look alike: same problem, leading dimensions,
// strides, epilogue, types, workspace, alignment and device. The model's ranking is followed until
// the library's own check (cublasLtMatmulAlgoCheck) accepts a config for the caller's descriptors.
// Where the model abstains, was made for another device or another version of the library, or does
// not know what is asked for, the first of the library's heuristic runs, as without us. So does
// it from then on where an algorithm turns out to be refused when it is run. Results are those of
// the library in every case; sums of parts of k are never made in place.
//
// Nothing of CUDA is linked: the libraries that the process has loaded are used, else loaded.
//
// Thread safety: any number of threads. Cost: a call like an earlier one takes no lock and does not
// allocate; it costs the library's own call and about 25 questions to it about the descriptors
// (0.2 to 0.5 us). The first of its kind takes up to a millisecond.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dispatch/cublaslt_call.h"
#include "foretune/dispatch/cublaslt_chooser.h"
#include "foretune/models/infer/model_file.h"

namespace foretune {

// With it what runs loses to the heuristic's first by more than 2 % on 1.8 % of the development
// set's products, 3.4 % of the layers of networks that are new to the model (docs/benchmarks.md).
inline constexpr double kDefaultCublasltMargin = 0.06;

struct CublasltDispatchOptions {
  std::optional<Model> model;  // without: the shipped one for the device and library, if any
  // The first that is loaded already or can be. By default of 13 and 12.
  std::vector<std::string> cublaslt;
  std::string driver = "libcuda.so.1";
  // What a pick has to gain, as predicted (ln time), over the heuristic's first; 0: nothing.
  double margin = kDefaultCublasltMargin;
  // Asks the model's fast mode first: picks of its portfolio, in a microsecond. It knows no margin.
  bool fast = false;
  // Kinds of calls that are remembered; others go to the library without an algorithm.
  std::size_t max_problems = std::size_t{1} << 17U;
};

// What runs calls like one, and why.
struct CublasltDecision {
  CublasltSource source = CublasltSource::kHeuristic;
  std::string config_text;  // the algorithm's words; empty when the library is left alone
  int rank = 0;             // in the heuristic's answer, 0 when it is not of it
  std::string reason;       // why not the model's first; may be empty
  // One line of all.
  [[nodiscard]] std::string text() const;
};

class CublasltDispatcher {
 public:
  // Errors: kUnsupported where a library cannot be loaded, kMismatch for a model of something else.
  static Result<std::unique_ptr<CublasltDispatcher>> open(CublasltDispatchOptions options);
  ~CublasltDispatcher();
  CublasltDispatcher(const CublasltDispatcher&) = delete;
  CublasltDispatcher& operator=(const CublasltDispatcher&) = delete;

  // Returns the library's status: 0, or for example 7 for wrong arguments. With an algorithm the
  // call is passed on as it is.
  int matmul(const MatmulCall& call) noexcept;

  // What matmul() does with calls of these descriptors. Of the operands only the alignment is
  // looked at; they may be missing, and so may the workspace: its size counts. Decides if need be.
  // Errors: kInvalidArgument when descriptors are missing or the library does not know them.
  Result<CublasltDecision> decision(const MatmulCall& call);

 private:
  CublasltDispatcher();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune
