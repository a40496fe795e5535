#include "foretune/cuda/clock_monitor.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "foretune/cuda/driver_api.h"

namespace foretune::cuda {
namespace {

constexpr std::chrono::milliseconds kPeriod(10);
constexpr double kThrottledShare = 0.9;

}  // namespace

struct ClockMonitor::State {
  std::shared_ptr<const NvmlApi> api;
  NvmlDevice device = nullptr;
  unsigned highest_sm_mhz = 0;
  std::ofstream log;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  std::mutex mutex;
  std::condition_variable wake;
  bool stops = false;
  ClockReading last;
  std::thread thread;

  ClockReading read(unsigned long long& reasons) const;
  void watch();
};

ClockReading ClockMonitor::State::read(unsigned long long& reasons) const {
  ClockReading reading;
  api->clock_mhz(device, kNvmlClockSm, &reading.sm_mhz);
  api->clock_mhz(device, kNvmlClockMemory, &reading.memory_mhz);
  api->power_milliwatt(device, &reading.milliwatt);
  api->temperature(device, 0, &reading.celsius);
  api->throttle_reasons(device, &reasons);
  reading.was_throttled =
      (reasons & kNvmlThrottleReasons) != 0 && reading.sm_mhz < kThrottledShare * highest_sm_mhz;
  return reading;
}

void ClockMonitor::State::watch() {
  std::unique_lock lock(mutex);
  while (!stops) {
    lock.unlock();
    unsigned long long reasons = 0;
    ClockReading reading = read(reasons);
    if (log.is_open()) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
      log << elapsed.count() << ',' << reading.sm_mhz << ',' << reading.memory_mhz << ','
          << reading.milliwatt << ',' << reading.celsius << ',' << reasons << '\n';
    }
    lock.lock();
    reading.was_throttled = reading.was_throttled || last.was_throttled;
    last = reading;
    wake.wait_for(lock, kPeriod, [this] { return stops; });
  }
}

ClockMonitor::ClockMonitor() : state_(std::make_unique<State>()) {}

Result<std::unique_ptr<ClockMonitor>> ClockMonitor::start(const std::string& library,
                                                          const std::string& bus_id,
                                                          const std::filesystem::path& log) {
  std::unique_ptr<ClockMonitor> monitor(new ClockMonitor());
  State& state = *monitor->state_;
  FORETUNE_TRY(state.api, NvmlApi::load(library));
  if (const int code = state.api->init(); code != 0) {
    return fail(ErrorCode::kUnsupported, "nvmlInit fails (", code, ")");
  }
  if (const int code = state.api->device_by_bus_id(bus_id.c_str(), &state.device); code != 0) {
    state.api->shutdown();
    return fail(ErrorCode::kUnsupported, "NVML does not know the GPU ", bus_id, " (", code, ")");
  }
  state.api->max_clock_mhz(state.device, kNvmlClockSm, &state.highest_sm_mhz);
  if (!log.empty()) {
    // A worker that takes over from one that ended goes on in the same file.
    state.log.open(log, std::ios::app);
    if (!state.log) {
      state.api->shutdown();
      return fail(ErrorCode::kIo, "cannot write ", log.string());
    }
    if (state.log.tellp() == 0) {
      state.log << "seconds,sm_mhz,memory_mhz,milliwatt,celsius,throttle_reasons\n";
    }
  }
  state.thread = std::thread([&state] { state.watch(); });
  return monitor;
}

ClockMonitor::~ClockMonitor() {
  if (!state_->thread.joinable()) {
    return;
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->stops = true;
  }
  state_->wake.notify_one();
  state_->thread.join();
  state_->api->shutdown();
}

ClockReading ClockMonitor::take() {
  const std::lock_guard lock(state_->mutex);
  const ClockReading reading = state_->last;
  state_->last.was_throttled = false;
  return reading;
}

}  // namespace foretune::cuda
