// An NVIDIA GPU for measurements: one context and stream, memory, a fingerprint, and kernels that
// fill buffers with random numbers and compare results on the device.
//
// A device context exists only in a worker process: a sticky error (an illegal address, a launch
// that failed) breaks the context for good. The functions here then end the process with the reason
// (check_failed), which becomes the outcome of that measurement. Errors that leave the context
// usable are Results.
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
#include "foretune/cuda/conv_shape.h"
#include "foretune/cuda/driver_api.h"
#include "foretune/hardware/hardware.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::cuda {

class Device;

// Device memory; the destructor frees it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();
  [[nodiscard]] DevicePointer pointer() const { return pointer_; }
  // Returns the address as the libraries take it.
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

// Returns how many bits a random element has, its sign included. The same as in kernels/check.cu.
constexpr int random_bits(DataType type) {
  switch (type) {
    case DataType::kF16:
    case DataType::kTf32:
      return 11;
    case DataType::kBf16:
      return 8;
    case DataType::kF8e4m3:
      return 4;
    default:
      return 24;
  }
}

// The f32 tensors of a convolution. The one that the operation computes is ignored.
struct ConvTensors {
  const Buffer* input = nullptr;
  const Buffer* weights = nullptr;
  const Buffer* output = nullptr;
};

// The number of elements of a result that differ from the reference, and the place of the first.
struct Difference {
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  float wanted = 0;  // there
};

class Device {
 public:
  // Opens the GPU with this number. Errors: kUnsupported when there is no driver or no such GPU,
  // kIo.
  static Result<std::shared_ptr<Device>> open(const Libraries& libraries, int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const DriverApi& api() const { return *api_; }
  [[nodiscard]] Stream stream() const { return stream_; }
  // Returns the driver's facts; for a known device its profile has the rest. `isa` is "sm_90".
  [[nodiscard]] const Fingerprint& fingerprint() const { return fingerprint_; }
  [[nodiscard]] const std::string& bus_id() const { return bus_id_; }
  [[nodiscard]] std::size_t l2_bytes() const { return l2_bytes_; }

  // Errors: kUnsupported when there is not enough memory.
  Result<Buffer> allocate(std::size_t bytes);
  [[nodiscard]] std::size_t free_bytes() const;
  // Sets every byte to `value`, in stream order.
  void set(const Buffer& buffer, unsigned char value);
  void synchronize();
  // Ends the process when `code` is not success. For calls that can fail only when the device is
  // lost, because the same call has succeeded before.
  void must(int code, std::string_view call) const;
  static void must(const Status& status);
  // Makes the device's context that of the calling thread. For threads that call libraries which
  // use the current context; the functions here stay with one thread.
  void make_current() const;

  // The following functions run kernels in stream order; `type` says how the elements are stored.
  void fill(const Buffer& buffer, DataType type, std::uint64_t count, std::uint64_t seed);
  // Converts the values to f32.
  void widen(const Buffer& from, DataType type, std::uint64_t count, const Buffer& to);
  // Applies GELU (foretune::gelu) to f32 elements, in place.
  void gelu(const Buffer& values, std::uint64_t count);
  // Computes a convolution, or one of its gradients, of f32 tensors into `to`, slowly and
  // precisely: sums of 256 products are added in double precision. About a teraflop a second on a
  // large device.
  void convolve(const ConvShape& shape, const ConvTensors& from, const Buffer& to);
  // Adds bias[i / inner % channels] and, where it is given, `added` to f32 elements, in place; with
  // `relu` takes the larger of the sum and 0.
  void finish_convolution(const Buffer& values, std::uint64_t count, const Buffer& bias,
                          std::uint32_t channels, std::uint64_t inner, const Buffer* added,
                          bool relu);
  // Finds elements for which |found - wanted| > absolute + relative * |wanted|, NaNs included.
  // Waits for the result.
  Difference compare(const Buffer& found, DataType type, const Buffer& wanted, std::uint64_t count,
                     float absolute, float relative);
  // Copies f32 elements to the host. Waits for them.
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
  Function conv_ = nullptr;
  Function conv_epilogue_ = nullptr;
  Buffer difference_;
  Fingerprint fingerprint_;
  std::string bus_id_;
  std::size_t l2_bytes_ = 0;
};

}  // namespace foretune::cuda
