// The device and the version of a library of NVIDIA's, which say whose models may choose for it.
// Thread safety: plain values and free functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/cuda/driver_api.h"
#include "foretune/model/model_file.h"

namespace foretune::dispatch_internal {

struct GpuPlace {
  std::string_view library;  // "cuBLASLt"
  std::string_view prefix;   // of the word of a fingerprint's isa that names the version
  std::string version;       // "13.1"
  std::string isa;           // of the device's fingerprint; empty when the device is unknown

  // "sm_90 with cuBLASLt 13.1".
  [[nodiscard]] std::string text() const;
};

// Returns "13.1" for 130100, as the libraries count.
std::string library_version(std::size_t version);

// Returns the position of the first model of this place: another version has other kernels under
// the same numbers. Without one, says why in `reason`.
std::optional<std::size_t> model_for(const GpuPlace& place, const std::vector<Model>& models,
                                     std::string& reason);

// Returns the devices of the driver; none where it cannot say.
std::vector<int> devices_of(const cuda::DriverApi& driver);

}  // namespace foretune::dispatch_internal
