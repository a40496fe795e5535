// The driver of the fake device: its facts and its context; see fake_gpu.h.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>

#include "foretune/cuda/driver_api.h"
#include "tests/fake_gpu/fake_abi.h"
#include "tests/fake_gpu/fake_state.h"

namespace foretune::fake_gpu {
namespace {

using cuda::DeviceAttribute;
using cuda::kDriverSuccess;

constexpr int kDriverVersion = 13000;

cuda::ContextObject primary_context;

int attribute_of(DeviceAttribute attribute) {
  switch (attribute) {
    case DeviceAttribute::kWarpSize:
      return 32;
    case DeviceAttribute::kClockKhz:
      return 1'980'000;
    case DeviceAttribute::kMultiprocessors:
      return 132;
    case DeviceAttribute::kMemoryClockKhz:
      return 3'201'000;
    case DeviceAttribute::kMemoryBusBits:
      return 6144;
    case DeviceAttribute::kL2Bytes:
      return 50 << 20;
    case DeviceAttribute::kThreadsPerMultiprocessor:
      return 2048;
    case DeviceAttribute::kCapabilityMajor:
      return 9;
    case DeviceAttribute::kCapabilityMinor:
      return 0;
    case DeviceAttribute::kSharedBytesPerMultiprocessor:
      return 228 << 10;
    case DeviceAttribute::kRegistersPerMultiprocessor:
      return 65536;
    case DeviceAttribute::kSharedBytesPerBlockOptin:
      return 227 << 10;
  }
  return -1;
}

const char* words_of(int code) {
  switch (code) {
    case kDriverSuccess:
      return "no error";
    case kInvalidArgument:
      return "invalid argument";
    case cuda::kDriverOutOfMemory:
      return "out of memory";
    case kNotInitialized:
      return "initialization error";
    case kNoDevice:
      return "no CUDA-capable device is detected";
    case kInvalidDevice:
      return "invalid device ordinal";
    case kInvalidContext:
      return "invalid device context";
    case kInvalidPtx:
      return "a PTX JIT compilation failed";
    case kInvalidHandle:
      return "invalid resource handle";
    case kNotFound:
      return "named symbol not found";
    case kIllegalAddress:
      return "an illegal memory access was encountered";
    case kLaunchFailed:
      return "unspecified launch failure";
    case kCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case kCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case kCaptureUnmatched:
      return "capture was not initiated in this stream";
    case kCaptureImplicit:
      return "operation would make the legacy stream depend on a capturing blocking stream";
    default:
      return nullptr;
  }
}

// Returns the code of a call about a device that needs no context.
int about_device(int device, const void* to) {
  State& shared = state();
  const std::lock_guard lock(shared.mutex);
  if (!shared.initialized) {
    return kNotInitialized;
  }
  if (shared.broken != 0) {
    return shared.broken;
  }
  if (device != 0) {
    return kInvalidDevice;
  }
  return to == nullptr ? kInvalidArgument : kDriverSuccess;
}

// Writes at most `length` characters including the final 0.
int give_text(std::string_view text, char* to, int length) {
  if (length <= 0) {
    return kInvalidArgument;
  }
  const std::size_t copied = std::min(text.size(), static_cast<std::size_t>(length) - 1);
  std::memcpy(to, text.data(), copied);
  to[copied] = '\0';
  return kDriverSuccess;
}

}  // namespace

int cuInit(unsigned flags) {
  if (flags != 0) {
    return kInvalidArgument;
  }
  if (faults().no_device) {
    return kNoDevice;
  }
  State& device = state();
  const std::lock_guard lock(device.mutex);
  device.initialized = true;
  return device.broken;
}

int cuDriverGetVersion(int* version) {
  if (version == nullptr) {
    return kInvalidArgument;
  }
  *version = kDriverVersion;
  return kDriverSuccess;
}

int cuGetErrorString(int code, const char** text) {
  if (text == nullptr) {
    return kInvalidArgument;
  }
  *text = words_of(code);
  return *text == nullptr ? kInvalidArgument : kDriverSuccess;
}

int cuDeviceGetCount(int* count) {
  const int code = about_device(0, count);
  if (code == kDriverSuccess) {
    *count = 1;
  }
  return code;
}

int cuDeviceGet(int* device, int ordinal) {
  const int code = about_device(ordinal, device);
  if (code == kDriverSuccess) {
    *device = 0;
  }
  return code;
}

int cuDeviceGetName(char* name, int length, int device) {
  const int code = about_device(device, name);
  return code == kDriverSuccess ? give_text(device_name(), name, length) : code;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  const int code = about_device(device, bytes);
  if (code == kDriverSuccess) {
    *bytes = Memory::kTotal;
  }
  return code;
}

int cuDeviceGetAttribute(int* value, DeviceAttribute attribute, int device) {
  if (const int code = about_device(device, value); code != kDriverSuccess) {
    return code;
  }
  const int known = attribute_of(attribute);
  if (known < 0) {
    return kInvalidArgument;
  }
  *value = known;
  return kDriverSuccess;
}

int cuDeviceGetPCIBusId(char* id, int length, int device) {
  const int code = about_device(device, id);
  return code == kDriverSuccess ? give_text(kBusId, id, length) : code;
}

int cuDevicePrimaryCtxRetain(cuda::DriverContext* context, int device) {
  const int code = about_device(device, context);
  if (code == kDriverSuccess) {
    State& shared = state();
    const std::lock_guard lock(shared.mutex);
    ++shared.retained;
    *context = &primary_context;
  }
  return code;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  int here = 0;
  if (const int code = about_device(device, &here); code != kDriverSuccess) {
    return code;
  }
  State& shared = state();
  const std::lock_guard lock(shared.mutex);
  if (shared.retained == 0) {
    return kInvalidContext;
  }
  if (--shared.retained == 0) {
    shared.memory.free_all();
  }
  return kDriverSuccess;
}

int cuCtxSetCurrent(cuda::DriverContext context) {
  int here = 0;
  if (const int code = about_device(0, &here); code != kDriverSuccess) {
    return code;
  }
  if (context != nullptr && context != &primary_context) {
    return kInvalidContext;
  }
  context_is_current() = context != nullptr;
  return kDriverSuccess;
}

int cuCtxGetDevice(int* device) {
  const int code = about_device(0, device);
  if (code != kDriverSuccess) {
    return code;
  }
  if (!context_is_current()) {
    return kInvalidContext;
  }
  *device = 0;
  return kDriverSuccess;
}

}  // namespace foretune::fake_gpu
