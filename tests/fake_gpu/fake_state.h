// The state that the fake driver, NVML and cuBLASLt share: one device with its memory, clock and
// faults.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "foretune/cuda/driver_api.h"

namespace foretune::fake_gpu {

struct State;

// Codes of the driver beyond those that driver_api.h names.
inline constexpr int kInvalidArgument = 1;
inline constexpr int kNotInitialized = 3;
inline constexpr int kNoDevice = 100;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kInvalidContext = 201;
inline constexpr int kInvalidPtx = 218;
inline constexpr int kInvalidHandle = 400;
inline constexpr int kNotFound = 500;
inline constexpr int kIllegalAddress = 700;
inline constexpr int kLaunchFailed = 719;
inline constexpr int kCaptureUnsupported = 900;
inline constexpr int kCaptureInvalidated = 901;
inline constexpr int kCaptureUnmatched = 903;
inline constexpr int kCaptureImplicit = 906;

// Executes an operation on the device and returns the driver's code.
using Operation = std::function<int(State&)>;

inline constexpr const char* kBusId = "0000:01:00.0";

}  // namespace foretune::fake_gpu

// The objects that driver_api.h leaves opaque.
namespace foretune::cuda {

struct ContextObject {};
struct StreamCapture {
  std::vector<fake_gpu::Operation> operations;
  std::thread::id thread;
  bool lost = false;
};
struct StreamObject {
  std::optional<StreamCapture> capture;
};
struct EventObject {
  std::optional<double> time_ns;
};
struct GraphObject {
  std::vector<fake_gpu::Operation> operations;
};
struct GraphExecObject {
  std::vector<fake_gpu::Operation> operations;
};
struct ModuleObject {
  // The only function of a kernel that Triton would have compiled; null in our own module.
  Function function = nullptr;
};
struct NvmlDeviceObject {};

}  // namespace foretune::cuda

namespace foretune::fake_gpu {

// FORETUNE_FAKE_GPU_FAULTS; tiles by id.
struct Faults {
  std::set<unsigned> wrong;
  std::set<unsigned> not_written;
  std::set<unsigned> crash;
  std::set<unsigned> hang;
  std::set<unsigned> refuse;
  bool throttle = false;
  bool no_nvml = false;
  bool no_device = false;
  bool busy = false;
};
// Reads the environment at the first call.
const Faults& faults();
const std::string& device_name();

// A step of SplitMix64, as in the device's kernels.
std::uint64_t mix(std::uint64_t value);

class Memory {
 public:
  static constexpr std::size_t kTotal = std::size_t{4} << 30;
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() = default;

  // Return codes of the driver.
  int allocate(std::size_t bytes, cuda::DevicePointer& pointer);
  int free(cuda::DevicePointer pointer);
  void free_all();
  [[nodiscard]] std::size_t used() const { return used_; }
  // Returns the range's host address; null when it is not inside one live allocation.
  [[nodiscard]] const std::byte* readable(cuda::DevicePointer pointer, std::size_t bytes) const;
  std::byte* writable(cuda::DevicePointer pointer, std::size_t bytes);
  bool set(cuda::DevicePointer pointer, unsigned char value, std::size_t bytes);

 private:
  struct Release {
    void operator()(std::byte* block) const;
  };
  struct Fill {
    cuda::DevicePointer begin = 0;
    std::size_t bytes = 0;
    unsigned char value = 0;
    bool operator==(const Fill&) const = default;
  };
  struct Allocation {
    std::unique_ptr<std::byte, Release> block;
    std::size_t bytes = 0;
    // The last write, if it was a large memset. Large memsets flush caches between measurements;
    // repeating them would take most of a test's time.
    std::optional<Fill> filled;
  };
  Allocation* containing(cuda::DevicePointer pointer, std::size_t bytes);
  std::map<cuda::DevicePointer, Allocation> allocations_;
  std::size_t used_ = 0;
};

// A memset of this size replaces all of the cache.
inline constexpr std::size_t kFlushBytes = std::size_t{32} << 20;

struct State {
  std::mutex mutex;
  bool initialized = false;
  int retained = 0;
  // The code that every call returns after an error that breaks the context; 0 without one.
  int broken = 0;
  bool hung = false;
  int nvml_users = 0;  // calls of nvmlInit_v2 without their nvmlShutdown
  double clock_ns = 0;
  std::uint64_t products = 0;
  std::array<std::uint64_t, 8> last_algorithm{};            // of the last product
  std::map<std::string, std::uint64_t, std::less<>> calls;  // of some functions, by symbol
  Memory memory;
  // Operands of products since the last flush.
  std::set<cuda::DevicePointer> cached;
  // Every object that was created and not destroyed.
  std::set<const void*> live;
  std::set<cuda::Stream> streams;
  // Stands for the null stream.
  cuda::StreamObject default_stream;

  // Executes the operation now, or at the launch of the graph when the stream captures.
  int submit(cuda::Stream stream, Operation operation);
  int execute(const Operation& operation);
  // Returns null when there is no such stream.
  cuda::StreamObject* find_stream(cuda::Stream stream);
};

// Returns the state, which is never destroyed: threads may outlive the statics of the process.
State& state();

// Returns the flag of the calling thread.
bool& context_is_current();

cuda::DevicePointer to_device(const void* pointer);

}  // namespace foretune::fake_gpu
