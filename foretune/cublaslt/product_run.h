// Runs of one product on a device, with any function that enqueues it: a plan of cuBLASLt or a
// kernel from elsewhere.
//
// Thread safety: free functions, one thread. The data must outlive the run.
#pragma once

#include <functional>
#include <memory>

#include "foretune/base/result.h"
#include "foretune/cublaslt/cublaslt_config.h"
#include "foretune/cublaslt/matmul_data.h"
#include "foretune/cublaslt/session.h"
#include "foretune/family/family.h"

namespace foretune::cublaslt {

// Enqueues the product of these operands. kUnsupported is about the config; any other error means a
// broken context, and ends the process.
using EnqueueProduct = std::function<Status(const Operands& operands, cuda::Stream stream)>;

std::unique_ptr<Run> make_product_run(std::shared_ptr<const Session> session, MatmulData& data,
                                      EnqueueProduct enqueue);

// Makes a run of the product by cuBLASLt, with this config. Errors: those of Matmul::plan().
Result<std::unique_ptr<Run>> make_library_run(std::shared_ptr<const Session> session,
                                              MatmulData& data, const CublasltConfig& config);

}  // namespace foretune::cublaslt
