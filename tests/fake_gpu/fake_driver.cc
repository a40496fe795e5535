// The driver of the fake device: memory, streams, events, graphs and kernels; see fake_gpu.h.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "foretune/cuda/driver_api.h"
#include "tests/fake_gpu/fake_abi.h"
#include "tests/fake_gpu/fake_kernels.h"
#include "tests/fake_gpu/fake_state.h"
#include "tests/fake_gpu/fake_triton.h"

namespace foretune::fake_gpu {
namespace {

using cuda::DevicePointer;
using cuda::kDriverSuccess;

// Runs `body` with the state unless the context cannot be used.
template <class Body>
int with_context(Body body) {
  State& device = state();
  const std::lock_guard lock(device.mutex);
  if (!device.initialized) {
    return kNotInitialized;
  }
  if (device.broken != 0) {
    return device.broken;
  }
  if (!context_is_current() || device.retained == 0) {
    return kInvalidContext;
  }
  return body(device);
}

// As with_context(), for calls that must not happen while this thread captures: the capture is
// lost.
template <class Body>
int outside_capture(Body body) {
  return with_context([&](State& device) {
    bool capturing = false;
    for (cuda::StreamObject* const stream : device.streams) {
      if (stream->capture && stream->capture->thread == std::this_thread::get_id()) {
        stream->capture->lost = true;
        capturing = true;
      }
    }
    return capturing ? kCaptureUnsupported : body(device);
  });
}

// Creates and destroys objects whose handles are checked.
template <class Object>
Object* make(State& device, Object object) {
  auto made = std::make_unique<Object>(std::move(object));
  device.live.insert(made.get());
  return made.release();
}
template <class Object>
int destroy(State& device, Object* object) {
  if (device.live.erase(object) == 0) {
    return kInvalidHandle;
  }
  const std::unique_ptr<Object> owner(object);
  return kDriverSuccess;
}

// Copies do not enter captures.
template <class Body>
int copy(cuda::Stream stream, std::size_t bytes, Body body) {
  return outside_capture([&](State& device) {
    return device.submit(stream, [&](State& on) {
      on.clock_ns += 3000 + static_cast<double>(bytes) / 50;
      return body(on.memory) ? kDriverSuccess : kIllegalAddress;
    });
  });
}

int record(cuda::Event event, cuda::Stream stream, unsigned flags) {
  return with_context([&](State& device) {
    const cuda::StreamObject* const target = device.find_stream(stream);
    if (target == nullptr || !device.live.contains(event)) {
      return kInvalidHandle;
    }
    const bool external = flags == cuda::kEventRecordExternal;
    if (flags > cuda::kEventRecordExternal || (external && !target->capture)) {
      return kInvalidArgument;
    }
    if (!external && target->capture) {
      return kCaptureImplicit;
    }
    return device.submit(stream, [event](State& on) {
      // An event may be destroyed before the graph that records it is launched.
      if (!on.live.contains(event)) {
        return kIllegalAddress;
      }
      event->time_ns = on.clock_ns;
      return kDriverSuccess;
    });
  });
}

}  // namespace

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return with_context([&](State& device) {
    if (free == nullptr || total == nullptr) {
      return kInvalidArgument;
    }
    *free = Memory::kTotal - device.memory.used();
    *total = Memory::kTotal;
    return kDriverSuccess;
  });
}

int cuMemAlloc_v2(DevicePointer* pointer, std::size_t bytes) {
  return outside_capture([&](State& device) {
    return pointer == nullptr ? kInvalidArgument : device.memory.allocate(bytes, *pointer);
  });
}

int cuMemFree_v2(DevicePointer pointer) {
  return outside_capture([&](State& device) { return device.memory.free(pointer); });
}

int cuMemsetD8Async(DevicePointer pointer, unsigned char value, std::size_t bytes,
                    cuda::Stream stream) {
  return with_context([&](State& device) {
    return device.submit(stream, [=](State& on) {
      if (!on.memory.set(pointer, value, bytes)) {
        return kIllegalAddress;
      }
      if (bytes >= kFlushBytes) {
        on.cached.clear();
      }
      on.clock_ns += 1500 + static_cast<double>(bytes) / 3000;
      return kDriverSuccess;
    });
  });
}

int cuMemcpyDtoHAsync_v2(void* host, DevicePointer device, std::size_t bytes, cuda::Stream stream) {
  return copy(stream, bytes, [=](Memory& memory) {
    const std::byte* const from = memory.readable(device, bytes);
    if (from != nullptr && bytes > 0) {
      std::memcpy(host, from, bytes);
    }
    return from != nullptr;
  });
}

int cuMemcpyHtoDAsync_v2(DevicePointer device, const void* host, std::size_t bytes,
                         cuda::Stream stream) {
  return copy(stream, bytes, [=](Memory& memory) {
    std::byte* const to = memory.writable(device, bytes);
    if (to != nullptr && bytes > 0) {
      std::memcpy(to, host, bytes);
    }
    return to != nullptr;
  });
}

int cuStreamCreate(cuda::Stream* stream, unsigned flags) {
  return with_context([&](State& device) {
    if (stream == nullptr || flags > cuda::kStreamNonBlocking) {
      return kInvalidArgument;
    }
    *stream = make(device, cuda::StreamObject{});
    device.streams.insert(*stream);
    return kDriverSuccess;
  });
}

int cuStreamDestroy_v2(cuda::Stream stream) {
  return with_context([&](State& device) {
    device.streams.erase(stream);
    return destroy(device, stream);
  });
}

int cuStreamSynchronize(cuda::Stream stream) {
  bool hangs = false;
  const int code = with_context([&](State& device) {
    cuda::StreamObject* const target = device.find_stream(stream);
    if (target == nullptr) {
      return kInvalidHandle;
    }
    if (target->capture) {
      target->capture->lost = true;
      return kCaptureUnsupported;
    }
    hangs = device.hung;
    return kDriverSuccess;
  });
  // Without the lock: the rest of the process goes on.
  while (hangs) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return code;
}

int cuStreamIsCapturing(cuda::Stream stream, int* status) {
  return with_context([&](State& device) {
    const cuda::StreamObject* const target = device.find_stream(stream);
    if (target == nullptr || status == nullptr) {
      return target == nullptr ? kInvalidHandle : kInvalidArgument;
    }
    *status = target->capture ? 1 : cuda::kCaptureNone;
    return kDriverSuccess;
  });
}

int cuStreamBeginCapture_v2(cuda::Stream stream, int mode) {
  return with_context([&](State& device) {
    cuda::StreamObject* const target = device.find_stream(stream);
    if (target == nullptr) {
      return kInvalidHandle;
    }
    if (mode < 0 || mode > 2) {
      return kInvalidArgument;
    }
    // The legacy stream cannot capture.
    if (stream == nullptr || target->capture) {
      return kCaptureUnsupported;
    }
    target->capture.emplace().thread = std::this_thread::get_id();
    return kDriverSuccess;
  });
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int current = 0;
  if (mode == nullptr || *mode < 0 || *mode > cuda::kCaptureRelaxed) {
    return kInvalidArgument;
  }
  std::swap(current, *mode);
  return kDriverSuccess;
}

int cuStreamEndCapture(cuda::Stream stream, cuda::Graph* graph) {
  return with_context([&](State& device) {
    cuda::StreamObject* const target = device.find_stream(stream);
    if (target == nullptr || graph == nullptr) {
      return target == nullptr ? kInvalidHandle : kInvalidArgument;
    }
    *graph = nullptr;
    if (!target->capture) {
      return kCaptureUnmatched;
    }
    const cuda::StreamCapture capture = *std::exchange(target->capture, std::nullopt);
    if (capture.lost) {
      return kCaptureInvalidated;
    }
    *graph = make(device, cuda::GraphObject{capture.operations});
    return kDriverSuccess;
  });
}

int cuEventCreate(cuda::Event* event, unsigned /*flags*/) {
  return with_context([&](State& device) {
    if (event == nullptr) {
      return kInvalidArgument;
    }
    *event = make(device, cuda::EventObject{});
    return kDriverSuccess;
  });
}

int cuEventDestroy_v2(cuda::Event event) {
  return with_context([&](State& device) { return destroy(device, event); });
}

int cuEventRecord(cuda::Event event, cuda::Stream stream) { return record(event, stream, 0); }

int cuEventRecordWithFlags(cuda::Event event, cuda::Stream stream, unsigned flags) {
  return record(event, stream, flags);
}

int cuEventElapsedTime(float* milliseconds, cuda::Event begin, cuda::Event end) {
  return with_context([&](State& device) {
    if (milliseconds == nullptr) {
      return kInvalidArgument;
    }
    if (!device.live.contains(begin) || !device.live.contains(end) || !begin->time_ns ||
        !end->time_ns) {
      return kInvalidHandle;
    }
    if (faults().busy) {
      return cuda::kDriverNotReady;
    }
    *milliseconds = static_cast<float>((*end->time_ns - *begin->time_ns) * 1e-6);
    return kDriverSuccess;
  });
}

int cuGraphInstantiateWithFlags(cuda::GraphExec* exec, cuda::Graph graph,
                                unsigned long long /*flags*/) {
  return with_context([&](State& device) {
    if (exec == nullptr || !device.live.contains(graph)) {
      return exec == nullptr ? kInvalidArgument : kInvalidHandle;
    }
    *exec = make(device, cuda::GraphExecObject{graph->operations});
    return kDriverSuccess;
  });
}

int cuGraphLaunch(cuda::GraphExec exec, cuda::Stream stream) {
  return outside_capture([&](State& device) {
    if (!device.live.contains(exec) || device.find_stream(stream) == nullptr) {
      return kInvalidHandle;
    }
    device.clock_ns += 3000;
    for (const Operation& operation : exec->operations) {
      if (const int code = device.execute(operation); code != kDriverSuccess) {
        return code;
      }
    }
    return kDriverSuccess;
  });
}

int cuGraphDestroy(cuda::Graph graph) {
  return with_context([&](State& device) { return destroy(device, graph); });
}

int cuGraphExecDestroy(cuda::GraphExec exec) {
  return with_context([&](State& device) { return destroy(device, exec); });
}

int cuModuleLoadData(cuda::Module* module, const void* image) {
  return with_context([&](State& device) {
    if (module == nullptr || image == nullptr) {
      return kInvalidArgument;
    }
    const std::string_view text = static_cast<const char*>(image);
    if (text.starts_with(kTritonImage)) {
      const cuda::Function function = triton_function(text);
      if (function == nullptr) {
        return kInvalidPtx;
      }
      *module = make(device, cuda::ModuleObject{function});
      return kDriverSuccess;
    }
    for (const cuda::FunctionObject& kernel : kernels()) {
      if (text.find(kernel.name) == std::string_view::npos) {
        return kInvalidPtx;
      }
    }
    *module = make(device, cuda::ModuleObject{});
    return kDriverSuccess;
  });
}

int cuModuleGetFunction(cuda::Function* function, cuda::Module module, const char* name) {
  return with_context([&](State& device) {
    if (function == nullptr || name == nullptr) {
      return kInvalidArgument;
    }
    if (!device.live.contains(module)) {
      return kInvalidHandle;
    }
    if (module->function != nullptr) {
      *function = module->function;
      return std::string_view(name) == module->function->name ? kDriverSuccess : kNotFound;
    }
    for (cuda::FunctionObject& kernel : kernels()) {
      if (std::string_view(name) == kernel.name) {
        *function = &kernel;
        return kDriverSuccess;
      }
    }
    return kNotFound;
  });
}

int cuFuncSetAttribute(cuda::Function function, int attribute, int value) {
  return with_context([&](State& /*device*/) {
    if (!is_triton_function(function)) {
      return kInvalidHandle;
    }
    const bool is_possible = attribute == cuda::kMaxDynamicSharedBytes && value <= (227 << 10);
    return is_possible ? kDriverSuccess : kInvalidArgument;
  });
}

int cuLaunchKernel(cuda::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   cuda::Stream stream, void** parameters, void** extra) {
  return with_context([&](State& device) {
    const bool known =
        is_triton_function(function) ||
        std::ranges::any_of(kernels(), [&](const auto& kernel) { return &kernel == function; });
    if (!known) {
      return kInvalidHandle;
    }
    const std::uint64_t threads = std::uint64_t{block_x} * block_y * block_z;
    const std::uint64_t blocks = std::uint64_t{grid_x} * grid_y * grid_z;
    if (threads == 0 || threads > 1024 || blocks == 0 || grid_x > 0x7fffffffU || grid_y > 0xffffU ||
        grid_z > 0xffffU || shared_bytes > (227U << 10) || parameters == nullptr ||
        extra != nullptr) {
      return kInvalidArgument;
    }
    return device.submit(stream, function->bind({parameters, grid_x, grid_z, block_x}));
  });
}

}  // namespace foretune::fake_gpu
