// Decides which algorithm runs a call of cublasLtMatmul: the best of a model's ranking that the
// library accepts for the caller's own descriptors, else the choice of its heuristic.
//
// Thread safety: any thread; keeps no state between calls. Cost: up to a millisecond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cuda/cublaslt_api.h"
#include "foretune/cuda/driver_api.h"
#include "foretune/dispatch/cublaslt_call.h"
#include "foretune/select/select.h"

namespace foretune {

enum class CublasltSource : std::uint8_t { kModel, kFastModel, kHeuristic };
std::string_view to_string(CublasltSource source);

namespace dispatch_internal {

// How many candidates of the model's ranking are tried.
inline constexpr std::size_t kMaxCublasltCandidates = 8;

// The algorithm that runs a call, and the reason for it.
struct CublasltPlan {
  CublasltSource source = CublasltSource::kHeuristic;
  // None: the library is called without an algorithm, because its heuristic has no answer either.
  std::optional<cublaslt::Algorithm> algorithm;
  std::int32_t rank = 0;  // in the heuristic's answer; 0: not in it
  std::string reason;     // why not the model's pick, or not its first; may be empty
  // False after an error that says nothing about other calls like this one.
  bool may_be_kept = true;
};

class CublasltChooser {
 public:
  struct Options {
    double margin = 0;
    bool fast = false;
  };
  // Errors: kMismatch for a model of another family: give models that were trained on data of a
  // family with cuBLASLt's configs.
  static Result<std::unique_ptr<CublasltChooser>> create(
      std::shared_ptr<const cublaslt::Api> api, std::shared_ptr<const cuda::DriverApi> driver,
      std::vector<Model> models, const Options& options);

  // Returns the device of the calling thread's context, -1 without one.
  [[nodiscard]] std::int32_t current_device() const;
  [[nodiscard]] CublasltPlan choose(const MatmulCall& call, const CallKey& key) const;
  // Returns a plan with the heuristic's first algorithm.
  [[nodiscard]] CublasltPlan heuristic(const MatmulCall& call, const CallKey& key,
                                       std::string reason) const;

 private:
  struct KnownModel {
    std::string device;   // "sm_90"
    std::string version;  // of the library, "13.1"; "" when the model does not say
    std::unique_ptr<Selector> selector;
  };
  class Attempt;

  CublasltChooser() = default;
  // Errors: kUnsupported with the fact (device or library version) that does not fit.
  [[nodiscard]] Result<const Selector*> selector_for(std::int32_t device) const;
  [[nodiscard]] CublasltPlan by_model(const Selector& selector, const Problem& problem,
                                      Attempt& attempt) const;

  std::shared_ptr<const cublaslt::Api> api_;
  std::shared_ptr<const cuda::DriverApi> driver_;
  std::string version_;
  std::vector<KnownModel> models_;
  Options options_;
};

}  // namespace dispatch_internal
}  // namespace foretune
