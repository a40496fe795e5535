#include "foretune/cuda/measuring/device_session.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "foretune/base/text.h"

namespace foretune::cuda {
namespace {

// A system with an NVIDIA driver has this node.
constexpr std::string_view kDriverNode = "/dev/nvidiactl";

}  // namespace

Result<std::int64_t> parse_option_number(std::string_view name, std::string_view value,
                                         std::int64_t low, std::int64_t high) {
  const auto number = parse_int(value);
  if (!number || *number < low || *number > high) {
    return fail(ErrorCode::kInvalidArgument, name, " is a number from ", low, " to ", high,
                ", not ", quoted(value));
  }
  return *number;
}

Result<bool> DeviceOptions::take(std::string_view name, const std::string& value) {
  if (name == "device") {
    FORETUNE_TRY(const std::int64_t number, parse_option_number(name, value, 0, 1023));
    device = static_cast<int>(number);
  } else if (name == "workspace_mb") {
    FORETUNE_TRY(workspace_mb, parse_option_number(name, value, 0, 65536));
  } else if (name == "clock_log") {
    clock_log = value;
  } else if (name == "driver") {
    libraries.driver = value;
    system_libraries = false;
  } else if (name == "nvml") {
    libraries.nvml = value;
  } else {
    return false;
  }
  return true;
}

Support DeviceOptions::available() const {
  std::error_code error;
  if (system_libraries && !std::filesystem::exists(kDriverNode, error)) {
    return Support::no("there is no NVIDIA GPU here (no ", kDriverNode, ")");
  }
  return Support::yes();
}

Status DeviceSession::open_device(const DeviceOptions& options) {
  FORETUNE_TRY(device, Device::open(options.libraries, options.device));
  auto started = ClockMonitor::start(options.libraries.nvml, device->bus_id(), options.clock_log);
  if (started) {
    monitor = *std::move(started);
  } else if (!options.clock_log.empty()) {
    return fail_because(started.error(), "clock_log");
  }
  if (auto meter = EnergyMeter::open(options.libraries.nvml, device->bus_id())) {
    energy = *std::move(meter);
  }
  fingerprint = device->fingerprint();
  workspace_bytes = static_cast<std::size_t>(options.workspace_mb) << 20U;
  return {};
}

std::optional<DeviceConditions> DeviceSession::conditions() const {
  return DeviceConditions{.is_throttled = monitor != nullptr && monitor->take().was_throttled};
}

Result<double> DeviceSession::read_energy_j() const {
  if (energy == nullptr) {
    return fail(ErrorCode::kUnsupported, "NVML does not count the energy of this GPU");
  }
  return energy->read_j();
}

Support fits_memory(double operand_bytes, double element_bytes, double memory_bytes) {
  const double bytes = operand_bytes + 4.0 * operand_bytes / element_bytes;
  if (memory_bytes > 0 && bytes > 0.8 * memory_bytes) {
    return Support::no("the operands and their reference take ", fixed(bytes / 1e9, 1),
                       " GB of the ", fixed(memory_bytes / 1e9, 1), " GB of memory");
  }
  return Support::yes();
}

}  // namespace foretune::cuda
