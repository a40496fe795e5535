// The state while a model becomes a network, and the view of it that the functions of operators
// have. Thread safety: belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/interop/onnx/internal/onnx_array.h"
#include "foretune/interop/onnx/internal/onnx_model.h"
#include "foretune/interop/onnx/onnx_network.h"

namespace foretune::onnx_internal {

// A tensor of the network, or a constant that became none yet.
struct Value {
  graph::TensorId id = graph::kNoTensor;
  ArrayPtr array;

  [[nodiscard]] bool is_constant() const { return array != nullptr; }
};

class Converter {
 public:
  Converter(ModelData model, const OnnxOptions& options);
  Result<graph::Network> run();

 private:
  friend class NodeContext;

  Status add_input(const InputData& input);
  Status add_node(std::size_t position);
  Status check_input(const InputData& input) const;
  Status check_batch() const;
  // Marks what the outputs are computed of.
  void find_needed();
  Result<Value> value(const std::string& name);
  // Returns the tensor of a constant, which is made once.
  graph::TensorId tensor(const Value& value);
  [[nodiscard]] const graph::Shape& shape(const Value& value) const;

  ModelData model_;
  const OnnxOptions& options_;
  graph::NetworkBuilder builder_;
  Allowance allowance_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_set<std::string> needed_;
  // The nodes that read a value, by its name; outputs of the model count as one more.
  std::unordered_map<std::string, std::vector<std::size_t>> readers_;
  std::unordered_map<const Array*, graph::TensorId> constants_;
  std::vector<ArrayPtr> kept_;  // so that no other constant gets the address of one in constants_
  std::unordered_set<std::size_t> done_;  // nodes that became a part of an earlier one
  std::int64_t batch_ = 0;                // that the file fixes; 0 for none
};

// One node of a model. The methods that make tensors compute constants of constants instead.
class NodeContext {
 public:
  NodeContext(Converter& converter, const NodeData& node) : converter_(converter), node_(node) {}

  [[nodiscard]] const NodeData& node() const { return node_; }
  [[nodiscard]] std::int64_t opset() const { return converter_.model_.opset; }
  // Returns the batch that the file fixes for its inputs; 0 where it fixes none.
  [[nodiscard]] std::int64_t batch() const { return converter_.batch_; }
  [[nodiscard]] Allowance& allowance() { return converter_.allowance_; }

  // Inputs.
  [[nodiscard]] bool has(std::size_t input) const;
  // Errors: kCorrupt where the input is left out.
  Result<Value> value(std::size_t input);
  // Errors: kUnsupported where the input is computed.
  Result<ArrayPtr> constant(std::size_t input);
  Result<std::vector<std::int64_t>> integers(std::size_t input);
  Result<double> number(std::size_t input);

  // Attributes.
  [[nodiscard]] const AttributeData* attribute(const std::string& name) const;
  [[nodiscard]] std::int64_t integer_or(const std::string& name, std::int64_t fallback) const;
  [[nodiscard]] double number_or(const std::string& name, double fallback) const;
  [[nodiscard]] std::string text_or(const std::string& name, std::string_view fallback) const;
  // Returns the integers of an attribute in older models, of an input in newer ones, or nothing.
  Result<std::optional<std::vector<std::int64_t>>> listed(const std::string& name,
                                                          std::size_t input);
  // Returns the axis counted from the front. Errors: kInvalidArgument outside of the rank.
  static Result<std::size_t> axis_of(std::int64_t axis, std::size_t rank);

  // Tensors.
  [[nodiscard]] const graph::Shape& shape(const Value& value) const {
    return converter_.shape(value);
  }
  Result<Value> add(std::string_view op, std::span<const Value> inputs,
                    graph::Attributes attributes = {});
  Result<Value> add(std::string_view op, std::initializer_list<Value> inputs,
                    graph::Attributes attributes = {}) {
    return add(op, std::span(inputs.begin(), inputs.size()), std::move(attributes));
  }
  Result<Value> unary(std::string_view op, const Value& x, graph::Attributes attributes = {});
  Result<Value> binary(std::string_view op, Value a, Value b);
  Result<Value> reshape(const Value& x, graph::Shape shape);
  Result<Value> transpose(const Value& x, const std::vector<std::int64_t>& order);
  // Takes [begin, end) by `step` along an axis.
  Result<Value> slice(const Value& x, std::size_t axis, std::int64_t begin, std::int64_t end,
                      std::int64_t step);
  Result<Value> concat(std::vector<Value> parts, std::size_t axis);
  Result<Value> reduce(std::string_view op, const Value& x, std::vector<std::int64_t> axes,
                       bool keep);
  Result<Value> softmax(const Value& x, std::size_t axis);
  static Value numbers(graph::Shape shape, std::vector<float> values) {
    return {.array = number_array(std::move(shape), std::move(values))};
  }
  // Adds a leading extent of 1 where `x` has more than one there, so that the first extent is not
  // the batch alone and operations may work along it.
  Result<std::optional<Value>> lifted(const Value& x);
  // Adds leading extents of 1.
  Result<Value> raised(const Value& x, std::size_t rank);

  // Outputs.
  [[nodiscard]] bool wants(std::size_t output) const;
  void give(Value value, std::size_t output = 0);
  // Returns the bias that the only reader of the output adds to it, as `size` numbers, and takes
  // that reader's output for this node's.
  Result<std::optional<Value>> take_bias(std::int64_t size);

 private:
  Converter& converter_;
  const NodeData& node_;
  std::string output_;  // of the reader whose addition was taken
};

}  // namespace foretune::onnx_internal
