// Provides cuDNN's kernels for convolutions: those that a model ranks, as far as the library
// accepts them, and the first answer of its heuristic A to fall back to. One provider serves one
// direction on one device, because engines have other numbers in another direction, and models may
// know one only.
//
// Thread safety: any thread; makers of one provider wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cuda/cudnn_api.h"
#include "foretune/cuda/driver_api.h"
#include "foretune/cudnn/convolution.h"
#include "foretune/dispatch/internal/gpu_place.h"
#include "foretune/dispatch/kernel_provider.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::dispatch_internal {

// The way to run a convolution.
struct CudnnKernel {
  std::shared_ptr<const cudnn::Api> api;
  cudnn::Plan plan;
  CudnnConfig asked;        // what it was made from
  std::string config_text;  // the engine and its knobs, with the rank that led there
  // True when the library would run it without us, so that nothing else is left after a refusal.
  bool is_librarys = false;
  // The library does not promise that several threads may execute one plan at once.
  mutable std::mutex mutex;
};

// A call as DispatchCall::details.
struct CudnnDetails {
  const ConvProblem* problem = nullptr;
  cudnn::ConvolutionOptions options;
  std::int32_t device = 0;
  std::shared_ptr<const CudnnKernel>
      librarys;  // the library's own choice, where it is made already
};

// The weight of a rank's score beside that of the engine behind it (LibraryAnswer::weight), chosen
// on the folds of the training networks; 0 for a rank that is no answer to rank.
double answer_weight(CudnnHeuristic heuristic);

// The library's handle on a device with which plans are made. It is our own and outlives those of
// callers; the providers of a device share it and take turns.
class PlanLibrary {
 public:
  explicit PlanLibrary(std::shared_ptr<const cudnn::Api> api) : api_(std::move(api)) {}

  // A turn with the library, which the first one opens: the device's context has to be current.
  struct Turn {
    std::unique_lock<std::mutex> lock;
    Result<std::shared_ptr<const cudnn::Library>> library;
  };
  Turn take();

 private:
  std::shared_ptr<const cudnn::Api> api_;
  std::mutex mutex_;
  std::shared_ptr<const cudnn::Library> library_;
};

class CudnnProvider final : public KernelProvider {
 public:
  // Errors: kIo when the driver does not know the device.
  static Result<std::shared_ptr<CudnnProvider>> create(const cudnn::Api& api,
                                                       const cuda::DriverApi& driver,
                                                       std::int32_t device, ConvOperation operation,
                                                       std::shared_ptr<PlanLibrary> library);

  // Returns the position of the model for this direction, device and version of the library.
  // Without one, the provider notes the device or the version that does not fit.
  std::optional<std::size_t> choose_model(const std::vector<Model>& models);

  [[nodiscard]] const FamilyInfo& info() const override { return info_; }
  [[nodiscard]] Support supports(const DispatchCall& call) const override;
  [[nodiscard]] Support follows_model(const DispatchCall& call) const override;
  [[nodiscard]] bool trusts_fallbacks() const override { return true; }
  // The context of the device has to be current.
  [[nodiscard]] std::unique_ptr<KernelMaker> maker(const DispatchCall& call) const override;

 private:
  CudnnProvider() = default;

  std::int32_t device_ = 0;
  ConvOperation operation_ = ConvOperation::kForward;
  std::shared_ptr<PlanLibrary> library_;
  GpuPlace place_;
  FamilyInfo info_;
  std::string no_model_;  // why no model ranks its calls; empty when one does
};

// Returns the engine and the knobs that have values: "engine=62 tile_size=12".
std::string short_text(const CudnnConfig& config);

}  // namespace foretune::dispatch_internal
