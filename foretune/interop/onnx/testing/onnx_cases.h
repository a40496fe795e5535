// Models of tests with inputs and outputs, as scripts/onnx_cases.py writes them, and models that
// tests make byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/interop/onnx/internal/onnx_array.h"
#include "foretune/interop/onnx/internal/onnx_model.h"

namespace foretune::onnx_internal {

inline std::filesystem::path onnx_testdata() {
  return std::filesystem::path(FORETUNE_SOURCE_DIR) / "foretune/interop/onnx/testdata";
}

// Returns the tensors NAME_0, NAME_1 and so on.
inline std::vector<ArrayPtr> test_tensors(const ModelData& model, std::string_view name) {
  std::vector<ArrayPtr> tensors;
  Allowance allowance(graph::kMaxElements);
  for (std::size_t i = 0;; ++i) {
    const auto found = model.initializers.find(foretune::concat(name, "_", i));
    if (found == model.initializers.end()) {
      return tensors;
    }
    tensors.push_back(decode(found->second, allowance).value());
  }
}

// The wire format of Protocol Buffers, for models that no library would write.
class Message {
 public:
  Message& number(std::uint64_t field, std::int64_t value) {
    put(field << 3U);
    put(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& text(std::uint64_t field, std::string_view value) {
    put(field << 3U | 2U);
    put(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(std::uint64_t field, const Message& value) { return text(field, value.bytes_); }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(bytes_.data(), bytes_.size()));
  }

 private:
  void put(std::uint64_t value) {
    for (; value > 0x7FU; value >>= 7U) {
      bytes_ += static_cast<char>(value | 0x80U);
    }
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// Fields of onnx.proto.
inline Message node_message(std::string_view op, const std::vector<std::string>& inputs,
                            std::string_view output, std::string_view domain = "") {
  Message node;
  for (const std::string& input : inputs) {
    node.text(1, input);
  }
  node.text(2, output).text(3, "the_node").text(4, op).text(7, domain);
  return node;
}

inline Message input_message(std::string_view name, const std::vector<std::int64_t>& extents,
                             std::int64_t type = 1, const std::vector<std::string>& names = {}) {
  Message shape;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    Message dimension;
    if (extents[i] > 0) {
      dimension.number(1, extents[i]);
    } else {
      dimension.text(2, i < names.size() ? names[i] : "open");
    }
    shape.message(1, dimension);
  }
  Message tensor;
  tensor.number(1, type).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, tensor));
}

inline Message weights_message(std::string_view name, const std::vector<std::int64_t>& extents,
                               std::string_view raw, std::int64_t type = 1) {
  Message tensor;
  for (const std::int64_t extent : extents) {
    tensor.number(1, extent);
  }
  tensor.number(2, type).text(8, name);
  if (!raw.empty()) {
    tensor.text(9, raw);
  }
  return tensor;
}

inline Message model_message(const Message& graph, std::int64_t opset = 17) {
  return Message().number(1, 8).message(7, graph).message(8,
                                                          Message().text(1, "").number(2, opset));
}

}  // namespace foretune::onnx_internal
