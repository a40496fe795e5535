#include "foretune/cublaslt/session.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "foretune/base/text.h"

namespace foretune::cublaslt {
namespace {

// A system with an NVIDIA driver has this node.
constexpr std::string_view kDriverNode = "/dev/nvidiactl";

Result<std::int64_t> parse_number(std::string_view name, std::string_view value, std::int64_t low,
                                  std::int64_t high) {
  const auto number = parse_int(value);
  if (!number || *number < low || *number > high) {
    return fail(ErrorCode::kInvalidArgument, name, " is a number from ", low, " to ", high,
                ", not ", quoted(value));
  }
  return *number;
}

}  // namespace

Result<SessionOptions> SessionOptions::parse(const FamilyOptions& options, std::string_view family,
                                             std::string_view file_option) {
  SessionOptions parsed;
  for (const auto& [name, value] : options.parameters) {
    if (name == file_option) {
      parsed.file = value;
      continue;
    }
    FORETUNE_TRY(const bool is_known, parsed.take(name, value));
    if (!is_known) {
      return fail(ErrorCode::kInvalidArgument, family, " has no option '", name,
                  "'; it has: ", file_option,
                  ", device, workspace_mb, clock_log, driver, nvml, cublaslt");
    }
  }
  return parsed;
}

// Sets an option; returns false when it is not known.
Result<bool> SessionOptions::take(std::string_view name, const std::string& value) {
  if (name == "device") {
    FORETUNE_TRY(const std::int64_t number, parse_number(name, value, 0, 1023));
    device = static_cast<int>(number);
  } else if (name == "workspace_mb") {
    FORETUNE_TRY(workspace_mb, parse_number(name, value, 0, 65536));
  } else if (name == "clock_log") {
    clock_log = value;
  } else if (name == "driver") {
    libraries.driver = value;
    system_libraries = false;
  } else if (name == "nvml") {
    libraries.nvml = value;
  } else if (name == "cublaslt") {
    cublaslt = {value};
  } else {
    return false;
  }
  return true;
}

Support SessionOptions::available(const Result<SessionOptions>& parsed) {
  std::error_code error;
  if (parsed && parsed->system_libraries && !std::filesystem::exists(kDriverNode, error)) {
    return Support::no("there is no NVIDIA GPU here (no ", kDriverNode, ")");
  }
  return Support::yes();
}

Result<std::shared_ptr<Session>> Session::open(const SessionOptions& options) {
  auto session = std::make_shared<Session>();
  FORETUNE_TRY(session->device, cuda::Device::open(options.libraries, options.device));
  FORETUNE_TRY(std::shared_ptr<const Api> api, Api::load(options.cublaslt));
  const std::size_t version = api->get_version();
  FORETUNE_TRY(session->library, Library::open(std::move(api)));
  auto monitor = cuda::ClockMonitor::start(options.libraries.nvml, session->device->bus_id(),
                                           options.clock_log);
  if (monitor) {
    session->monitor = *std::move(monitor);
  } else if (!options.clock_log.empty()) {
    return fail_because(monitor.error(), "clock_log");
  }
  if (auto energy = cuda::EnergyMeter::open(options.libraries.nvml, session->device->bus_id())) {
    session->energy = *std::move(energy);
  }
  session->fingerprint = session->device->fingerprint();
  session->fingerprint.isa += concat(" cublaslt-", version / 10000, ".", version % 10000 / 100);
  session->workspace_bytes = static_cast<std::size_t>(options.workspace_mb) << 20U;
  return session;
}

Result<std::unique_ptr<MatmulData>> Session::make_data(const Problem& problem,
                                                       std::uint64_t seed) const {
  FORETUNE_TRY(const GemmProblem gemm, GemmProblem::from(problem));
  return MatmulData::create(device, library, gemm, workspace_bytes, seed);
}

std::optional<DeviceConditions> Session::conditions() const {
  return DeviceConditions{.is_throttled = monitor != nullptr && monitor->take().was_throttled};
}

Result<double> Session::read_energy_j() const {
  if (energy == nullptr) {
    return fail(ErrorCode::kUnsupported, "NVML does not count the energy of this GPU");
  }
  return energy->read_j();
}

Support fits_memory(const GemmProblem& problem, double memory_bytes) {
  const double wide = 4.0 * problem.bytes() / bytes_per_element(problem.dtype());
  if (memory_bytes > 0 && problem.bytes() + wide > 0.8 * memory_bytes) {
    return Support::no("the operands and their reference take ",
                       fixed((problem.bytes() + wide) / 1e9, 1), " GB of the ",
                       fixed(memory_bytes / 1e9, 1), " GB of memory");
  }
  return Support::yes();
}

}  // namespace foretune::cublaslt
