#include "foretune/cuda/device_facts.h"

#include <array>
#include <string>

#include "foretune/base/text.h"
#include "foretune/hardware/hardware.h"

namespace foretune::cuda {

Result<Fingerprint> read_device_facts(const DriverApi& api, int device) {
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    return api.device_attribute(&value, which, device) == kDriverSuccess ? value : 0;
  };
  std::array<char, 256> text{};
  FORETUNE_TRY_STATUS(api.check(
      api.device_name(text.data(), static_cast<int>(text.size()) - 1, device), "cuDeviceGetName"));
  const std::string name = text.data();
  Fingerprint fingerprint;
  // The profile of a known device has the facts that the driver does not report (peaks of matrix
  // units).
  if (const Result<Fingerprint> known = known_device(name)) {
    fingerprint = *known;
  }
  fingerprint.device = name;
  fingerprint.isa = concat("sm_", attribute(DeviceAttribute::kCapabilityMajor),
                           attribute(DeviceAttribute::kCapabilityMinor));
  int version = 0;
  FORETUNE_TRY_STATUS(api.check(api.driver_version(&version), "cuDriverGetVersion"));
  fingerprint.system = concat("CUDA driver ", version / 1000, ".", version % 1000 / 10);
  Hardware& hardware = fingerprint.hardware;
  const auto known = [&hardware](HardwareValue value, double number) {
    if (hardware.get(value) <= 0 && number > 0) {
      hardware.set(value, number);
    }
  };
  std::size_t memory = 0;
  FORETUNE_TRY_STATUS(api.check(api.device_total_memory(&memory, device), "cuDeviceTotalMem"));
  known(HardwareValue::kCores, attribute(DeviceAttribute::kMultiprocessors));
  known(HardwareValue::kL1Bytes, attribute(DeviceAttribute::kSharedBytesPerMultiprocessor));
  known(HardwareValue::kSharedBytesPerBlock, attribute(DeviceAttribute::kSharedBytesPerBlockOptin));
  known(HardwareValue::kL2Bytes, attribute(DeviceAttribute::kL2Bytes));
  known(HardwareValue::kMemoryBytes, static_cast<double>(memory));
  known(HardwareValue::kRegisterFileBytes,
        4.0 * attribute(DeviceAttribute::kRegistersPerMultiprocessor));
  known(HardwareValue::kThreadsPerCore, attribute(DeviceAttribute::kThreadsPerMultiprocessor));
  known(HardwareValue::kWarpSize, attribute(DeviceAttribute::kWarpSize));
  known(HardwareValue::kClockMhz, attribute(DeviceAttribute::kClockKhz) / 1e3);
  // Two transfers a clock, eight bits a byte.
  known(HardwareValue::kBandwidthAllGbs, 2.0 * attribute(DeviceAttribute::kMemoryClockKhz) *
                                             attribute(DeviceAttribute::kMemoryBusBits) / 8 / 1e6);
  return fingerprint;
}

}  // namespace foretune::cuda
