// The objects of the fake cuDNN's backend API, and how they are finalised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "foretune/cuda/cudnn_api.h"
#include "tests/fake_gpu/fake_engines.h"

namespace foretune::cudnn {

struct HandleObject {
  cuda::Stream stream = nullptr;
};

// An attribute as it was set: raw bytes of `count` values.
struct SetValue {
  Type type = Type::kInt64;
  std::int64_t count = 0;
  std::vector<std::byte> bytes;
};

struct BackendObject {
  Kind kind = Kind::kTensor;
  bool is_final = false;
  std::map<Attribute, SetValue> values;
  // The facts that finalising finds out; those of objects that it refers to are copied.
  std::shared_ptr<const fake_gpu::ConvGraph> graph;
  fake_gpu::EngineChoice choice;
  std::vector<fake_gpu::EngineChoice> answers;
  fake_gpu::EngineKnob knob;
};

}  // namespace foretune::cudnn

namespace foretune::fake_gpu {

// Returns the status of cudnnBackendFinalize.
int finalize_object(cudnn::BackendObject& object);

template <class T>
std::vector<T> values_of(const cudnn::BackendObject& object, cudnn::Attribute attribute);
// Returns the object of an attribute when it is alive and final.
const cudnn::BackendObject* object_of(const cudnn::BackendObject& object,
                                      cudnn::Attribute attribute);

}  // namespace foretune::fake_gpu
