// Reads a model with the classes of ONNX's library. No other file includes its headers.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/interop/onnx/internal/onnx_model.h"

namespace foretune::onnx_internal {

namespace {

// Nested messages; graphs within graphs are the only deep ones, and are refused.
constexpr int kMaxDepth = 64;

TensorData to_data(onnx::TensorProto& tensor) {
  TensorData data;
  data.shape.assign(tensor.dims().begin(), tensor.dims().end());
  data.type_number = tensor.data_type();
  data.type = element_type(data.type_number);
  data.is_external = tensor.data_location() == onnx::TensorProto::EXTERNAL;
  data.raw = std::move(*tensor.mutable_raw_data());
  data.floats.assign(tensor.float_data().begin(), tensor.float_data().end());
  data.doubles.assign(tensor.double_data().begin(), tensor.double_data().end());
  data.integers.assign(tensor.int64_data().begin(), tensor.int64_data().end());
  if (data.integers.empty()) {
    data.integers.assign(tensor.int32_data().begin(), tensor.int32_data().end());
  }
  // The weights are in memory twice otherwise.
  onnx::TensorProto().Swap(&tensor);
  return data;
}

AttributeData to_data(onnx::AttributeProto& attribute) {
  AttributeData data;
  data.number = static_cast<double>(attribute.f());
  data.integer = attribute.i();
  data.text = attribute.s();
  data.numbers.assign(attribute.floats().begin(), attribute.floats().end());
  data.integers.assign(attribute.ints().begin(), attribute.ints().end());
  if (attribute.has_t()) {
    data.tensors.push_back(to_data(*attribute.mutable_t()));
  }
  return data;
}

NodeData to_data(onnx::NodeProto& node) {
  NodeData data{.name = node.name(), .op = node.op_type(), .domain = node.domain()};
  data.inputs.assign(node.input().begin(), node.input().end());
  data.outputs.assign(node.output().begin(), node.output().end());
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    data.attributes.insert_or_assign(attribute.name(), to_data(attribute));
  }
  return data;
}

InputData to_data(const onnx::ValueInfoProto& input) {
  InputData data{.name = input.name()};
  const onnx::TypeProto::Tensor& type = input.type().tensor_type();
  data.type_number = type.elem_type();
  data.type = element_type(data.type_number);
  data.has_shape = type.has_shape();
  for (const onnx::TensorShapeProto::Dimension& extent : type.shape().dim()) {
    const bool is_known = extent.has_dim_value() && extent.dim_value() > 0;
    if (data.named_batch < 0 && to_lower(extent.dim_param()).find("batch") != std::string::npos) {
      data.named_batch = static_cast<std::int64_t>(data.shape.size());
    }
    data.shape.push_back(is_known ? extent.dim_value() : kOpenExtent);
  }
  return data;
}

}  // namespace

Result<ModelData> read_model(std::span<const std::byte> bytes) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return fail(ErrorCode::kUnsupported, "an ONNX file has at most 2 GiB");
  }
  // Otherwise the library writes to stderr about what the caller is told.
  const google::protobuf::LogSilencer silence;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxDepth);
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage() ||
      !model.has_graph()) {
    return fail(ErrorCode::kCorrupt, "the bytes are no ONNX model");
  }
  onnx::GraphProto& graph = *model.mutable_graph();
  ModelData data{.name = graph.name()};
  for (const onnx::OperatorSetIdProto& set : model.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") {
      data.opset = set.version();
    }
  }
  for (const onnx::ValueInfoProto& input : graph.input()) {
    data.inputs.push_back(to_data(input));
  }
  for (const onnx::ValueInfoProto& output : graph.output()) {
    data.outputs.push_back(output.name());
  }
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    std::string name = tensor.name();
    data.initializers.insert_or_assign(std::move(name), to_data(tensor));
  }
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    data.nodes.push_back(to_data(node));
  }
  return data;
}

}  // namespace foretune::onnx_internal
