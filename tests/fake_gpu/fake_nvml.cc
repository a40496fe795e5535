// The NVML of the fake device; see fake_gpu.h.
#include <string_view>

#include "foretune/cuda/driver_api.h"
#include "tests/fake_gpu/fake_abi.h"
#include "tests/fake_gpu/fake_state.h"

namespace foretune::fake_gpu {
namespace {

using cuda::NvmlDevice;

// nvmlReturn_t.
constexpr int kSuccess = 0;
constexpr int kUninitialized = 1;
constexpr int kInvalid = 2;
constexpr int kAbsent = 6;
constexpr int kDriverNotLoaded = 9;

constexpr unsigned kSmMhz = 1980;
constexpr unsigned kThrottledSmMhz = 1200;
constexpr unsigned kMemoryMhz = 3201;
constexpr unsigned long long kThermalSlowdown = 0x20;
constexpr unsigned kMilliwatt = 350'000;
constexpr unsigned long long kMillijouleBefore = 1'000'000;  // taken before the process began

cuda::NvmlDeviceObject only_device;

// Returns kSuccess when a call about the device may go on, otherwise the code of the error.
int ready(NvmlDevice device, const void* to) {
  State& shared = state();
  const std::lock_guard lock(shared.mutex);
  if (shared.nvml_users == 0) {
    return kUninitialized;
  }
  return device == &only_device && to != nullptr ? kSuccess : kInvalid;
}

int clock_of(NvmlDevice device, int kind, unsigned sm_mhz, unsigned* mhz) {
  if (const int code = ready(device, mhz); code != kSuccess) {
    return code;
  }
  if (kind != cuda::kNvmlClockSm && kind != cuda::kNvmlClockMemory) {
    return kInvalid;
  }
  *mhz = kind == cuda::kNvmlClockSm ? sm_mhz : kMemoryMhz;
  return kSuccess;
}

}  // namespace

int nvmlInit_v2() {
  if (faults().no_nvml) {
    return kDriverNotLoaded;
  }
  State& shared = state();
  const std::lock_guard lock(shared.mutex);
  ++shared.nvml_users;
  return kSuccess;
}

int nvmlShutdown() {
  State& shared = state();
  const std::lock_guard lock(shared.mutex);
  if (shared.nvml_users == 0) {
    return kUninitialized;
  }
  --shared.nvml_users;
  return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, NvmlDevice* device) {
  if (const int code = ready(&only_device, device); code != kSuccess) {
    return code;
  }
  if (bus_id == nullptr || std::string_view(bus_id) != kBusId) {
    return kAbsent;
  }
  *device = &only_device;
  return kSuccess;
}

int nvmlDeviceGetClockInfo(NvmlDevice device, int kind, unsigned* mhz) {
  return clock_of(device, kind, faults().throttle ? kThrottledSmMhz : kSmMhz, mhz);
}

int nvmlDeviceGetMaxClockInfo(NvmlDevice device, int kind, unsigned* mhz) {
  return clock_of(device, kind, kSmMhz, mhz);
}

int nvmlDeviceGetPowerUsage(NvmlDevice device, unsigned* milliwatt) {
  const int code = ready(device, milliwatt);
  if (code == kSuccess) {
    *milliwatt = kMilliwatt;
  }
  return code;
}

int nvmlDeviceGetTemperature(NvmlDevice device, int sensor, unsigned* celsius) {
  const int code = sensor == 0 ? ready(device, celsius) : kInvalid;
  if (code == kSuccess) {
    *celsius = 45;
  }
  return code;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(NvmlDevice device, unsigned long long* reasons) {
  const int code = ready(device, reasons);
  if (code == kSuccess) {
    *reasons = faults().throttle ? kThermalSlowdown : 0;
  }
  return code;
}

int nvmlDeviceGetTotalEnergyConsumption(NvmlDevice device, unsigned long long* millijoule) {
  const int code = ready(device, millijoule);
  if (code == kSuccess) {
    State& shared = state();
    const std::lock_guard lock(shared.mutex);
    const double taken = shared.clock_ns * 1e-9 * kMilliwatt;
    *millijoule = kMillijouleBefore + static_cast<unsigned long long>(taken);
  }
  return code;
}

}  // namespace foretune::fake_gpu
