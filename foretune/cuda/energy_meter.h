// Reads the energy that a GPU consumes, in joules, as NVML counts it. The count covers the whole
// board with its memory, also while it idles, and the work of other processes. Volta and newer
// devices have one.
//
//   FORETUNE_TRY(const auto meter, EnergyMeter::open(libraries.nvml, device->bus_id()));
//   FORETUNE_TRY(const double before_j, meter->read_j());
//   run();
//   device->synchronize();
//   FORETUNE_TRY(const double after_j, meter->read_j());
//
// Resolution: the count is in millijoules, but rarely updated. NVIDIA does not document how often;
// an H100 (driver 580) updated it every 100 ms, other devices reportedly every 20 ms. Both ends of
// an interval are uncertain by that much: measure over at least a second, from one update to
// another (foretune/measure/energy.h).
//
// Thread safety: several threads may call read_j(). Cost: a reading took 3 ms on that H100, with
// some of 20 ms.
#pragma once

#include <memory>
#include <string>

#include "foretune/base/result.h"
#include "foretune/cuda/driver_api.h"

namespace foretune::cuda {

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

  // Returns the joules since open(). Errors: kIo, kUnsupported when the device says so now;
  // kCorrupt for a count below the first one, as after the driver was loaded again.
  [[nodiscard]] Result<double> read_j() const;

 private:
  explicit EnergyMeter(std::shared_ptr<const NvmlApi> api);
  [[nodiscard]] Result<unsigned long long> read_millijoule() const;

  std::shared_ptr<const NvmlApi> api_;
  std::string bus_id_;
  NvmlDevice device_ = nullptr;
  unsigned long long first_millijoule_ = 0;
};

}  // namespace foretune::cuda
