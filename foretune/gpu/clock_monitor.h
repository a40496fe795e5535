// Watches a GPU's clock, power and temperature beside the measuring, by a thread that asks NVML
// every few milliseconds: a measurement taken while the device slowed itself down is told apart,
// and a log says later what the clocks were. Thread safety: take() may be called from one thread at
// a time; the rest is the monitor's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "foretune/base/result.h"

namespace foretune::gpu {

struct ClockReading {
  std::uint32_t sm_mhz = 0;
  std::uint32_t memory_mhz = 0;
  std::uint32_t milliwatt = 0;
  std::uint32_t celsius = 0;
  // The device held its clock below 9/10 of the highest for power or heat, at any time since the
  // last take().
  bool was_throttled = false;
};

class ClockMonitor {
 public:
  // `log`: a CSV file with a line for each reading; empty for none. Errors: kUnsupported without
  // NVML, kIo for the log.
  static Result<std::unique_ptr<ClockMonitor>> start(const std::string& library,
                                                     const std::string& bus_id,
                                                     const std::filesystem::path& log);
  ~ClockMonitor();
  ClockMonitor(const ClockMonitor&) = delete;
  ClockMonitor& operator=(const ClockMonitor&) = delete;

  ClockReading take();

 private:
  ClockMonitor();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretune::gpu
