// Compares our declarations of CUDA's driver with cuda.h, where a toolkit is installed: a
// difference does not compile. Nothing of CUDA is linked.
#include <cuda.h>
#include <gtest/gtest.h>

#include "foretune/cuda/driver_api.h"
#include "foretune/cuda/testing/abi.h"

namespace foretune::cuda {
namespace {

// The macros of cuda.h turn names into versioned names, which are the ones that we look up.
static_assert(kMatches<decltype(DriverApi::init), decltype(cuInit)>);
static_assert(kMatches<decltype(DriverApi::driver_version), decltype(cuDriverGetVersion)>);
static_assert(kMatches<decltype(DriverApi::get_error_string), decltype(cuGetErrorString)>);
static_assert(kMatches<decltype(DriverApi::device_count), decltype(cuDeviceGetCount)>);
static_assert(kMatches<decltype(DriverApi::device_get), decltype(cuDeviceGet)>);
static_assert(kMatches<decltype(DriverApi::device_name), decltype(cuDeviceGetName)>);
static_assert(kMatches<decltype(DriverApi::device_total_memory), decltype(cuDeviceTotalMem_v2)>);
static_assert(kMatches<decltype(DriverApi::device_attribute), decltype(cuDeviceGetAttribute)>);
static_assert(kMatches<decltype(DriverApi::device_bus_id), decltype(cuDeviceGetPCIBusId)>);
static_assert(
    kMatches<decltype(DriverApi::primary_context_retain), decltype(cuDevicePrimaryCtxRetain)>);
static_assert(
    kMatches<decltype(DriverApi::primary_context_release), decltype(cuDevicePrimaryCtxRelease_v2)>);
static_assert(kMatches<decltype(DriverApi::context_set_current), decltype(cuCtxSetCurrent)>);
static_assert(kMatches<decltype(DriverApi::exchange_capture_mode),
                       decltype(cuThreadExchangeStreamCaptureMode)>);
static_assert(kMatches<decltype(DriverApi::context_device), decltype(cuCtxGetDevice)>);
static_assert(kMatches<decltype(DriverApi::memory_info), decltype(cuMemGetInfo_v2)>);
static_assert(kMatches<decltype(DriverApi::memory_allocate), decltype(cuMemAlloc_v2)>);
static_assert(kMatches<decltype(DriverApi::memory_free), decltype(cuMemFree_v2)>);
static_assert(kMatches<decltype(DriverApi::memory_set), decltype(cuMemsetD8Async)>);
static_assert(kMatches<decltype(DriverApi::copy_to_host), decltype(cuMemcpyDtoHAsync_v2)>);
static_assert(kMatches<decltype(DriverApi::copy_to_device), decltype(cuMemcpyHtoDAsync_v2)>);
static_assert(kMatches<decltype(DriverApi::stream_create), decltype(cuStreamCreate)>);
static_assert(kMatches<decltype(DriverApi::stream_destroy), decltype(cuStreamDestroy_v2)>);
static_assert(kMatches<decltype(DriverApi::stream_synchronize), decltype(cuStreamSynchronize)>);
static_assert(kMatches<decltype(DriverApi::stream_is_capturing), decltype(cuStreamIsCapturing)>);
static_assert(kMatches<decltype(DriverApi::begin_capture), decltype(cuStreamBeginCapture_v2)>);
static_assert(kMatches<decltype(DriverApi::end_capture), decltype(cuStreamEndCapture)>);
static_assert(kMatches<decltype(DriverApi::event_create), decltype(cuEventCreate)>);
static_assert(kMatches<decltype(DriverApi::event_destroy), decltype(cuEventDestroy_v2)>);
static_assert(kMatches<decltype(DriverApi::event_record), decltype(cuEventRecord)>);
static_assert(
    kMatches<decltype(DriverApi::event_record_with_flags), decltype(cuEventRecordWithFlags)>);
static_assert(kMatches<decltype(DriverApi::event_elapsed_ms), decltype(cuEventElapsedTime)>);
static_assert(
    kMatches<decltype(DriverApi::graph_instantiate), decltype(cuGraphInstantiateWithFlags)>);
static_assert(kMatches<decltype(DriverApi::graph_launch), decltype(cuGraphLaunch)>);
static_assert(kMatches<decltype(DriverApi::graph_destroy), decltype(cuGraphDestroy)>);
static_assert(kMatches<decltype(DriverApi::graph_exec_destroy), decltype(cuGraphExecDestroy)>);
static_assert(kMatches<decltype(DriverApi::module_load), decltype(cuModuleLoadData)>);
static_assert(kMatches<decltype(DriverApi::module_function), decltype(cuModuleGetFunction)>);
static_assert(kMatches<decltype(DriverApi::function_attribute), decltype(cuFuncSetAttribute)>);
static_assert(kMatches<decltype(DriverApi::launch_kernel), decltype(cuLaunchKernel)>);

static_assert(kDriverSuccess == CUDA_SUCCESS && kDriverOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kDriverInvalidValue == CUDA_ERROR_INVALID_VALUE &&
              kDriverLaunchOutOfResources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
static_assert(kMaxDynamicSharedBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventRecordExternal == CU_EVENT_RECORD_EXTERNAL);
static_assert(kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);

TEST(DriverAbi, AttributesHaveTheNumbersOfTheHeader) {
  const auto number = [](DeviceAttribute attribute) { return static_cast<int>(attribute); };
  EXPECT_EQ(number(DeviceAttribute::kWarpSize), CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  EXPECT_EQ(number(DeviceAttribute::kClockKhz), CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  EXPECT_EQ(number(DeviceAttribute::kMultiprocessors), CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(number(DeviceAttribute::kMemoryClockKhz), CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  EXPECT_EQ(number(DeviceAttribute::kMemoryBusBits), CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  EXPECT_EQ(number(DeviceAttribute::kL2Bytes), CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  EXPECT_EQ(number(DeviceAttribute::kThreadsPerMultiprocessor),
            CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  EXPECT_EQ(number(DeviceAttribute::kCapabilityMajor),
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(number(DeviceAttribute::kCapabilityMinor),
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(number(DeviceAttribute::kSharedBytesPerMultiprocessor),
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  EXPECT_EQ(number(DeviceAttribute::kRegistersPerMultiprocessor),
            CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  EXPECT_EQ(number(DeviceAttribute::kSharedBytesPerBlockOptin),
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
}

}  // namespace
}  // namespace foretune::cuda
