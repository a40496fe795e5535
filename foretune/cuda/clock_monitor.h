// Watches a GPU's clock, power and temperature during measurements, by a thread that reads NVML
// every few milliseconds. A measurement taken while the device throttled can be recognised, and a
// log records the clocks. Thread safety: take() may be called from one thread at a time; the
// monitor handles the rest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "foretune/base/result.h"

namespace foretune::cuda {

struct ClockReading {
  std::uint32_t sm_mhz = 0;
  std::uint32_t memory_mhz = 0;
  std::uint32_t milliwatt = 0;
  std::uint32_t celsius = 0;
  // True when the device held its clock below 9/10 of the highest because of power or heat, at any
  // time since the last take().
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

}  // namespace foretune::cuda
