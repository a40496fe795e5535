// An open GPU with cuBLASLt on it, as the families on NVIDIA's devices share it, and the family
// options that say which.
//
//   FORETUNE_TRY(const auto parsed, SessionOptions::parse(options, "triton", "kernels"));
//   FORETUNE_TRY(const std::shared_ptr<Session> session, Session::open(parsed));
//
// Thread safety: plain values; a session belongs to one thread. Cost: opening takes about a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cublaslt/matmul.h"
#include "foretune/cublaslt/matmul_data.h"
#include "foretune/family/family.h"
#include "foretune/gpu/clock_monitor.h"
#include "foretune/gpu/device.h"
#include "foretune/gpu/energy_meter.h"

namespace foretune::cublaslt {

// Of an H100 in PyTorch it is half of this; Hopper's kernels profit from more.
inline constexpr std::int64_t kDefaultWorkspaceMb = 64;

struct SessionOptions {
  std::string file;  // of the family's own option
  int device = 0;
  std::int64_t workspace_mb = kDefaultWorkspaceMb;
  std::string clock_log;
  gpu::Libraries libraries;
  std::vector<std::string> cublaslt{"libcublasLt.so.13", "libcublasLt.so.12",
                                    "/usr/local/cuda/lib64/libcublasLt.so"};
  bool system_libraries = true;

  // The options of a family, which has one of its own that names a file: `file_option`. Errors:
  // kInvalidArgument for an unknown option and for values that make no sense.
  static Result<SessionOptions> parse(const FamilyOptions& options, std::string_view family,
                                      std::string_view file_option);
  // No when the system has no NVIDIA driver and none was named. Options that make no sense are
  // parse()'s to explain.
  static Support available(const Result<SessionOptions>& parsed);

 private:
  Result<bool> take(std::string_view name, const std::string& value);
};

struct Session {
  std::shared_ptr<gpu::Device> device;
  std::shared_ptr<const Library> library;
  std::unique_ptr<gpu::ClockMonitor> monitor;  // none where NVML is missing
  std::unique_ptr<gpu::EnergyMeter> energy;    // likewise, and where it does not count energy
  // Its isa names the library, too: "sm_90 cublaslt-13.1". Another version has other kernels behind
  // the same numbers.
  Fingerprint fingerprint;
  std::size_t workspace_bytes = 0;

  // Errors: kUnsupported when there is no device or library, kIo.
  static Result<std::shared_ptr<Session>> open(const SessionOptions& options);
  // Inputs and reference of a product.
  Result<std::unique_ptr<MatmulData>> make_data(const Problem& problem, std::uint64_t seed) const;
  [[nodiscard]] std::optional<DeviceConditions> conditions() const;
  // As Family::read_energy_j().
  [[nodiscard]] Result<double> read_energy_j() const;
};

// A session that is opened when it is first needed and kept. Thread safety: yes.
template <class Opened>
class OpenedOnce {
 public:
  // Errors: those of `open`, which is asked again the next time.
  template <class Open>
  Result<std::shared_ptr<Opened>> get(const Open& open) {
    const std::lock_guard lock(mutex_);
    if (session_ == nullptr) {
      FORETUNE_TRY(session_, open());
    }
    return session_;
  }
  // nullptr before the first get().
  [[nodiscard]] std::shared_ptr<Opened> if_open() {
    const std::lock_guard lock(mutex_);
    return session_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Opened> session_;
};

// Whether its operands and their f32 reference fit a device with so much memory (0: not known).
Support fits_memory(const GemmProblem& problem, double memory_bytes);

}  // namespace foretune::cublaslt
