#include "foretune/kernels/cpu_limits.h"

#include <algorithm>
#include <optional>

#include "foretune/base/text.h"
#include "foretune/hardware/cpu.h"
#include "foretune/kernels/micro_kernel.h"

namespace foretune {
namespace {

constexpr int kMaxThreads = 64;

// Limits the threads: sets the hardware facts of a machine with that many cores.
Status limit_threads(const std::string& threads, Hardware& hardware) {
  const int most =
      hardware.get(HardwareValue::kCores) >= 1 ? usable_threads(hardware) : kMaxThreads;
  const auto number = parse_int(threads);
  if (!number || *number < 1 || *number > most) {
    return fail(ErrorCode::kInvalidArgument, "threads is a number from 1 to ", most, ", not '",
                threads, "'");
  }
  hardware.set(HardwareValue::kCores, static_cast<double>(*number));
  return {};
}

// Applies isa=NAME: sets the hardware facts of a machine with no wider instructions.
Status take_isa(std::string_view value, Hardware& hardware) {
  const std::optional<CpuIsa> isa = parse_cpu_isa(value);
  const double best_bytes = hardware.get(HardwareValue::kVectorBytes);
  const double vector_bytes = isa ? 4.0 * kernel_limits(*isa).lanes : 0;
  if (!isa || vector_bytes > best_bytes) {
    return fail(ErrorCode::kInvalidArgument,
                "isa is one that this CPU has (generic, avx2, avx512), not '", value, "'");
  }
  // The peak of narrower multiply-adds is not measured again; it is proportional to the width,
  // except for the clock.
  hardware.set(HardwareValue::kFmaPeakGflops,
               vector_bytes / best_bytes * hardware.get(HardwareValue::kFmaPeakGflops));
  hardware.set(HardwareValue::kVectorBytes, vector_bytes);
  hardware.set(HardwareValue::kVectorRegisters, kernel_limits(*isa).registers);
  return {};
}

}  // namespace

int usable_threads(const Hardware& hardware) {
  const double cores = hardware.get(HardwareValue::kCores);
  return static_cast<int>(std::clamp<double>(cores, 1, kMaxThreads));
}

Status apply_cpu_limits(std::string_view family, int threads,
                        std::span<const std::pair<std::string, std::string>> parameters,
                        Hardware& hardware) {
  std::string limit = threads > 0 ? concat(threads) : std::string();
  for (const auto& [name, value] : parameters) {
    if (name == "threads") {
      if (!limit.empty() && limit != value) {
        return fail(ErrorCode::kInvalidArgument, "a limit of ", limit,
                    " threads and the family option threads=", value, " contradict each other");
      }
      limit = value;
    } else if (name == "isa") {
      FORETUNE_TRY_STATUS(take_isa(value, hardware));
    } else {
      return fail(ErrorCode::kInvalidArgument, family, " has no option '", name, "'");
    }
  }
  return limit.empty() ? Status() : limit_threads(limit, hardware);
}

}  // namespace foretune
