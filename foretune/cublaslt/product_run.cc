#include "foretune/cublaslt/product_run.h"

#include <algorithm>
#include <utility>

namespace foretune::cublaslt {

Result<std::unique_ptr<Run>> ProductRun::of_library(std::shared_ptr<Session> session,
                                                    MatmulData& data,
                                                    const CublasltConfig& config) {
  FORETUNE_TRY(const Plan plan, data.matmul().plan(config));
  return std::make_unique<ProductRun>(
      std::move(session), data,
      [plan, &matmul = data.matmul()](const Operands& operands, cuda::Stream stream) {
        return matmul.run(plan, operands, stream);
      });
}

void ProductRun::run() {
  cuda::Device::must(enqueue(0));
  session_->device->synchronize();
}

Result<double> ProductRun::first_run() {
  return watch_.first_run([this](std::int64_t) { return enqueue(0); });
}

Status ProductRun::time(std::int64_t runs, std::int32_t windows, bool cold,
                        std::vector<double>& windows_ns) {
  cuda::Stopwatch::Prepare prepare;
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

Status ProductRun::enqueue(std::size_t set) {
  const Status enqueued = enqueue_(data_.operands(set), session_->device->stream());
  if (!enqueued && enqueued.error().code != ErrorCode::kUnsupported) {
    cuda::Device::must(enqueued);
  }
  return enqueued;
}

}  // namespace foretune::cublaslt
