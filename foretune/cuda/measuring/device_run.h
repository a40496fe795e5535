// A run on a device, of any work that can be enqueued on its stream: a plan of a library or a
// kernel from elsewhere. The device's clock times it, in CUDA graphs.
//
// Thread safety: one thread. The data must outlive the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cuda/measuring/device_data.h"
#include "foretune/cuda/measuring/device_session.h"
#include "foretune/cuda/stopwatch.h"
#include "foretune/family/family.h"

namespace foretune::cuda {

class DeviceRun final : public Run, public DeviceClock {
 public:
  // Enqueues the work on the operands of a set. kUnsupported is about the config; any other error
  // means a broken context, and ends the process.
  using Enqueue = std::function<Status(std::size_t set, Stream stream)>;

  struct Options {
    std::vector<MetricValue> metrics;  // known without running
    // Refuses work that cannot be captured in a graph. For libraries that create objects while they
    // enqueue; costs about 100 us.
    bool checks_capture = false;
  };

  DeviceRun(std::shared_ptr<const DeviceSession> session, DeviceData& data, Enqueue enqueue,
            Options options)
      : session_(std::move(session)),
        data_(data),
        enqueue_(std::move(enqueue)),
        options_(std::move(options)),
        watch_(*session_->device) {}

  void run() override;
  DeviceClock* device_clock() override { return this; }
  std::vector<MetricValue> metrics() override { return options_.metrics; }
  Result<double> first_run() override;
  Status time(std::int64_t runs, std::int32_t windows, bool cold,
              std::vector<double>& windows_ns) override;

 private:
  Status enqueue(std::size_t set);

  std::shared_ptr<const DeviceSession> session_;
  DeviceData& data_;
  Enqueue enqueue_;
  Options options_;
  Stopwatch watch_;
};

}  // namespace foretune::cuda
