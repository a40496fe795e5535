// Opens a family on this machine's GPU, in this process; shared by the programs about GPUs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bench/bench_json.h"
#include "foretune/dataset/measurement.h"
#include "foretune/family/family.h"
#include "foretune/measure/measure.h"

namespace foretune::bench {

template <class FamilyType>
struct GpuDevice {
  std::shared_ptr<const FamilyType> family;
  std::unique_ptr<Measurer> measurer;
};

// `create`: Result<std::unique_ptr<FamilyType>>(const FamilyOptions&). The family's options come
// from the command line: --cublaslt FILE, --cudnn FILE, --driver FILE, --nvml FILE,
// --clock_log FILE, --deterministic 1,
// --workspace_mb N, --configs FILE, --kernels FILE.
template <class FamilyType, class Create>
Result<GpuDevice<FamilyType>> open_gpu(int argc, char** argv, const Create& create) {
  FamilyOptions options;
  for (const std::string_view name : {"cublaslt", "cudnn", "deterministic", "driver", "nvml",
                                      "clock_log", "workspace_mb", "configs", "kernels"}) {
    std::string value = argument(argc, argv, name);
    if (!value.empty()) {
      options.parameters.emplace_back(name, std::move(value));
    }
  }
  {
    FORETUNE_TRY(const auto unknown, create(options));
    FORETUNE_TRY(options.fingerprint, unknown->read_device());
  }
  GpuDevice<FamilyType> device;
  FORETUNE_TRY(device.family, create(options));
  const Fingerprint& fingerprint = device.family->info().fingerprint;
  Protocol protocol;
  protocol.windows = 3;
  protocol.max_windows = 3;
  device.measurer =
      make_local_measurer(device.family, protocol,
                          Context{.machine = fingerprint.digest(), .device = fingerprint.device});
  return device;
}

}  // namespace foretune::bench
