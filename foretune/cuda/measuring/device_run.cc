#include "foretune/cuda/measuring/device_run.h"

#include <algorithm>

namespace foretune::cuda {

void DeviceRun::run() {
  Device::must(enqueue(0));
  session_->device->synchronize();
}

Result<double> DeviceRun::first_run() {
  const auto enqueue_first = [this](std::int64_t) { return enqueue(0); };
  FORETUNE_TRY(const double rough_ns, watch_.first_run(enqueue_first));
  if (options_.checks_capture) {
    if (const Status captured = watch_.record({.runs = 1, .windows = 1}, enqueue_first, {});
        !captured) {
      return fail(captured.error().code,
                  "it cannot be captured in a CUDA graph: ", captured.error().message);
    }
  }
  return rough_ns;
}

Status DeviceRun::time(std::int64_t runs, std::int32_t windows, bool cold,
                       std::vector<double>& windows_ns) {
  Stopwatch::Prepare prepare;
  if (cold) {
    FORETUNE_TRY_STATUS(data_.make_sets(static_cast<std::size_t>(runs)));
    prepare = [this] { data_.flush(); };
    runs = std::min(runs, static_cast<std::int64_t>(data_.sets()));
  }
  FORETUNE_TRY_STATUS(watch_.record(
      {.runs = runs, .windows = windows},
      [this, cold](std::int64_t run) { return enqueue(cold ? static_cast<std::size_t>(run) : 0); },
      prepare));
  watch_.time(windows_ns);
  return {};
}

Status DeviceRun::enqueue(std::size_t set) {
  const Status enqueued = enqueue_(set, session_->device->stream());
  if (!enqueued && enqueued.error().code != ErrorCode::kUnsupported) {
    Device::must(enqueued);
  }
  return enqueued;
}

}  // namespace foretune::cuda
