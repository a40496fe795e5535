// The facts of a device as named numbers, read from the system or measured. Features and legality
// rules use these values, so data sets and model files store them. The same code describes a CPU, a
// GPU and a device that is not present.
//
//   Hardware hardware;
//   hardware.set(HardwareValue::kCores, 8);
//   hardware.text();  // "cores=8"
//
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "foretune/base/result.h"

namespace foretune {

// Files store these by name; the order may change.
enum class HardwareValue : std::uint8_t {
  kCores,            // CPU cores, or streaming multiprocessors
  kVectorBytes,      // widest vector registers used: 64, 32 or 16; 0 on a GPU
  kVectorRegisters,  // architectural vector registers
  kL1Bytes,          // data cache of one core, or shared memory per multiprocessor
  kL2Bytes,          // of one core, or of the GPU
  kL3Bytes,          // as seen by one core; 0 when there is none
  kFmaPeakGflops,    // measured f32 multiply-adds of one core, in GFLOP/s
  kBandwidthGbs,     // measured read bandwidth of memory, one core, in GB/s
  kBandwidthAllGbs,  // the same with all cores
  kClockMhz,         // nominal or measured during the peaks
  kMemoryBytes,
  kRegisterFileBytes,  // GPU: registers per multiprocessor
  kThreadsPerCore,     // GPU: resident threads per multiprocessor; hardware threads of a CPU's core
  kWarpSize,
  kTensorPeakGflops,     // GPU: dense bf16 matrix units, in GFLOP/s
  kSharedBytesPerBlock,  // GPU: largest opt-in shared memory of a block
  kVectorCacheBytes,     // GPU: cache per multiprocessor, separate from its shared memory
  kSimdsPerCore,         // GPU: vector units of a multiprocessor
  kShaderEngines,        // GPU: groups of multiprocessors that share a front end
  kDies,                 // GPU: compute dies, each with an L2 cache of its own
  kCount,
};

inline constexpr std::size_t kHardwareValueCount = static_cast<std::size_t>(HardwareValue::kCount);

// Returns "cores", "vector_bytes", "l1_bytes", ...: the names in expressions (hw.l1_bytes), files
// and JSON.
std::string_view to_string(HardwareValue value);
std::optional<HardwareValue> parse_hardware_value(std::string_view name);

class Hardware {
 public:
  // 0 means unknown.
  [[nodiscard]] double get(HardwareValue value) const {
    return values_[static_cast<std::size_t>(value)];
  }
  void set(HardwareValue value, double number) {
    values_[static_cast<std::size_t>(value)] = number;
  }
  // Returns "cores=2 vector_bytes=64 ..." without unknown values. parse() accepts and ignores names
  // of later versions.
  [[nodiscard]] std::string text() const;
  static Result<Hardware> parse(std::string_view text);
  bool operator==(const Hardware&) const = default;

 private:
  std::array<double, kHardwareValueCount> values_{};
};

// The machine on which a time was measured. The digest covers stable facts (model, instruction
// sets, caches, cores), never measured ones or those that change from boot to boot.
struct Fingerprint {
  std::string device;  // "Intel(R) Xeon(R) Processor", "NVIDIA H200"
  std::string isa;     // "avx512f avx512vnni avx2 fma ..." in a fixed order; "sm_90" on a GPU
  std::string system;  // kernel release, hypervisor: for the reader, not in the digest
  Hardware hardware;

  // 0 only for a fingerprint without a device.
  [[nodiscard]] std::uint64_t digest() const;
  [[nodiscard]] std::string text() const;  // lines "key: value"
  static Result<Fingerprint> parse(std::string_view text);
  bool operator==(const Fingerprint&) const = default;
};

// Returns a device whose facts are built in (device_profile.h), by one of its names in any case:
// "h200", "NVIDIA H200", "gfx950". Errors: kNotFound with the names that exist.
Result<Fingerprint> known_device(std::string_view name);
// Returns known_device("h200"), an NVIDIA H200.
Fingerprint h200_fingerprint();

}  // namespace foretune
