// The NVML of the fake device; see fake_gpu.h.
#include <string_view>

#include "foretune/cuda/driver_api.h"
#include "tests/fake_gpu/fake_state.h"

namespace {

using foretune::cuda::NvmlApi;
using foretune::cuda::NvmlDevice;
using foretune::fake_gpu::EntryOf;
using foretune::fake_gpu::faults;

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

foretune::cuda::NvmlDeviceObject only_device;

// Returns kSuccess when a call about the device may go on, otherwise the code of the error.
int ready(NvmlDevice device, const void* to) {
  foretune::fake_gpu::State& state = foretune::fake_gpu::state();
  const std::lock_guard lock(state.mutex);
  if (state.nvml_users == 0) {
    return kUninitialized;
  }
  return device == &only_device && to != nullptr ? kSuccess : kInvalid;
}

int clock_of(NvmlDevice device, int kind, unsigned sm_mhz, unsigned* mhz) {
  if (const int code = ready(device, mhz); code != kSuccess) {
    return code;
  }
  if (kind != foretune::cuda::kNvmlClockSm && kind != foretune::cuda::kNvmlClockMemory) {
    return kInvalid;
  }
  *mhz = kind == foretune::cuda::kNvmlClockSm ? sm_mhz : kMemoryMhz;
  return kSuccess;
}

}  // namespace

// Names of NVML's ABI. Each is declared with the type by which the table calls it.
// NOLINTBEGIN(readability-identifier-naming)
#pragma GCC visibility push(default)
extern "C" {

EntryOf<decltype(NvmlApi::init)> nvmlInit_v2;
EntryOf<decltype(NvmlApi::shutdown)> nvmlShutdown;
EntryOf<decltype(NvmlApi::device_by_bus_id)> nvmlDeviceGetHandleByPciBusId_v2;
EntryOf<decltype(NvmlApi::clock_mhz)> nvmlDeviceGetClockInfo;
EntryOf<decltype(NvmlApi::max_clock_mhz)> nvmlDeviceGetMaxClockInfo;
EntryOf<decltype(NvmlApi::power_milliwatt)> nvmlDeviceGetPowerUsage;
EntryOf<decltype(NvmlApi::temperature)> nvmlDeviceGetTemperature;
EntryOf<decltype(NvmlApi::throttle_reasons)> nvmlDeviceGetCurrentClocksThrottleReasons;
EntryOf<decltype(NvmlApi::total_energy_millijoule)> nvmlDeviceGetTotalEnergyConsumption;

int nvmlInit_v2() {
  if (faults().no_nvml) {
    return kDriverNotLoaded;
  }
  foretune::fake_gpu::State& state = foretune::fake_gpu::state();
  const std::lock_guard lock(state.mutex);
  ++state.nvml_users;
  return kSuccess;
}

int nvmlShutdown() {
  foretune::fake_gpu::State& state = foretune::fake_gpu::state();
  const std::lock_guard lock(state.mutex);
  if (state.nvml_users == 0) {
    return kUninitialized;
  }
  --state.nvml_users;
  return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, NvmlDevice* device) {
  if (const int code = ready(&only_device, device); code != kSuccess) {
    return code;
  }
  if (bus_id == nullptr || std::string_view(bus_id) != foretune::fake_gpu::kBusId) {
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
    foretune::fake_gpu::State& state = foretune::fake_gpu::state();
    const std::lock_guard lock(state.mutex);
    const double taken = state.clock_ns * 1e-9 * kMilliwatt;
    *millijoule = kMillijouleBefore + static_cast<unsigned long long>(taken);
  }
  return code;
}

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)
