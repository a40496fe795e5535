// Provides the algorithms of cublasLtMatmul: those that a model ranks, as far as the library's own
// check accepts them for the caller's descriptors, and the answers of its heuristic to fall back
// to. One provider serves one device.
//
// Thread safety: any thread; keeps no state between calls.
#pragma once

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
#include "foretune/dispatch/internal/gpu_place.h"
#include "foretune/dispatch/kernel_provider.h"
#include "foretune/model/model_file.h"

namespace foretune::dispatch_internal {

// The way to run a call.
struct CublasltKernel {
  // None: the library is called without an algorithm, because its heuristic has no answer either.
  std::optional<cublaslt::Algorithm> algorithm;
  std::int32_t rank = 0;  // in the heuristic's answer; 0: not in it
  // True when the library would run it without us, so that nothing else is left after a refusal.
  bool is_librarys = false;
};

// A call as DispatchCall::details.
struct CublasltDetails {
  const MatmulCall* call = nullptr;
  const CallKey* key = nullptr;
  const std::string* unknown = nullptr;  // why there is no problem; null where there is one
};

class CublasltProvider final : public KernelProvider {
 public:
  static constexpr std::int32_t kNoDevice = -1;

  // Makes the provider of a device; with kNoDevice, of all calls on devices that have none. Errors:
  // kIo when the driver does not know the device.
  static Result<std::shared_ptr<CublasltProvider>> create(std::shared_ptr<const cublaslt::Api> api,
                                                          const cuda::DriverApi& driver,
                                                          std::int32_t device);

  // Returns the position of the model for this device and version of the library. Without one, the
  // provider notes the device or the version that does not fit.
  std::optional<std::size_t> choose_model(const std::vector<Model>& models);

  [[nodiscard]] const FamilyInfo& info() const override { return info_; }
  [[nodiscard]] Support supports(const DispatchCall& call) const override;
  [[nodiscard]] Support follows_model(const DispatchCall& call) const override;
  [[nodiscard]] bool trusts_fallbacks() const override { return true; }
  [[nodiscard]] std::unique_ptr<KernelMaker> maker(const DispatchCall& call) const override;

 private:
  CublasltProvider() = default;

  std::shared_ptr<const cublaslt::Api> api_;
  std::int32_t device_ = kNoDevice;
  GpuPlace place_;
  FamilyInfo info_;
  std::string no_model_;  // why no model ranks its calls; empty when one does
};

}  // namespace foretune::dispatch_internal
