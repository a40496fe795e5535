// An NVIDIA GPU as measuring needs it: one context and stream, memory, a fingerprint, and kernels
// that fill buffers with random numbers and compare results where they are.
//
// A device context exists only in a worker process: what the device calls a sticky error (an
// illegal address, a launch that failed) spoils the context for good, so the functions here end the
// process with the reason (check_failed), which makes it the outcome of that measurement. Errors
// that leave the context alive are Results.
//
// Thread safety: one thread. Cost: opening takes about a second, a launch a few microseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "foretune/base/result.h"
#include "foretune/gpu/driver_api.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::gpu {

class Device;

// Device memory that is freed with it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();
  [[nodiscard]] DevicePointer pointer() const { return pointer_; }
  // As the libraries take it.
  [[nodiscard]] void* address() const;
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  friend class Device;
  Buffer(std::shared_ptr<const DriverApi> api, DevicePointer pointer, std::size_t bytes)
      : api_(std::move(api)), pointer_(pointer), bytes_(bytes) {}
  std::shared_ptr<const DriverApi> api_;
  DevicePointer pointer_ = 0;
  std::size_t bytes_ = 0;
};

// Random inputs are a function of seed and position: a host can compute any element of them. All
// values are exact in their type, in [-1, 1): multiples of 2^-7 for bf16, 2^-10 for f16 and tf32,
// 2^-23 for f32, 2^-3 for f8e4m3.
float random_element(DataType type, std::uint64_t seed, std::uint64_t index);

// How many elements of a result differ from the reference, and where the first does.
struct Difference {
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  float wanted = 0;  // there
};

class Device {
 public:
  // The GPU of this number. Errors: kUnsupported when there is no driver or no such GPU, kIo.
  static Result<std::shared_ptr<Device>> open(const Libraries& libraries, int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const DriverApi& api() const { return *api_; }
  [[nodiscard]] Stream stream() const { return stream_; }
  // Facts of the driver; of a known device the rest from its profile. `isa` is "sm_90".
  [[nodiscard]] const Fingerprint& fingerprint() const { return fingerprint_; }
  [[nodiscard]] const std::string& bus_id() const { return bus_id_; }
  [[nodiscard]] std::size_t l2_bytes() const { return l2_bytes_; }

  // Errors: kUnsupported when there is not enough memory.
  Result<Buffer> allocate(std::size_t bytes);
  [[nodiscard]] std::size_t free_bytes() const;
  // Every byte `value`, in stream order.
  void set(const Buffer& buffer, unsigned char value);
  void synchronize();
  // Ends the process when `code` is not success: after a success of the same call, only a lost
  // device makes a difference.
  void must(int code, std::string_view call) const;
  static void must(const Status& status);

  // Kernels; `type` says how the elements are stored. All in stream order.
  void fill(const Buffer& buffer, DataType type, std::uint64_t count, std::uint64_t seed);
  // f32 of the values.
  void widen(const Buffer& from, DataType type, std::uint64_t count, const Buffer& to);
  // GELU (foretune::gelu) of f32 elements, in place.
  void gelu(const Buffer& values, std::uint64_t count);
  // Elements for which |found - wanted| > absolute + relative * |wanted|, NaN included. Waits.
  Difference compare(const Buffer& found, DataType type, const Buffer& wanted, std::uint64_t count,
                     float absolute, float relative);
  // f32 elements, copied to the host. Waits.
  void read(const Buffer& from, std::uint64_t first, std::span<float> to);

 private:
  Device() = default;
  Status start(const Libraries& libraries, int ordinal);
  Status load_kernels();
  Status read_facts();
  void launch(Function function, std::uint64_t count, void** parameters);

  std::shared_ptr<const DriverApi> api_;
  int device_ = -1;
  DriverContext context_ = nullptr;
  Stream stream_ = nullptr;
  Module module_ = nullptr;
  Function fill_ = nullptr;
  Function widen_ = nullptr;
  Function gelu_ = nullptr;
  Function compare_ = nullptr;
  Buffer difference_;
  Fingerprint fingerprint_;
  std::string bus_id_;
  std::size_t l2_bytes_ = 0;
};

}  // namespace foretune::gpu
