// A model as its file has it, in plain structs, so that one source file alone knows Protocol
// Buffers. Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"

namespace foretune::onnx_internal {

// The types that are read; files know more.
enum class ElementType : std::uint8_t {
  kFloat,
  kDouble,
  kFloat16,
  kBfloat16,
  kInt64,
  kInt32,
  kBool,
  kOther,
};

// Returns the type of TensorProto.DataType's number.
[[nodiscard]] ElementType element_type(std::int64_t number);
[[nodiscard]] inline bool is_floating(ElementType type) { return type <= ElementType::kBfloat16; }

// A tensor of weights or of integers. Its elements are in `raw`, or in one of the lists.
struct TensorData {
  graph::Shape shape;
  ElementType type = ElementType::kOther;
  std::int64_t type_number = 0;
  bool is_external = false;  // the elements are in another file
  std::string raw;           // little-endian
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int64_t> integers;  // also the bits of 16-bit floats
};

struct AttributeData {
  double number = 0;
  std::int64_t integer = 0;
  std::string text;
  std::vector<double> numbers;
  std::vector<std::int64_t> integers;
  std::vector<TensorData> tensors;  // none or one
};

struct NodeData {
  std::string name;
  std::string op;
  std::string domain;
  std::vector<std::string> inputs;  // "" for one that is left out
  std::vector<std::string> outputs;
  std::map<std::string, AttributeData> attributes;
};

inline constexpr std::int64_t kOpenExtent = -1;

struct InputData {
  std::string name;
  ElementType type = ElementType::kOther;
  std::int64_t type_number = 0;
  bool has_shape = false;
  graph::Shape shape;  // kOpenExtent where a run gives the number
  // The first dimension whose extent has "batch" in its name, or -1.
  std::int64_t named_batch = -1;
};

struct ModelData {
  std::string name;
  std::int64_t opset = 0;  // of ONNX's own operators
  std::vector<InputData> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, TensorData> initializers;
  std::vector<NodeData> nodes;
};

// Errors: kCorrupt for bytes that are no model, kUnsupported without ONNX's library.
Result<ModelData> read_model(std::span<const std::byte> bytes);

}  // namespace foretune::onnx_internal
