// The energy that a GPU takes, in joules, as NVML counts it: the whole board with its memory, also
// while it idles, and whatever other processes run there. Volta and newer devices count it.
//
//   FORETUNE_TRY(const auto meter, EnergyMeter::open(libraries.nvml, device->bus_id()));
//   FORETUNE_TRY(const double before_j, meter->read_j());
//   run();
//   device->synchronize();
//   FORETUNE_TRY(const double after_j, meter->read_j());
//
// Resolution: the count is in millijoules, but rarely updated. NVIDIA does not say how often; an
// H100 (driver 580) did so every 100 ms, others are said to every 20 ms. The two ends of an
// interval are uncertain by that much: measure over a second and more, from one update to another
// (foretune/measure/energy.h).
//
// Thread safety: several threads may call read_j(). Cost: a reading took 3 ms on that H100, with
// some of 20 ms.
#pragma once

#include <memory>
#include <string>

#include "foretune/base/result.h"
#include "foretune/gpu/driver_api.h"

namespace foretune::gpu {

class EnergyMeter {
 public:
  // `library`: NVML's file. `bus_id`: Device::bus_id(). Errors: kUnsupported without NVML or such a
  // GPU, and where the driver or the device counts no energy; kIo.
  static Result<std::unique_ptr<EnergyMeter>> open(const std::string& library,
                                                   const std::string& bus_id);
  static Result<std::unique_ptr<EnergyMeter>> open(std::shared_ptr<const NvmlApi> api,
                                                   const std::string& bus_id);
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  // Joules since open(). Errors: kIo, kUnsupported when the device says so now; kCorrupt for a
  // count below the first one, which a driver that was loaded again leaves.
  [[nodiscard]] Result<double> read_j() const;

 private:
  explicit EnergyMeter(std::shared_ptr<const NvmlApi> api);
  [[nodiscard]] Result<unsigned long long> read_millijoule() const;

  std::shared_ptr<const NvmlApi> api_;
  std::string bus_id_;
  NvmlDevice device_ = nullptr;
  unsigned long long first_millijoule_ = 0;
};

}  // namespace foretune::gpu
