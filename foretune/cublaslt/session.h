// An open GPU with cuBLASLt, which the families on NVIDIA's devices share, and the family options
// that select it.
//
//   FORETUNE_TRY(const auto parsed, SessionOptions::parse(options, "triton", "kernels"));
//   FORETUNE_TRY(const std::shared_ptr<Session> session, Session::open(parsed));
//
// Thread safety: plain values; a session belongs to one thread. Cost: opening takes about a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/cublaslt/matmul_data.h"
#include "foretune/cuda/clock_monitor.h"
#include "foretune/cuda/device.h"
#include "foretune/cuda/energy_meter.h"
#include "foretune/family/family.h"

namespace foretune::cublaslt {

// PyTorch takes half of this on an H100; Hopper's kernels profit from more.
inline constexpr std::int64_t kDefaultWorkspaceMb = 64;

struct SessionOptions {
  std::string file;  // named by the family's own option
  int device = 0;
  std::int64_t workspace_mb = kDefaultWorkspaceMb;
  std::string clock_log;
  cuda::Libraries libraries;
  std::vector<std::string> cublaslt{"libcublasLt.so.13", "libcublasLt.so.12",
                                    "/usr/local/cuda/lib64/libcublasLt.so"};
  bool system_libraries = true;

  // Parses the options of a family, which has one option of its own that names a file:
  // `file_option`. Errors: kInvalidArgument for an unknown option and for values that make no
  // sense.
  static Result<SessionOptions> parse(const FamilyOptions& options, std::string_view family,
                                      std::string_view file_option);
  // Returns no when the system has no NVIDIA driver and the options name none. Leaves it to parse()
  // to refuse options that make no sense.
  static Support available(const Result<SessionOptions>& parsed);

 private:
  Result<bool> take(std::string_view name, const std::string& value);
};

struct Session {
  std::shared_ptr<cuda::Device> device;
  std::shared_ptr<const Library> library;
  std::unique_ptr<cuda::ClockMonitor> monitor;  // none where NVML is missing
  std::unique_ptr<cuda::EnergyMeter> energy;    // none where NVML is missing or counts no energy
  // Its isa names the library, too: "sm_90 cublaslt-13.1". Another version has other kernels under
  // the same numbers.
  Fingerprint fingerprint;
  std::size_t workspace_bytes = 0;

  // Errors: kUnsupported when there is no device or library, kIo.
  static Result<std::shared_ptr<Session>> open(const SessionOptions& options);
  // Makes the inputs and the reference of a product.
  Result<std::unique_ptr<MatmulData>> make_data(const Problem& problem, std::uint64_t seed) const;
  [[nodiscard]] std::optional<DeviceConditions> conditions() const;
  // Returns the joules of the device, as Family::read_energy_j() does.
  [[nodiscard]] Result<double> read_energy_j() const;
};

// Returns no when the operands and their f32 reference do not fit a device with `memory_bytes`
// (0: not known) of memory.
Support fits_memory(const GemmProblem& problem, double memory_bytes);

}  // namespace foretune::cublaslt
