// An open GPU with cuBLASLt, which the families of products on NVIDIA's devices share, and the
// family options that select it.
//
//   FORETUNE_TRY(const auto parsed, SessionOptions::parse(options, "triton", "kernels"));
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
  std::string file;  // named by the family's own option
  std::vector<std::string> cublaslt{"libcublasLt.so.13", "libcublasLt.so.12",
                                    "/usr/local/cuda/lib64/libcublasLt.so"};

  // Parses the options of a family, which has one option of its own that names a file:
  // `file_option`. Errors: kInvalidArgument for an unknown option and for values that make no
  // sense.
  static Result<SessionOptions> parse(const FamilyOptions& options, std::string_view family,
                                      std::string_view file_option);
  // Returns no when the system has no NVIDIA driver and the options name none. Leaves it to parse()
  // to refuse options that make no sense.
  static Support available(const Result<SessionOptions>& parsed);
};

struct Session : cuda::DeviceSession {
  std::shared_ptr<const Library> library;

  // Errors: kUnsupported when there is no device or library, kIo.
  static Result<std::shared_ptr<Session>> open(const SessionOptions& options);
  // Makes the inputs and the reference of a product.
  Result<std::unique_ptr<MatmulData>> make_data(const Problem& problem, std::uint64_t seed) const;
};

// Returns no when the operands and their f32 reference do not fit a device with `memory_bytes`
// (0: not known) of memory.
Support fits_memory(const GemmProblem& problem, double memory_bytes);

}  // namespace foretune::cublaslt
