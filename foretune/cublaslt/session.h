// An open GPU with cuBLASLt, which the families of products on NVIDIA's devices share, and the
// family options that select it.
//
//   FORETUNE_TRY(const auto parsed, cuda::parse_options<SessionOptions>(given, name, "kernels"));
//   FORETUNE_TRY(const std::shared_ptr<Session> session, Session::open(parsed));
//
// Thread safety: plain values; a session belongs to one thread. Cost: opening takes about a second.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/cublaslt/matmul_data.h"
#include "foretune/cuda/measuring/device_session.h"
#include "foretune/family/family.h"

namespace foretune::cublaslt {

// The default limit of the workspace is 64 MiB. PyTorch takes half of this on an H100; Hopper's
// kernels profit from more.
struct SessionOptions : cuda::DeviceOptions {
  std::vector<std::string> cublaslt{"libcublasLt.so.13", "libcublasLt.so.12",
                                    "/usr/local/cuda/lib64/libcublasLt.so"};

  static constexpr std::string_view kNames =
      "device, workspace_mb, clock_log, driver, nvml, cublaslt";
  // As DeviceOptions::take(), with `cublaslt`.
  Result<bool> take(std::string_view name, const std::string& value);
};

struct Session : cuda::DeviceSession {
  std::shared_ptr<const Library> library;

  // Errors: kUnsupported when there is no device or library, kIo.
  static Result<std::shared_ptr<Session>> open(const SessionOptions& options);
  // Makes the inputs and the reference of a product.
  Result<std::unique_ptr<MatmulData>> make_data(const Problem& problem, std::uint64_t seed) const;
};

}  // namespace foretune::cublaslt
