// The functions of CUDA's driver, NVML, cuBLASLt and cuDNN that the fake exports. Each is declared
// with the type by which the table of functions calls it. Thread safety: any thread may call them.
#pragma once

#include <type_traits>

#include "foretune/cuda/cublaslt_api.h"
#include "foretune/cuda/cudnn_api.h"
#include "foretune/cuda/driver_api.h"

namespace foretune::fake_gpu {

// The type of the function behind an entry of a table of functions, used to declare that function.
template <class Pointer>
using EntryOf = std::remove_pointer_t<Pointer>;

// NOLINTBEGIN(readability-identifier-naming)
#pragma GCC visibility push(default)
extern "C" {

EntryOf<decltype(cuda::DriverApi::init)> cuInit;
EntryOf<decltype(cuda::DriverApi::driver_version)> cuDriverGetVersion;
EntryOf<decltype(cuda::DriverApi::get_error_string)> cuGetErrorString;
EntryOf<decltype(cuda::DriverApi::device_count)> cuDeviceGetCount;
EntryOf<decltype(cuda::DriverApi::device_get)> cuDeviceGet;
EntryOf<decltype(cuda::DriverApi::device_name)> cuDeviceGetName;
EntryOf<decltype(cuda::DriverApi::device_total_memory)> cuDeviceTotalMem_v2;
EntryOf<decltype(cuda::DriverApi::device_attribute)> cuDeviceGetAttribute;
EntryOf<decltype(cuda::DriverApi::device_bus_id)> cuDeviceGetPCIBusId;
EntryOf<decltype(cuda::DriverApi::primary_context_retain)> cuDevicePrimaryCtxRetain;
EntryOf<decltype(cuda::DriverApi::primary_context_release)> cuDevicePrimaryCtxRelease_v2;
EntryOf<decltype(cuda::DriverApi::context_set_current)> cuCtxSetCurrent;
EntryOf<decltype(cuda::DriverApi::context_device)> cuCtxGetDevice;
EntryOf<decltype(cuda::DriverApi::memory_info)> cuMemGetInfo_v2;
EntryOf<decltype(cuda::DriverApi::memory_allocate)> cuMemAlloc_v2;
EntryOf<decltype(cuda::DriverApi::memory_free)> cuMemFree_v2;
EntryOf<decltype(cuda::DriverApi::memory_set)> cuMemsetD8Async;
EntryOf<decltype(cuda::DriverApi::copy_to_host)> cuMemcpyDtoHAsync_v2;
EntryOf<decltype(cuda::DriverApi::copy_to_device)> cuMemcpyHtoDAsync_v2;
EntryOf<decltype(cuda::DriverApi::stream_create)> cuStreamCreate;
EntryOf<decltype(cuda::DriverApi::stream_destroy)> cuStreamDestroy_v2;
EntryOf<decltype(cuda::DriverApi::stream_synchronize)> cuStreamSynchronize;
EntryOf<decltype(cuda::DriverApi::stream_is_capturing)> cuStreamIsCapturing;
EntryOf<decltype(cuda::DriverApi::begin_capture)> cuStreamBeginCapture_v2;
EntryOf<decltype(cuda::DriverApi::exchange_capture_mode)> cuThreadExchangeStreamCaptureMode;
EntryOf<decltype(cuda::DriverApi::end_capture)> cuStreamEndCapture;
EntryOf<decltype(cuda::DriverApi::event_create)> cuEventCreate;
EntryOf<decltype(cuda::DriverApi::event_destroy)> cuEventDestroy_v2;
EntryOf<decltype(cuda::DriverApi::event_record)> cuEventRecord;
EntryOf<decltype(cuda::DriverApi::event_record_with_flags)> cuEventRecordWithFlags;
EntryOf<decltype(cuda::DriverApi::event_elapsed_ms)> cuEventElapsedTime;
EntryOf<decltype(cuda::DriverApi::graph_instantiate)> cuGraphInstantiateWithFlags;
EntryOf<decltype(cuda::DriverApi::graph_launch)> cuGraphLaunch;
EntryOf<decltype(cuda::DriverApi::graph_destroy)> cuGraphDestroy;
EntryOf<decltype(cuda::DriverApi::graph_exec_destroy)> cuGraphExecDestroy;
EntryOf<decltype(cuda::DriverApi::module_load)> cuModuleLoadData;
EntryOf<decltype(cuda::DriverApi::module_function)> cuModuleGetFunction;
EntryOf<decltype(cuda::DriverApi::function_attribute)> cuFuncSetAttribute;
EntryOf<decltype(cuda::DriverApi::launch_kernel)> cuLaunchKernel;

EntryOf<decltype(cuda::NvmlApi::init)> nvmlInit_v2;
EntryOf<decltype(cuda::NvmlApi::shutdown)> nvmlShutdown;
EntryOf<decltype(cuda::NvmlApi::device_by_bus_id)> nvmlDeviceGetHandleByPciBusId_v2;
EntryOf<decltype(cuda::NvmlApi::clock_mhz)> nvmlDeviceGetClockInfo;
EntryOf<decltype(cuda::NvmlApi::max_clock_mhz)> nvmlDeviceGetMaxClockInfo;
EntryOf<decltype(cuda::NvmlApi::power_milliwatt)> nvmlDeviceGetPowerUsage;
EntryOf<decltype(cuda::NvmlApi::temperature)> nvmlDeviceGetTemperature;
EntryOf<decltype(cuda::NvmlApi::throttle_reasons)> nvmlDeviceGetCurrentClocksThrottleReasons;
EntryOf<decltype(cuda::NvmlApi::total_energy_millijoule)> nvmlDeviceGetTotalEnergyConsumption;

EntryOf<decltype(cublaslt::Api::get_version)> cublasLtGetVersion;
EntryOf<decltype(cublaslt::Api::get_status_string)> cublasLtGetStatusString;
EntryOf<decltype(cublaslt::Api::create)> cublasLtCreate;
EntryOf<decltype(cublaslt::Api::destroy)> cublasLtDestroy;
EntryOf<decltype(cublaslt::Api::algorithm_ids)> cublasLtMatmulAlgoGetIds;
EntryOf<decltype(cublaslt::Api::algorithm_init)> cublasLtMatmulAlgoInit;
EntryOf<decltype(cublaslt::Api::algorithm_check)> cublasLtMatmulAlgoCheck;
EntryOf<decltype(cublaslt::Api::algorithm_heuristic)> cublasLtMatmulAlgoGetHeuristic;
EntryOf<decltype(cublaslt::Api::capability_get)> cublasLtMatmulAlgoCapGetAttribute;
EntryOf<decltype(cublaslt::Api::config_set)> cublasLtMatmulAlgoConfigSetAttribute;
EntryOf<decltype(cublaslt::Api::config_get)> cublasLtMatmulAlgoConfigGetAttribute;
EntryOf<decltype(cublaslt::Api::matmul)> cublasLtMatmul;
EntryOf<decltype(cublaslt::Api::descriptor_create)> cublasLtMatmulDescCreate;
EntryOf<decltype(cublaslt::Api::descriptor_destroy)> cublasLtMatmulDescDestroy;
EntryOf<decltype(cublaslt::Api::descriptor_set)> cublasLtMatmulDescSetAttribute;
EntryOf<decltype(cublaslt::Api::descriptor_get)> cublasLtMatmulDescGetAttribute;
EntryOf<decltype(cublaslt::Api::layout_create)> cublasLtMatrixLayoutCreate;
EntryOf<decltype(cublaslt::Api::layout_destroy)> cublasLtMatrixLayoutDestroy;
EntryOf<decltype(cublaslt::Api::layout_set)> cublasLtMatrixLayoutSetAttribute;
EntryOf<decltype(cublaslt::Api::layout_get)> cublasLtMatrixLayoutGetAttribute;
EntryOf<decltype(cublaslt::Api::preference_create)> cublasLtMatmulPreferenceCreate;
EntryOf<decltype(cublaslt::Api::preference_destroy)> cublasLtMatmulPreferenceDestroy;
EntryOf<decltype(cublaslt::Api::preference_set)> cublasLtMatmulPreferenceSetAttribute;

EntryOf<decltype(cudnn::Api::get_version)> cudnnGetVersion;
EntryOf<decltype(cudnn::Api::get_error_string)> cudnnGetErrorString;
EntryOf<decltype(cudnn::Api::get_last_error)> cudnnGetLastErrorString;
EntryOf<decltype(cudnn::Api::create)> cudnnCreate;
EntryOf<decltype(cudnn::Api::destroy)> cudnnDestroy;
EntryOf<decltype(cudnn::Api::set_stream)> cudnnSetStream;
EntryOf<decltype(cudnn::Api::get_stream)> cudnnGetStream;
EntryOf<decltype(cudnn::Api::descriptor_create)> cudnnBackendCreateDescriptor;
EntryOf<decltype(cudnn::Api::descriptor_destroy)> cudnnBackendDestroyDescriptor;
EntryOf<decltype(cudnn::Api::finalize)> cudnnBackendFinalize;
EntryOf<decltype(cudnn::Api::set)> cudnnBackendSetAttribute;
EntryOf<decltype(cudnn::Api::get)> cudnnBackendGetAttribute;
EntryOf<decltype(cudnn::Api::execute)> cudnnBackendExecute;

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)

}  // namespace foretune::fake_gpu
