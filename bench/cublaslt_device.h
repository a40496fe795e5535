// What the programs about cuBLASLt share: the family on the device that is here, in this process.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bench/bench_json.h"
#include "foretune/dataset/measurement.h"
#include "foretune/families/cublaslt/cublaslt.h"
#include "foretune/measure/measure.h"

namespace foretune::bench {

struct CublasltDevice {
  std::shared_ptr<const CublasltFamily> family;
  std::unique_ptr<Measurer> measurer;
};

// The family's options are those of the command line that have their names: --cublaslt FILE,
// --driver FILE, --nvml FILE, --clock_log FILE, --workspace_mb N, --configs FILE.
inline Result<CublasltDevice> open_cublaslt(int argc, char** argv) {
  FamilyOptions options;
  for (const std::string_view name :
       {"cublaslt", "driver", "nvml", "clock_log", "workspace_mb", "configs"}) {
    std::string value = argument(argc, argv, name);
    if (!value.empty()) {
      options.parameters.emplace_back(name, std::move(value));
    }
  }
  {
    FORETUNE_TRY(const auto unknown, create_cublaslt(options));
    FORETUNE_TRY(options.fingerprint, unknown->read_device());
  }
  CublasltDevice device;
  FORETUNE_TRY(device.family, create_cublaslt(options));
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
