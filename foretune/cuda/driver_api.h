// Declares the parts of the CUDA driver and of NVML that are used here, so that a build needs no
// part of CUDA; both libraries are loaded when a device is opened. Types, numbers and symbol names
// are those of CUDA's ABI (cuda.h, nvml.h). The tests check them against cuda.h where a toolkit is
// installed.
//
//   FORETUNE_TRY(const auto api, DriverApi::load({}));
//   FORETUNE_TRY_STATUS(api->check(api->init(0), "cuInit"));
//
// Thread safety: constant after loading. The libraries stay loaded until the process ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::cuda {

// Opaque objects of the driver. A stream is the runtime's cudaStream_t, too.
struct ContextObject;
struct StreamObject;
struct EventObject;
struct GraphObject;
struct GraphExecObject;
struct ModuleObject;
struct FunctionObject;
using DriverContext = ContextObject*;
using Stream = StreamObject*;
using Event = EventObject*;
using Graph = GraphObject*;
using GraphExec = GraphExecObject*;
using Module = ModuleObject*;
using Function = FunctionObject*;
using DevicePointer = std::uint64_t;

inline constexpr int kDriverSuccess = 0;
inline constexpr int kDriverInvalidValue = 1;
inline constexpr int kDriverOutOfMemory = 2;
inline constexpr int kDriverNotReady = 600;
inline constexpr int kDriverLaunchOutOfResources = 701;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventRecordExternal = 1;  // inside a capture: a node that records
inline constexpr int kCaptureThreadLocal = 1;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr int kCaptureNone = 0;  // CUstreamCaptureStatus
inline constexpr unsigned kEventDefault = 0;
// CUfunction_attribute: the limit of dynamic shared memory, and the shared memory that a block may
// have without setting it.
inline constexpr int kMaxDynamicSharedBytes = 8;
inline constexpr unsigned kPlainSharedBytes = 48U << 10U;

// CUdevice_attribute.
enum class DeviceAttribute : int {
  kWarpSize = 10,
  kClockKhz = 13,
  kMultiprocessors = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kThreadsPerMultiprocessor = 39,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kSharedBytesPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,
  kSharedBytesPerBlockOptin = 97,
};

// The files to load; names without a folder are looked up as the system does.
struct Libraries {
  std::string driver = "libcuda.so.1";
  std::string nvml = "libnvidia-ml.so.1";
};

struct DriverApi {
  // Errors: kUnsupported with the loader's reason or the symbol that is missing.
  static Result<std::shared_ptr<const DriverApi>> load(const std::string& library);
  // Returns success, or kIo "cuMemAlloc: out of memory (CUDA error 2)".
  [[nodiscard]] Status check(int code, std::string_view call) const;

  int (*init)(unsigned flags) = nullptr;
  int (*driver_version)(int* version) = nullptr;
  int (*get_error_string)(int code, const char** text) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char* name, int length, int device) = nullptr;
  int (*device_total_memory)(std::size_t* bytes, int device) = nullptr;
  int (*device_attribute)(int* value, DeviceAttribute attribute, int device) = nullptr;
  int (*device_bus_id)(char* id, int length, int device) = nullptr;
  int (*primary_context_retain)(DriverContext* context, int device) = nullptr;
  int (*primary_context_release)(int device) = nullptr;
  int (*context_set_current)(DriverContext context) = nullptr;
  int (*context_device)(int* device) = nullptr;  // of the current context
  int (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  int (*memory_allocate)(DevicePointer* pointer, std::size_t bytes) = nullptr;
  int (*memory_free)(DevicePointer pointer) = nullptr;
  int (*memory_set)(DevicePointer pointer, unsigned char value, std::size_t bytes,
                    Stream stream) = nullptr;
  int (*copy_to_host)(void* host, DevicePointer device, std::size_t bytes, Stream stream) = nullptr;
  int (*copy_to_device)(DevicePointer device, const void* host, std::size_t bytes,
                        Stream stream) = nullptr;
  int (*stream_create)(Stream* stream, unsigned flags) = nullptr;
  int (*stream_destroy)(Stream stream) = nullptr;
  int (*stream_synchronize)(Stream stream) = nullptr;
  int (*stream_is_capturing)(Stream stream, int* status) = nullptr;
  int (*begin_capture)(Stream stream, int mode) = nullptr;
  int (*exchange_capture_mode)(int* mode) = nullptr;  // of the calling thread
  int (*end_capture)(Stream stream, Graph* graph) = nullptr;
  int (*event_create)(Event* event, unsigned flags) = nullptr;
  int (*event_destroy)(Event event) = nullptr;
  int (*event_record)(Event event, Stream stream) = nullptr;
  int (*event_record_with_flags)(Event event, Stream stream, unsigned flags) = nullptr;
  int (*event_elapsed_ms)(float* milliseconds, Event begin, Event end) = nullptr;
  int (*graph_instantiate)(GraphExec* exec, Graph graph, unsigned long long flags) = nullptr;
  int (*graph_launch)(GraphExec exec, Stream stream) = nullptr;
  int (*graph_destroy)(Graph graph) = nullptr;
  int (*graph_exec_destroy)(GraphExec exec) = nullptr;
  int (*module_load)(Module* module, const void* image) = nullptr;
  int (*module_function)(Function* function, Module module, const char* name) = nullptr;
  int (*function_attribute)(Function function, int attribute, int value) = nullptr;
  int (*launch_kernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       Stream stream, void** parameters, void** extra) = nullptr;
};

struct NvmlDeviceObject;
using NvmlDevice = NvmlDeviceObject*;
inline constexpr int kNvmlClockSm = 1;
inline constexpr int kNvmlClockMemory = 2;
inline constexpr int kNvmlNotSupported = 3;
// Reasons for a lower clock that the user did not choose: power cap, hardware slowdown, thermal
// slowdown (software and hardware), power brake.
inline constexpr unsigned long long kNvmlThrottleReasons =
    0x4ULL | 0x8ULL | 0x20ULL | 0x40ULL | 0x80ULL;

struct NvmlApi {
  // Errors: as DriverApi::load().
  static Result<std::shared_ptr<const NvmlApi>> load(const std::string& library);

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_by_bus_id)(const char* bus_id, NvmlDevice* device) = nullptr;
  int (*clock_mhz)(NvmlDevice device, int kind, unsigned* mhz) = nullptr;
  int (*max_clock_mhz)(NvmlDevice device, int kind, unsigned* mhz) = nullptr;
  int (*power_milliwatt)(NvmlDevice device, unsigned* milliwatt) = nullptr;
  int (*temperature)(NvmlDevice device, int sensor, unsigned* celsius) = nullptr;
  int (*throttle_reasons)(NvmlDevice device, unsigned long long* reasons) = nullptr;
  // Counts since the driver was loaded. Null where NVML is older than the function.
  int (*total_energy_millijoule)(NvmlDevice device, unsigned long long* millijoule) = nullptr;
};

// Loads `library` and fills `*entry` with the address of `symbol`, for the tables of other modules.
class SharedLibrary {
 public:
  // Loads a library. It is never unloaded: CUDA's libraries do not survive that.
  static Result<SharedLibrary> open(const std::string& path);
  // Returns the copy that the process has loaded already, by whatever path. Errors: kNotFound.
  static Result<SharedLibrary> open_loaded(const std::string& path);
  // Loads the first of these that can be loaded. Errors: kUnsupported with the loader's reasons.
  static Result<SharedLibrary> open_first(const std::vector<std::string>& paths);
  // Does the same, but prefers a copy that the process has loaded already.
  static Result<SharedLibrary> share_or_open_first(const std::vector<std::string>& paths);
  template <class Entry>
  Status find(const char* symbol, Entry*& entry) const {
    FORETUNE_TRY(void* const address, address_of(symbol));
    // Data and function pointers have the same size on every system with dlsym.
    entry = reinterpret_cast<Entry*>(address);
    return {};
  }

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  Result<void*> address_of(const char* symbol) const;
  void* handle_;
  std::string path_;
};

}  // namespace foretune::cuda
