#include "foretune/cuda/driver_api.h"

#include <dlfcn.h>

#include <utility>

#include "foretune/base/text.h"

namespace foretune::cuda {

Result<SharedLibrary> SharedLibrary::open(const std::string& path) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    // No other thread can have replaced the reason: dlerror() is per thread in the C library.
    const char* const reason = ::dlerror();  // NOLINT(concurrency-mt-unsafe)
    return fail(ErrorCode::kUnsupported, "cannot load ", path, ": ",
                reason == nullptr ? "no reason was given" : reason);
  }
  return SharedLibrary(handle, path);
}

Result<SharedLibrary> SharedLibrary::open_loaded(const std::string& path) {
  // Not RTLD_GLOBAL: symbols that the owner of the library keeps local stay local.
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) {
    return fail(ErrorCode::kNotFound, path, " is not loaded");
  }
  return SharedLibrary(handle, path);
}

Result<SharedLibrary> SharedLibrary::open_first(const std::vector<std::string>& paths) {
  std::string reasons;
  for (const std::string& path : paths) {
    Result<SharedLibrary> library = open(path);
    if (library) {
      return library;
    }
    reasons += concat(reasons.empty() ? "" : "; ", library.error().message);
  }
  return fail(ErrorCode::kUnsupported, paths.empty() ? "no library was named" : reasons);
}

Result<SharedLibrary> SharedLibrary::share_or_open_first(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (Result<SharedLibrary> loaded = open_loaded(path)) {
      return loaded;
    }
  }
  return open_first(paths);
}

Result<void*> SharedLibrary::address_of(const char* symbol) const {
  void* const address = ::dlsym(handle_, symbol);
  if (address == nullptr) {
    return fail(ErrorCode::kUnsupported, path_, " has no ", symbol);
  }
  return address;
}

Result<std::shared_ptr<const DriverApi>> DriverApi::load(const std::string& library) {
  FORETUNE_TRY(const SharedLibrary driver, SharedLibrary::open(library));
  auto api = std::make_shared<DriverApi>();
  FORETUNE_TRY_STATUS(driver.find("cuInit", api->init));
  FORETUNE_TRY_STATUS(driver.find("cuDriverGetVersion", api->driver_version));
  FORETUNE_TRY_STATUS(driver.find("cuGetErrorString", api->get_error_string));
  FORETUNE_TRY_STATUS(driver.find("cuDeviceGetCount", api->device_count));
  FORETUNE_TRY_STATUS(driver.find("cuDeviceGet", api->device_get));
  FORETUNE_TRY_STATUS(driver.find("cuDeviceGetName", api->device_name));
  FORETUNE_TRY_STATUS(driver.find("cuDeviceTotalMem_v2", api->device_total_memory));
  FORETUNE_TRY_STATUS(driver.find("cuDeviceGetAttribute", api->device_attribute));
  FORETUNE_TRY_STATUS(driver.find("cuDeviceGetPCIBusId", api->device_bus_id));
  FORETUNE_TRY_STATUS(driver.find("cuDevicePrimaryCtxRetain", api->primary_context_retain));
  FORETUNE_TRY_STATUS(driver.find("cuDevicePrimaryCtxRelease_v2", api->primary_context_release));
  FORETUNE_TRY_STATUS(driver.find("cuCtxSetCurrent", api->context_set_current));
  FORETUNE_TRY_STATUS(driver.find("cuCtxGetDevice", api->context_device));
  FORETUNE_TRY_STATUS(driver.find("cuMemGetInfo_v2", api->memory_info));
  FORETUNE_TRY_STATUS(driver.find("cuMemAlloc_v2", api->memory_allocate));
  FORETUNE_TRY_STATUS(driver.find("cuMemFree_v2", api->memory_free));
  FORETUNE_TRY_STATUS(driver.find("cuMemsetD8Async", api->memory_set));
  FORETUNE_TRY_STATUS(driver.find("cuMemcpyDtoHAsync_v2", api->copy_to_host));
  FORETUNE_TRY_STATUS(driver.find("cuMemcpyHtoDAsync_v2", api->copy_to_device));
  FORETUNE_TRY_STATUS(driver.find("cuStreamCreate", api->stream_create));
  FORETUNE_TRY_STATUS(driver.find("cuStreamDestroy_v2", api->stream_destroy));
  FORETUNE_TRY_STATUS(driver.find("cuStreamSynchronize", api->stream_synchronize));
  FORETUNE_TRY_STATUS(driver.find("cuStreamIsCapturing", api->stream_is_capturing));
  FORETUNE_TRY_STATUS(driver.find("cuStreamBeginCapture_v2", api->begin_capture));
  FORETUNE_TRY_STATUS(driver.find("cuThreadExchangeStreamCaptureMode", api->exchange_capture_mode));
  FORETUNE_TRY_STATUS(driver.find("cuStreamEndCapture", api->end_capture));
  FORETUNE_TRY_STATUS(driver.find("cuEventCreate", api->event_create));
  FORETUNE_TRY_STATUS(driver.find("cuEventDestroy_v2", api->event_destroy));
  FORETUNE_TRY_STATUS(driver.find("cuEventRecord", api->event_record));
  FORETUNE_TRY_STATUS(driver.find("cuEventRecordWithFlags", api->event_record_with_flags));
  FORETUNE_TRY_STATUS(driver.find("cuEventElapsedTime", api->event_elapsed_ms));
  FORETUNE_TRY_STATUS(driver.find("cuGraphInstantiateWithFlags", api->graph_instantiate));
  FORETUNE_TRY_STATUS(driver.find("cuGraphLaunch", api->graph_launch));
  FORETUNE_TRY_STATUS(driver.find("cuGraphDestroy", api->graph_destroy));
  FORETUNE_TRY_STATUS(driver.find("cuGraphExecDestroy", api->graph_exec_destroy));
  FORETUNE_TRY_STATUS(driver.find("cuModuleLoadData", api->module_load));
  FORETUNE_TRY_STATUS(driver.find("cuModuleGetFunction", api->module_function));
  FORETUNE_TRY_STATUS(driver.find("cuFuncSetAttribute", api->function_attribute));
  FORETUNE_TRY_STATUS(driver.find("cuLaunchKernel", api->launch_kernel));
  return api;
}

Status DriverApi::check(int code, std::string_view call) const {
  if (code == kDriverSuccess) {
    return {};
  }
  const char* text = nullptr;
  if (get_error_string(code, &text) != kDriverSuccess || text == nullptr) {
    text = "unknown error";
  }
  return fail(ErrorCode::kIo, call, ": ", text, " (CUDA error ", code, ")");
}

Result<std::shared_ptr<const NvmlApi>> NvmlApi::load(const std::string& library) {
  FORETUNE_TRY(const SharedLibrary nvml, SharedLibrary::open(library));
  auto api = std::make_shared<NvmlApi>();
  FORETUNE_TRY_STATUS(nvml.find("nvmlInit_v2", api->init));
  FORETUNE_TRY_STATUS(nvml.find("nvmlShutdown", api->shutdown));
  FORETUNE_TRY_STATUS(nvml.find("nvmlDeviceGetHandleByPciBusId_v2", api->device_by_bus_id));
  FORETUNE_TRY_STATUS(nvml.find("nvmlDeviceGetClockInfo", api->clock_mhz));
  FORETUNE_TRY_STATUS(nvml.find("nvmlDeviceGetMaxClockInfo", api->max_clock_mhz));
  FORETUNE_TRY_STATUS(nvml.find("nvmlDeviceGetPowerUsage", api->power_milliwatt));
  FORETUNE_TRY_STATUS(nvml.find("nvmlDeviceGetTemperature", api->temperature));
  FORETUNE_TRY_STATUS(
      nvml.find("nvmlDeviceGetCurrentClocksThrottleReasons", api->throttle_reasons));
  // A missing symbol matters only to callers that need energy.
  static_cast<void>(nvml.find("nvmlDeviceGetTotalEnergyConsumption", api->total_energy_millijoule));
  return api;
}

}  // namespace foretune::cuda
