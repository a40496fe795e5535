// An open NVIDIA GPU for measurements, and the family options that select it. Sessions of libraries
// derive from it, and their options from DeviceOptions.
//
// Thread safety: plain values; a session belongs to one thread. Cost: opening takes about a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/cuda/clock_monitor.h"
#include "foretune/cuda/device.h"
#include "foretune/cuda/energy_meter.h"
#include "foretune/family/family.h"

namespace foretune::cuda {

struct DeviceOptions {
  int device = 0;
  std::int64_t workspace_mb = 64;
  std::string clock_log;
  Libraries libraries;
  bool system_libraries = true;
  std::string file;  // named by the family's own option

  // Sets an option: device, workspace_mb, clock_log, driver or nvml. Returns false for any other
  // name. Errors: kInvalidArgument for a value that makes no sense.
  Result<bool> take(std::string_view name, const std::string& value);
  // Returns no when the system has no NVIDIA driver and the options name none.
  [[nodiscard]] Support available() const;
};

// Parses the options of a family, which has one option of its own that names a file:
// `file_option`. `Options` derives from DeviceOptions, and kNames lists what its take() knows.
// Errors: kInvalidArgument for an unknown option and for values that make no sense.
template <class Options>
Result<Options> parse_options(const FamilyOptions& given, std::string_view family,
                              std::string_view file_option) {
  Options parsed;
  for (const auto& [name, value] : given.parameters) {
    if (name == file_option) {
      parsed.file = value;
      continue;
    }
    FORETUNE_TRY(const bool is_known, parsed.take(name, value));
    if (!is_known) {
      return fail(ErrorCode::kInvalidArgument, family, " has no option '", name,
                  "'; it has: ", file_option, ", ", Options::kNames);
    }
  }
  return parsed;
}

// Returns DeviceOptions::available(), and yes for options that make no sense: the family's creation
// refuses them.
template <class Options>
Support are_available(const Result<Options>& parsed) {
  return parsed ? parsed->available() : Support::yes();
}

// Parses a number from `low` to `high`. Errors: kInvalidArgument, with the option's name.
Result<std::int64_t> parse_option_number(std::string_view name, std::string_view value,
                                         std::int64_t low, std::int64_t high);

struct DeviceSession {
  std::shared_ptr<Device> device;
  std::unique_ptr<ClockMonitor> monitor;  // none where NVML is missing
  std::unique_ptr<EnergyMeter> energy;    // none where NVML is missing or counts no energy
  // Its isa names the libraries, too: "sm_90 cublaslt-13.1". Another version has other kernels
  // under the same numbers.
  Fingerprint fingerprint;
  std::size_t workspace_bytes = 0;

  // Opens the device, with its own fingerprint. Errors: kUnsupported when there is none, kIo.
  Status open_device(const DeviceOptions& options);
  [[nodiscard]] std::optional<DeviceConditions> conditions() const;
  // Returns the joules of the device, as Family::read_energy_j() does.
  [[nodiscard]] Result<double> read_energy_j() const;
};

// Returns no when operands of so many bytes in all, their f32 copies and the reference do not fit a
// device with `memory_bytes` (0: not known) of memory.
Support fits_memory(double operand_bytes, double element_bytes, double memory_bytes);

}  // namespace foretune::cuda
