#include "tests/fake_gpu/fake_backend.h"

#include <algorithm>
#include <optional>
#include <span>

#include "tests/fake_gpu/fake_objects.h"

namespace foretune::fake_gpu {
namespace {

using cudnn::Attribute;
using cudnn::BackendObject;
using cudnn::Descriptor;
using cudnn::kBadParameter;
using cudnn::Kind;
using cudnn::kNotSupported;
using cudnn::kSuccess;
using cudnn::PointwiseMode;
using cudnn::TensorType;

constexpr int kNotFinalized = 2004;
constexpr int kShapeMismatch = 2008;
constexpr int kLayoutNotSupported = 3004;

template <class T>
std::optional<T> value_of(const BackendObject& object, Attribute attribute) {
  const std::vector<T> values = values_of<T>(object, attribute);
  return values.size() == 1 ? std::optional(values.front()) : std::nullopt;
}

struct Tensor {
  std::int64_t id = 0;
  DataType type = DataType::kF32;
  bool is_virtual = false;
  std::vector<std::int64_t> dimensions;
  std::vector<std::int64_t> strides;
};

std::optional<Tensor> tensor_of(const BackendObject& object, Attribute attribute) {
  const BackendObject* const node = object_of(object, attribute);
  if (node == nullptr || node->kind != Kind::kTensor) {
    return std::nullopt;
  }
  Tensor tensor{.id = *value_of<std::int64_t>(*node, Attribute::kTensorId)};
  switch (*value_of<TensorType>(*node, Attribute::kTensorType)) {
    case TensorType::kBf16:
      tensor.type = DataType::kBf16;
      break;
    case TensorType::kF16:
      tensor.type = DataType::kF16;
      break;
    default:
      break;
  }
  tensor.is_virtual = value_of<char>(*node, Attribute::kTensorIsVirtual).value_or(0) != 0;
  tensor.dimensions = values_of<std::int64_t>(*node, Attribute::kTensorDimensions);
  tensor.strides = values_of<std::int64_t>(*node, Attribute::kTensorStrides);
  return tensor;
}

bool is_packed(const Tensor& tensor, bool channels_last) {
  std::int64_t stride = 1;
  const auto fits = [&](std::size_t i) {
    const bool is_right = tensor.strides[i] == stride;
    stride *= tensor.dimensions[i];
    return is_right;
  };
  if (channels_last && !fits(1)) {
    return false;
  }
  for (std::size_t i = tensor.dimensions.size(); i-- > 0;) {
    if ((i != 1 || !channels_last) && !fits(i)) {
      return false;
    }
  }
  return true;
}

// Copies the last numbers to those of three dimensions.
void copy_spatial(const std::vector<std::int64_t>& from, std::size_t first, std::int32_t* to) {
  const std::size_t count = from.size() - first;
  for (std::size_t i = 0; i < count; ++i) {
    to[3 - count + i] = static_cast<std::int32_t>(from[first + i]);
  }
}

int finalize_tensor(const BackendObject& object) {
  const auto dimensions = values_of<std::int64_t>(object, Attribute::kTensorDimensions);
  const auto strides = values_of<std::int64_t>(object, Attribute::kTensorStrides);
  const bool is_complete = value_of<TensorType>(object, Attribute::kTensorType) &&
                           value_of<std::int64_t>(object, Attribute::kTensorId) &&
                           value_of<std::int64_t>(object, Attribute::kTensorAlignment);
  const bool is_positive =
      std::all_of(dimensions.begin(), dimensions.end(), [](std::int64_t size) { return size > 0; });
  return is_complete && is_positive && dimensions.size() >= 3 && dimensions.size() == strides.size()
             ? kSuccess
             : kBadParameter;
}

int finalize_convolution(const BackendObject& object) {
  const auto dimensions = value_of<std::int64_t>(object, Attribute::kConvolutionDimensions);
  if (!dimensions || *dimensions < 1 || *dimensions > 3 ||
      value_of<TensorType>(object, Attribute::kConvolutionPrecision) != TensorType::kF32 ||
      value_of<int>(object, Attribute::kConvolutionMode) != cudnn::kCrossCorrelation) {
    return kBadParameter;
  }
  for (const Attribute attribute :
       {Attribute::kConvolutionDilations, Attribute::kConvolutionStrides,
        Attribute::kConvolutionPrePaddings, Attribute::kConvolutionPostPaddings}) {
    if (values_of<std::int64_t>(object, attribute).size() !=
        static_cast<std::size_t>(*dimensions)) {
      return kBadParameter;
    }
  }
  return values_of<std::int64_t>(object, Attribute::kConvolutionPrePaddings) ==
                 values_of<std::int64_t>(object, Attribute::kConvolutionPostPaddings)
             ? kSuccess
             : kNotSupported;
}

struct OperationParts {
  std::int32_t operation;
  Attribute convolution;
  Attribute input;
  Attribute weights;
  Attribute output;
};

OperationParts parts_of(Kind kind) {
  switch (kind) {
    case Kind::kBackwardData:
      return {1, Attribute::kDataConvolution, Attribute::kDataInput, Attribute::kDataWeights,
              Attribute::kDataOutput};
    case Kind::kBackwardWeight:
      return {2, Attribute::kWeightConvolution, Attribute::kWeightInput, Attribute::kWeightWeights,
              Attribute::kWeightOutput};
    default:
      return {0, Attribute::kForwardConvolution, Attribute::kForwardInput,
              Attribute::kForwardWeights, Attribute::kForwardOutput};
  }
}

// Reads the convolution's shape from its tensors and checks that they belong together.
int read_operation(const BackendObject& object, ConvGraph& graph) {
  const OperationParts parts = parts_of(object.kind);
  const BackendObject* const convolution = object_of(object, parts.convolution);
  const auto input = tensor_of(object, parts.input);
  const auto weights = tensor_of(object, parts.weights);
  const auto output = tensor_of(object, parts.output);
  if (convolution == nullptr || !input || !weights || !output) {
    return kNotFinalized;
  }
  const std::size_t rank = input->dimensions.size();
  if (weights->dimensions.size() != rank || output->dimensions.size() != rank ||
      *value_of<std::int64_t>(*convolution, Attribute::kConvolutionDimensions) + 2 !=
          static_cast<std::int64_t>(rank) ||
      input->dimensions[1] % weights->dimensions[1] != 0) {
    return kShapeMismatch;
  }
  cuda::ConvShape& shape = graph.conv.shape;
  shape.operation = parts.operation;
  shape.n = static_cast<std::int32_t>(input->dimensions[0]);
  shape.c = static_cast<std::int32_t>(weights->dimensions[1]);
  shape.groups = static_cast<std::int32_t>(input->dimensions[1] / weights->dimensions[1]);
  shape.k = static_cast<std::int32_t>(weights->dimensions[0] / shape.groups);
  copy_spatial(input->dimensions, 2, shape.in);
  copy_spatial(weights->dimensions, 2, shape.filter);
  copy_spatial(output->dimensions, 2, shape.out);
  const auto numbers = [&](Attribute attribute, std::int32_t* to) {
    copy_spatial(values_of<std::int64_t>(*convolution, attribute), 0, to);
  };
  numbers(Attribute::kConvolutionStrides, shape.stride);
  numbers(Attribute::kConvolutionPrePaddings, shape.pad);
  numbers(Attribute::kConvolutionDilations, shape.dilation);
  bool fits = output->dimensions[0] == shape.n && output->dimensions[1] == weights->dimensions[0] &&
              weights->dimensions[0] % shape.groups == 0;
  for (std::size_t i = 0; i < 3; ++i) {
    fits = fits && shape.out[i] ==
                       (shape.in[i] + 2 * shape.pad[i] - shape.dilation[i] * (shape.filter[i] - 1) -
                        1) / shape.stride[i] +
                           1;
  }
  if (!fits) {
    return kShapeMismatch;
  }
  // Sizes of 1 make both layouts the same.
  const auto all_packed = [&](bool last) {
    return is_packed(*input, last) && is_packed(*weights, last) && is_packed(*output, last);
  };
  if (!all_packed(true) && !all_packed(false)) {
    return kLayoutNotSupported;
  }
  shape.channels_last = all_packed(true) ? 1 : 0;
  graph.input = input->id;
  graph.weights = weights->id;
  graph.output = output->id;
  graph.conv.input.type = input->type;
  graph.conv.weights.type = weights->type;
  graph.conv.output.type = output->type;
  return kSuccess;
}

// Adds a pointwise operation that follows: a bias, a tensor of the output's shape, or ReLU.
int read_pointwise(const BackendObject& object, ConvGraph& graph) {
  const BackendObject* const what = object_of(object, Attribute::kOperationPointwise);
  const auto x = tensor_of(object, Attribute::kOperationX);
  const auto y = tensor_of(object, Attribute::kOperationY);
  if (what == nullptr || !x || !y || x->id != graph.output || !x->is_virtual) {
    return kBadParameter;
  }
  graph.output = y->id;
  graph.conv.output.type = y->type;
  if (value_of<PointwiseMode>(*what, Attribute::kPointwiseMode) == PointwiseMode::kRelu) {
    graph.conv.relu = true;
    return kSuccess;
  }
  const auto b = tensor_of(object, Attribute::kOperationB);
  if (!b || graph.conv.relu) {
    return kBadParameter;
  }
  const bool is_bias = b->dimensions[0] == 1 && b->dimensions[1] == y->dimensions[1] &&
                       std::all_of(b->dimensions.begin() + 2, b->dimensions.end(),
                                   [](std::int64_t size) { return size == 1; });
  (is_bias ? graph.bias : graph.added) = b->id;
  (is_bias ? graph.conv.bias : graph.conv.added).type = b->type;
  return is_bias || b->dimensions == y->dimensions ? kSuccess : kShapeMismatch;
}

int finalize_graph(BackendObject& object) {
  auto graph = std::make_shared<ConvGraph>();
  const auto operations = values_of<Descriptor>(object, Attribute::kGraphOperations);
  const auto handle = value_of<cudnn::Handle>(object, Attribute::kGraphHandle);
  if (operations.empty() || !handle || !is_live(*handle)) {
    return kBadParameter;
  }
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!is_live(operations[i]) || !operations[i]->is_final) {
      return kNotFinalized;
    }
    const bool is_pointwise = operations[i]->kind == Kind::kPointwiseOperation;
    if (is_pointwise == (i == 0)) {
      return kNotSupported;
    }
    const int status = is_pointwise ? read_pointwise(*operations[i], *graph)
                                    : read_operation(*operations[i], *graph);
    if (status != kSuccess) {
      return status;
    }
  }
  object.graph = std::move(graph);
  return kSuccess;
}

int finalize_engine(BackendObject& object) {
  const BackendObject* const graph = object_of(object, Attribute::kEngineGraph);
  const auto index = value_of<std::int64_t>(object, Attribute::kEngineIndex);
  if (graph == nullptr || graph->graph == nullptr || !index || *index < 0 ||
      *index >= static_cast<std::int64_t>(engine_rows().size())) {
    return kBadParameter;
  }
  object.graph = graph->graph;
  object.choice.engine = static_cast<std::int32_t>(*index);
  return judge_engine(engine_rows()[static_cast<std::size_t>(*index)], *object.graph);
}

int finalize_config(BackendObject& object) {
  const BackendObject* const engine = object_of(object, Attribute::kConfigEngine);
  if (engine == nullptr || engine->kind != Kind::kEngine) {
    return kBadParameter;
  }
  object.graph = engine->graph;
  object.choice.engine = engine->choice.engine;
  for (const Descriptor choice : values_of<Descriptor>(object, Attribute::kConfigKnobs)) {
    if (!is_live(choice) || !choice->is_final || choice->kind != Kind::kKnobChoice) {
      return kNotFinalized;
    }
    object.choice.knobs.push_back(choice->choice.knobs.front());
  }
  return judge_config(engine_rows()[static_cast<std::size_t>(object.choice.engine)], *object.graph,
                      object.choice.knobs);
}

int finalize_heuristic(BackendObject& object) {
  const BackendObject* const graph = object_of(object, Attribute::kHeuristicGraph);
  const auto mode = value_of<cudnn::HeuristicMode>(object, Attribute::kHeuristicMode);
  if (graph == nullptr || graph->graph == nullptr || !mode) {
    return kBadParameter;
  }
  object.graph = graph->graph;
  object.answers = engine_heuristic(*mode, *object.graph);
  return kSuccess;
}

int finalize_plan(BackendObject& object) {
  const BackendObject* const config = object_of(object, Attribute::kPlanConfig);
  const auto handle = value_of<cudnn::Handle>(object, Attribute::kPlanHandle);
  if (config == nullptr || config->kind != Kind::kEngineConfig || !handle || !is_live(*handle)) {
    return kBadParameter;
  }
  object.graph = config->graph;
  object.choice = config->choice;
  return judge_plan(engine_rows()[static_cast<std::size_t>(object.choice.engine)],
                    object.choice.knobs);
}

int finalize_choice(BackendObject& object) {
  const auto type = value_of<std::int32_t>(object, Attribute::kChoiceType);
  const auto value = value_of<std::int64_t>(object, Attribute::kChoiceValue);
  if (!type || !value) {
    return kBadParameter;
  }
  object.choice.knobs = {{*type, *value}};
  return kSuccess;
}

}  // namespace

template <class T>
std::vector<T> values_of(const BackendObject& object, Attribute attribute) {
  const auto found = object.values.find(attribute);
  if (found == object.values.end()) {
    return {};
  }
  std::vector<T> values(static_cast<std::size_t>(found->second.count));
  const std::span<std::byte> room = std::as_writable_bytes(std::span(values));
  if (found->second.bytes.size() != room.size()) {
    return {};
  }
  std::ranges::copy(found->second.bytes, room.begin());
  return values;
}
template std::vector<std::int64_t> values_of(const BackendObject& object, Attribute attribute);
template std::vector<void*> values_of(const BackendObject& object, Attribute attribute);

const BackendObject* object_of(const BackendObject& object, Attribute attribute) {
  const std::vector<Descriptor> found = values_of<Descriptor>(object, attribute);
  return found.size() == 1 && is_live(found.front()) && found.front()->is_final ? found.front()
                                                                                : nullptr;
}

int finalize_object(BackendObject& object) {
  switch (object.kind) {
    case Kind::kTensor:
      return finalize_tensor(object);
    case Kind::kConvolution:
      return finalize_convolution(object);
    case Kind::kForward:
    case Kind::kBackwardData:
    case Kind::kBackwardWeight: {
      ConvGraph unused;
      return read_operation(object, unused);
    }
    case Kind::kGraph:
      return finalize_graph(object);
    case Kind::kEngine:
      return finalize_engine(object);
    case Kind::kEngineConfig:
      return finalize_config(object);
    case Kind::kHeuristic:
      return finalize_heuristic(object);
    case Kind::kPlan:
      return finalize_plan(object);
    case Kind::kKnobChoice:
      return finalize_choice(object);
    case Kind::kPointwise:
      return value_of<PointwiseMode>(object, Attribute::kPointwiseMode) ? kSuccess : kBadParameter;
    case Kind::kPointwiseOperation:
      return object_of(object, Attribute::kOperationPointwise) != nullptr ? kSuccess
                                                                          : kBadParameter;
    case Kind::kVariantPack:
      return values_of<std::int64_t>(object, Attribute::kPackIds).size() ==
                     values_of<void*>(object, Attribute::kPackPointers).size()
                 ? kSuccess
                 : kBadParameter;
    case Kind::kKnobInfo:
      break;  // only the library makes one
  }
  return kBadParameter;
}

}  // namespace foretune::fake_gpu
