#include "foretune/cublaslt/product_run.h"

#include <cstddef>
#include <utility>

#include "foretune/cuda/measuring/device_run.h"

namespace foretune::cublaslt {

std::unique_ptr<Run> make_product_run(std::shared_ptr<const Session> session, MatmulData& data,
                                      EnqueueProduct enqueue) {
  return std::make_unique<cuda::DeviceRun>(
      std::move(session), data,
      [&data, enqueue = std::move(enqueue)](std::size_t set, cuda::Stream stream) {
        return enqueue(data.operands(set), stream);
      },
      cuda::DeviceRun::Options{});
}

Result<std::unique_ptr<Run>> make_library_run(std::shared_ptr<const Session> session,
                                              MatmulData& data, const CublasltConfig& config) {
  FORETUNE_TRY(const Plan plan, data.matmul().plan(config));
  return make_product_run(
      std::move(session), data,
      [plan, &matmul = data.matmul()](const Operands& operands, cuda::Stream stream) {
        return matmul.run(plan, operands, stream);
      });
}

}  // namespace foretune::cublaslt
