// What the fake driver, NVML and cuBLASLt share: one device with its memory, clock and faults.
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
#include <type_traits>
#include <vector>

#include "foretune/gpu/driver_api.h"

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

// Executes something on the device and returns the driver's code.
using Operation = std::function<int(State&)>;

// The type of the function behind an entry of a table of functions, to declare it with.
template <class Pointer>
using EntryOf = std::remove_pointer_t<Pointer>;

inline constexpr const char* kBusId = "0000:01:00.0";

}  // namespace foretune::fake_gpu

// The objects that driver_api.h leaves to the driver.
namespace foretune::gpu {

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

}  // namespace foretune::gpu

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
};
// Read at the first call.
const Faults& faults();
const std::string& device_name();

// The finaliser of SplitMix64, as in the device's kernels.
std::uint64_t mix(std::uint64_t value);

class Memory {
 public:
  static constexpr std::size_t kTotal = std::size_t{4} << 30;
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() = default;

  // Codes of the driver.
  int allocate(std::size_t bytes, gpu::DevicePointer& pointer);
  int free(gpu::DevicePointer pointer);
  void free_all();
  [[nodiscard]] std::size_t used() const { return used_; }
  // Where the range lies for the host; null when it is not inside one live allocation.
  [[nodiscard]] const std::byte* readable(gpu::DevicePointer pointer, std::size_t bytes) const;
  std::byte* writable(gpu::DevicePointer pointer, std::size_t bytes);
  bool set(gpu::DevicePointer pointer, unsigned char value, std::size_t bytes);

 private:
  struct Release {
    void operator()(std::byte* block) const;
  };
  struct Fill {
    gpu::DevicePointer begin = 0;
    std::size_t bytes = 0;
    unsigned char value = 0;
    bool operator==(const Fill&) const = default;
  };
  struct Allocation {
    std::unique_ptr<std::byte, Release> block;
    std::size_t bytes = 0;
    // The last write, if it was a large memset: what flushes caches between measurements would
    // otherwise be most of what a test does.
    std::optional<Fill> filled;
  };
  Allocation* containing(gpu::DevicePointer pointer, std::size_t bytes);
  std::map<gpu::DevicePointer, Allocation> allocations_;
  std::size_t used_ = 0;
};

// A memset of this size replaces all of the cache.
inline constexpr std::size_t kFlushBytes = std::size_t{32} << 20;

struct State {
  std::mutex mutex;
  bool initialized = false;
  int retained = 0;
  // What every call returns after an error that spoils the context; 0 if there was none.
  int broken = 0;
  bool hung = false;
  int nvml_users = 0;  // calls of nvmlInit_v2 without their nvmlShutdown
  double clock_ns = 0;
  std::uint64_t products = 0;
  std::array<std::uint64_t, 8> last_algorithm{};            // of the last product
  std::map<std::string, std::uint64_t, std::less<>> calls;  // of some functions, by symbol
  Memory memory;
  // Operands of products since the last flush.
  std::set<gpu::DevicePointer> cached;
  // Everything that was created and not destroyed.
  std::set<const void*> live;
  std::set<gpu::Stream> streams;
  // For the stream that is null.
  gpu::StreamObject default_stream;

  // Executes now, or at the launch of the graph when the stream captures.
  int submit(gpu::Stream stream, Operation operation);
  int execute(const Operation& operation);
  // Null when there is no such stream.
  gpu::StreamObject* find_stream(gpu::Stream stream);
};

// Never destroyed: threads may outlive the statics of the process.
State& state();

// Of the calling thread.
bool& context_is_current();

gpu::DevicePointer to_device(const void* pointer);

}  // namespace foretune::fake_gpu
