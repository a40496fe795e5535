// A run of one product on a device, with any function that enqueues it: a plan of cuBLASLt or a
// kernel from elsewhere. The device's clock times it, in CUDA graphs.
//
// Thread safety: one thread. The data must outlive the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/cublaslt/matmul_data.h"
#include "foretune/cublaslt/session.h"
#include "foretune/cuda/stopwatch.h"
#include "foretune/family/family.h"

namespace foretune::cublaslt {

class ProductRun final : public Run, public DeviceClock {
 public:
  // Enqueues the product of these operands. kUnsupported is about the config; any other error means
  // a broken context, and ends the process.
  using Enqueue = std::function<Status(const Operands& operands, cuda::Stream stream)>;

  ProductRun(std::shared_ptr<Session> session, MatmulData& data, Enqueue enqueue)
      : session_(std::move(session)),
        data_(data),
        enqueue_(std::move(enqueue)),
        watch_(*session_->device) {}

  // Makes a run of the product by cuBLASLt, with this config. Errors: those of Matmul::plan().
  static Result<std::unique_ptr<Run>> of_library(std::shared_ptr<Session> session, MatmulData& data,
                                                 const CublasltConfig& config);

  void run() override;
  DeviceClock* device_clock() override { return this; }
  Result<double> first_run() override;
  Status time(std::int64_t runs, std::int32_t windows, bool cold,
              std::vector<double>& windows_ns) override;

 private:
  Status enqueue(std::size_t set);

  std::shared_ptr<Session> session_;
  MatmulData& data_;
  Enqueue enqueue_;
  cuda::Stopwatch watch_;
};

}  // namespace foretune::cublaslt
