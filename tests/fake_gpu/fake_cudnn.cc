// The cuDNN of the fake device; see fake_gpu.h.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/cuda/cudnn_api.h"
#include "tests/fake_gpu/fake_abi.h"
#include "tests/fake_gpu/fake_backend.h"
#include "tests/fake_gpu/fake_engines.h"
#include "tests/fake_gpu/fake_objects.h"
#include "tests/fake_gpu/fake_state.h"

namespace foretune::fake_gpu {
namespace {

using cudnn::Attribute;
using cudnn::BackendObject;
using cudnn::Descriptor;
using cudnn::Handle;
using cudnn::kBadParameter;
using cudnn::kExecutionFailed;
using cudnn::Kind;
using cudnn::kSuccess;
using cudnn::Type;

constexpr int kTextureFailed = 4006;

// The message of the last call that failed, by thread.
std::string_view& last_error() {
  thread_local std::string_view message;
  return message;
}

int refuse(int status, std::string_view message) {
  last_error() = message;
  return status;
}

std::size_t bytes_of(Type type) {
  switch (type) {
    case Type::kBoolean:
      return 1;
    case Type::kInt64:
    case Type::kHandle:
    case Type::kPointer:
    case Type::kDescriptor:
      return 8;
    default:
      return 4;
  }
}

// Returns true for the attributes of a kind; the library numbers those of a kind together.
bool has_attribute(Kind kind, Attribute attribute) {
  const int number = static_cast<int>(attribute);
  const auto within = [number](int low, int high) { return low <= number && number <= high; };
  switch (kind) {
    case Kind::kPointwise:
      return within(0, 99);
    case Kind::kConvolution:
      return within(100, 199);
    case Kind::kHeuristic:
      return within(200, 299);
    case Kind::kEngineConfig:
      return within(300, 399);
    case Kind::kPlan:
      return within(400, 499);
    case Kind::kKnobChoice:
      return within(600, 699);
    case Kind::kForward:
      return within(700, 705);
    case Kind::kBackwardData:
      return within(706, 711);
    case Kind::kBackwardWeight:
      return within(712, 717);
    case Kind::kPointwiseOperation:
      return within(750, 758);
    case Kind::kGraph:
      return within(800, 899);
    case Kind::kTensor:
      return within(900, 999);
    case Kind::kVariantPack:
      return within(1000, 1099);
    case Kind::kKnobInfo:
      return within(1200, 1299);
    case Kind::kEngine:
      return within(1300, 1399);
  }
  return false;
}

// Gives a list of numbers as cuDNN does: those that fit.
template <class T>
int give_numbers(std::span<const T> from, std::int64_t requested, std::int64_t* count,
                 void* values) {
  const auto given = std::min(requested, static_cast<std::int64_t>(from.size()));
  if (given > 0) {
    std::memcpy(values, from.data(), static_cast<std::size_t>(given) * sizeof(T));
  }
  *count = requested == 0 ? static_cast<std::int64_t>(from.size()) : given;
  return kSuccess;
}

template <class T>
int give_number(T value, std::int64_t requested, std::int64_t* count, void* values) {
  return give_numbers(std::span<const T>(&value, 1), requested, count, values);
}

// Fills descriptors that the caller made with objects of the library's.
int give_objects(const std::vector<BackendObject>& from, std::int64_t requested,
                 std::int64_t* count, void* values) {
  std::int64_t given = 0;
  for (const BackendObject& object : from) {
    if (given == requested) {
      break;
    }
    Descriptor target = nullptr;
    std::memcpy(
        &target,
        static_cast<std::byte*>(values) + static_cast<std::size_t>(given) * sizeof(Descriptor),
        sizeof(Descriptor));
    if (!is_live(target) || target->kind != object.kind) {
      return refuse(kBadParameter, "the descriptor is of another kind");
    }
    *target = object;
    target->is_final = true;
    ++given;
  }
  *count = given;
  return kSuccess;
}

const EngineRow& row_of(const BackendObject& object) {
  return engine_rows()[static_cast<std::size_t>(object.choice.engine)];
}

BackendObject config_of(const BackendObject& heuristic, const EngineChoice& choice) {
  BackendObject config{.kind = Kind::kEngineConfig};
  config.graph = heuristic.graph;
  config.choice = choice;
  return config;
}

int get_attribute(const BackendObject& object, Attribute attribute, std::int64_t requested,
                  std::int64_t* count, void* values) {
  std::vector<BackendObject> objects;
  switch (attribute) {
    case Attribute::kGraphEngines:
      return give_number(static_cast<std::int64_t>(engine_rows().size()), requested, count, values);
    case Attribute::kEngineIndex:
      return give_number(static_cast<std::int64_t>(object.choice.engine), requested, count, values);
    case Attribute::kEngineNotes:
      return give_numbers(std::span<const cudnn::NumericalNote>(row_of(object).notes), requested,
                          count, values);
    case Attribute::kEngineBehavior:
      return row_of(object).compiles
                 ? give_number(cudnn::kRuntimeCompilation, requested, count, values)
                 : give_numbers(std::span<const int>(), requested, count, values);
    case Attribute::kEngineKnobs:
      for (const EngineKnob& knob : row_of(object).knobs) {
        objects.push_back({.kind = Kind::kKnobInfo, .knob = knob});
      }
      break;
    case Attribute::kKnobType:
      return give_number(object.knob.type, requested, count, values);
    case Attribute::kKnobMinimum:
      return give_number(object.knob.low, requested, count, values);
    case Attribute::kKnobMaximum:
      return give_number(object.knob.high, requested, count, values);
    case Attribute::kKnobStep:
      return give_number(std::int64_t{1}, requested, count, values);
    case Attribute::kHeuristicResults:
      for (const EngineChoice& choice : object.answers) {
        objects.push_back(config_of(object, choice));
      }
      break;
    case Attribute::kConfigEngine:
      objects.push_back({.kind = Kind::kEngine, .graph = object.graph});
      objects.back().choice.engine = object.choice.engine;
      break;
    case Attribute::kConfigKnobs:
      for (const auto& knob : object.choice.knobs) {
        objects.push_back({.kind = Kind::kKnobChoice});
        objects.back().choice.knobs = {knob};
      }
      break;
    case Attribute::kChoiceType:
      return give_number(object.choice.knobs.front().first, requested, count, values);
    case Attribute::kChoiceValue:
      return give_number(object.choice.knobs.front().second, requested, count, values);
    case Attribute::kPlanWorkspace:
      return give_number(static_cast<std::int64_t>(
                             workspace_of(row_of(object), *object.graph, object.choice.knobs)),
                         requested, count, values);
    default:
      return refuse(kBadParameter, "the attribute cannot be read");
  }
  return give_objects(objects, requested, count, values);
}

// Sets the pointers of a convolution; false when one is missing.
bool bind_pointers(const BackendObject& pack, const ConvGraph& graph, Conv& conv) {
  const auto ids = values_of<std::int64_t>(pack, Attribute::kPackIds);
  const auto pointers = values_of<void*>(pack, Attribute::kPackPointers);
  const auto bind = [&](std::int64_t id, ConvTensor& tensor) {
    if (id == 0) {
      return true;
    }
    const auto found = std::find(ids.begin(), ids.end(), id);
    if (found == ids.end()) {
      return false;
    }
    tensor.pointer = to_device(pointers[static_cast<std::size_t>(found - ids.begin())]);
    return tensor.pointer != 0;
  };
  return bind(graph.input, conv.input) && bind(graph.weights, conv.weights) &&
         bind(graph.output, conv.output) && bind(graph.bias, conv.bias) &&
         bind(graph.added, conv.added);
}

int execute_conv(State& device, const Conv& conv, double time_ns, cuda::DevicePointer workspace,
                 std::size_t workspace_bytes, bool hangs) {
  if (workspace_bytes > 0 && device.memory.writable(workspace, workspace_bytes) == nullptr) {
    return kIllegalAddress;
  }
  if (!run_conv(device.memory, conv)) {
    return kIllegalAddress;
  }
  if (!device.cached.contains(conv.weights.pointer)) {
    time_ns += 600 + static_cast<double>(conv_result_elements(conv.shape)) / 1000;
  }
  device.cached.insert(conv.weights.pointer);
  const double jitter = static_cast<double>(mix(device.products) >> 11) * 0x1p-53;
  device.clock_ns += time_ns * (1 + 0.005 * jitter);
  ++device.products;
  device.hung = device.hung || hangs;
  return cuda::kDriverSuccess;
}

}  // namespace

std::size_t cudnnGetVersion() { return 91900; }

const char* cudnnGetErrorString(int status) {
  switch (status / 1000) {
    case 0:
      return "CUDNN_STATUS_SUCCESS";
    case 2:
      return "CUDNN_STATUS_BAD_PARAM";
    case 3:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case 4:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}

void cudnnGetLastErrorString(char* message, std::size_t bytes) {
  const std::string_view text = last_error().substr(0, bytes > 0 ? bytes - 1 : 0);
  if (bytes > 0) {
    std::copy(text.begin(), text.end(), message);
    message[text.size()] = '\0';
  }
  last_error() = {};
}

int cudnnCreate(Handle* handle) {
  return make(handle, cudnn::HandleObject{}) == cublaslt::kSuccess ? kSuccess : kBadParameter;
}

int cudnnDestroy(Handle handle) {
  return destroy(handle) == cublaslt::kSuccess ? kSuccess : kBadParameter;
}

int cudnnSetStream(Handle handle, cuda::Stream stream) {
  if (!is_live(handle)) {
    return refuse(kBadParameter, "there is no such handle");
  }
  handle->stream = stream;
  return kSuccess;
}

int cudnnGetStream(Handle handle, cuda::Stream* stream) {
  if (!is_live(handle) || stream == nullptr) {
    return refuse(kBadParameter, "there is no such handle");
  }
  *stream = handle->stream;
  return kSuccess;
}

int cudnnBackendCreateDescriptor(Kind kind, Descriptor* descriptor) {
  return make(descriptor, BackendObject{.kind = kind}) == cublaslt::kSuccess ? kSuccess
                                                                             : kBadParameter;
}

int cudnnBackendDestroyDescriptor(Descriptor descriptor) {
  return destroy(descriptor) == cublaslt::kSuccess ? kSuccess : kBadParameter;
}

int cudnnBackendFinalize(Descriptor descriptor) {
  if (!is_live(descriptor) || descriptor->is_final) {
    return refuse(kBadParameter, "the descriptor is gone or final");
  }
  const int status = finalize_object(*descriptor);
  descriptor->is_final = status == kSuccess;
  return status == kSuccess ? status : refuse(status, "the descriptor cannot be finalised");
}

int cudnnBackendSetAttribute(Descriptor descriptor, Attribute attribute, Type type,
                             std::int64_t count, const void* values) {
  if (!is_live(descriptor) || descriptor->is_final || count < 1 || values == nullptr ||
      !has_attribute(descriptor->kind, attribute)) {
    return refuse(kBadParameter, "the attribute cannot be set");
  }
  cudnn::SetValue value{.type = type, .count = count};
  const auto* const bytes = static_cast<const std::byte*>(values);
  value.bytes.assign(bytes, bytes + bytes_of(type) * static_cast<std::size_t>(count));
  descriptor->values.insert_or_assign(attribute, std::move(value));
  return kSuccess;
}

int cudnnBackendGetAttribute(Descriptor descriptor, Attribute attribute, Type /*type*/,
                             std::int64_t requested, std::int64_t* count, void* values) {
  if (!is_live(descriptor) || !descriptor->is_final || count == nullptr || requested < 0 ||
      !has_attribute(descriptor->kind, attribute)) {
    return refuse(kBadParameter, "the attribute cannot be read");
  }
  return get_attribute(*descriptor, attribute, requested, count, values);
}

int cudnnBackendExecute(Handle handle, Descriptor plan, Descriptor pack) {
  if (!all_live({handle, plan, pack}) || plan->kind != Kind::kPlan || !plan->is_final ||
      pack->kind != Kind::kVariantPack || !pack->is_final) {
    return refuse(kBadParameter, "there is no such handle, plan or pack");
  }
  const EngineRow& engine = row_of(*plan);
  const unsigned fault = kEngineFaults + static_cast<unsigned>(engine.index);
  Conv conv = plan->graph->conv;
  conv.wrong = faults().wrong.contains(fault);
  conv.last_not_written = faults().not_written.contains(fault);
  if (!bind_pointers(*pack, *plan->graph, conv)) {
    return refuse(kBadParameter, "a tensor has no pointer");
  }
  const std::size_t bytes = workspace_of(engine, *plan->graph, plan->choice.knobs);
  const auto workspaces = values_of<void*>(*pack, Attribute::kPackWorkspace);
  const cuda::DevicePointer workspace = workspaces.empty() ? 0 : to_device(workspaces.front());
  if (bytes > 0 && workspace == 0) {
    return refuse(kBadParameter, "the workspace is missing");
  }
  const double time_ns = simulated_ns(engine, *plan->graph, plan->choice.knobs);
  State& device = state();
  const std::lock_guard lock(device.mutex);
  ++device.calls["cudnnBackendExecute"];
  if (device.broken != 0) {
    return kExecutionFailed;
  }
  if (faults().crash.contains(fault)) {
    device.broken = kLaunchFailed;
    return kExecutionFailed;
  }
  cuda::StreamObject* const stream = device.find_stream(handle->stream);
  if (stream != nullptr && stream->capture && cannot_be_captured(engine, plan->choice.knobs)) {
    stream->capture->lost = true;
    return refuse(kTextureFailed, "textures cannot be made here");
  }
  const int code = device.submit(
      handle->stream,
      [conv, time_ns, workspace, bytes, hangs = faults().hang.contains(fault)](State& on) {
        return execute_conv(on, conv, time_ns, workspace, bytes, hangs);
      });
  return code == cuda::kDriverSuccess ? kSuccess : kExecutionFailed;
}

}  // namespace foretune::fake_gpu
