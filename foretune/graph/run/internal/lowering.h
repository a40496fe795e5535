// Turns a network into the steps of a pass: chooses the order and type of each tensor's elements,
// joins biases, additions and ReLUs with the products before them, and element-wise operations with
// each other.
//
// Thread safety: belongs to one thread. Cost: every new layer is decided by a dispatcher
// (milliseconds).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/graph/network.h"
#include "foretune/graph/run/executor.h"
#include "foretune/graph/run/internal/fusion.h"
#include "foretune/graph/run/internal/pass.h"
#include "foretune/graph/run/internal/steps.h"
#include "foretune/graph/run/variant.h"

namespace foretune::graph {

struct LoweringOptions {
  std::int64_t images = 1;
  const Variants* variants = nullptr;        // null: all layers compute exactly
  const Calibration* calibration = nullptr;  // needed for layers of integers
};

// `network` is simplified. Errors: kUnsupported when a kernel is missing or memory is short,
// kInvalidArgument for a variant that a layer cannot have and for integers without a calibration.
Result<Pass> lower(const Network& network, Executor& executor, const LoweringOptions& options);

class Lowering {
 public:
  Lowering(const Network& network, Executor& executor, const LoweringOptions& options);
  Result<Pass> run();

 private:
  // The values of a tensor by order (channels last or not) and type; kNoValue where there is none.
  struct Forms {
    std::array<std::array<ValueId, kElementTypes>, 2> of{};
    Forms() {
      for (auto& order : of) {
        order.fill(kNoValue);
      }
    }
  };
  // A layer with its operands and its result.
  struct Layer {
    const Node& node;
    NodeFusion fusion;
    LayerVariant variant;
    ElementType type = ElementType::kF32;
    ElementType made = ElementType::kF32;  // the result's type
    bool ends_later = false;  // addition and ReLU come after an interpolation or rounding
  };

  template <class Id>
  static std::size_t index(Id id) {
    return static_cast<std::size_t>(id);
  }
  ValueId& form(TensorId id, bool channels_last, ElementType type) {
    return forms_[index(id)].of[channels_last ? 1 : 0][index(type)];
  }
  [[nodiscard]] bool has_form(TensorId id, bool channels_last, ElementType type) const {
    return forms_[index(id)].of[channels_last ? 1 : 0][index(type)] != kNoValue;
  }
  [[nodiscard]] bool is_last(TensorId id) const;
  [[nodiscard]] Shape full_shape(TensorId id) const;
  [[nodiscard]] const Value& value(ValueId id) const { return pass_.values[index(id)]; }

  ValueId add_value(Shape shape, bool channels_last, ElementType type = ElementType::kF32,
                    ValueId alias = kNoValue);
  // Makes the value that an operation's result is computed into.
  ValueId result(TensorId id, bool channels_last, ElementType type = ElementType::kF32);
  // Returns the tensor in the wanted order and type, which takes a step where it exists in another
  // one alone.
  ValueId ordered(TensorId id, bool channels_last, ElementType type = ElementType::kF32);
  ValueId reordered(TensorId id, bool channels_last);
  ValueId retyped(TensorId id, bool channels_last, ElementType type);
  void copy_between(ValueId from, ValueId to);
  void add_step(std::unique_ptr<Step> step) { pass_.steps.push_back(std::move(step)); }
  [[nodiscard]] bool prefers_last(const Node& node) const;
  [[nodiscard]] Quantization quantization_of(TensorId id) const;
  // Returns the tensor with the same values before all reshapes, which has a range.
  [[nodiscard]] TensorId unshaped(TensorId id) const;
  Status lower_node(std::size_t position);
  void lower_output(std::size_t position);

  // lower_types.cc
  void choose_types();
  [[nodiscard]] Status check_variants() const;
  [[nodiscard]] LayerVariant variant_of(const Node& node) const;
  // Returns true when a layer's addition and ReLU are steps of their own.
  [[nodiscard]] static bool ends_later(const LayerVariant& variant, const NodeFusion& fusion) {
    return (variant.skips_points() && fusion.addend != kNoTensor) || variant.before_activation;
  }
  [[nodiscard]] bool takes(std::size_t reader, TensorId id, ElementType type) const;
  [[nodiscard]] bool all_take(TensorId id, ElementType type) const;

  // lower_layers.cc
  Status lower_conv(const Layer& layer);
  Status lower_linear(const Layer& layer);
  Status add_layer(const Layer& layer, ConvSizes sizes, ValueId input,
                   std::span<const float> weights, bool channels_last);
  [[nodiscard]] std::vector<float> bias_of(const Layer& layer) const;
  ValueId rounded_to_f16(ValueId input);
  void add_ending(const Layer& layer, ValueId made, bool channels_last);
  ValueId padded(ValueId input, const Window& window, float fill);
  [[nodiscard]] TensorId flattened_image(TensorId id) const;
  Status lower_matmul(const Node& node);
  // The threads share out images where there are several.
  [[nodiscard]] ConvDispatcher& dispatcher() const {
    return pass_.images == 1 ? executor_.wide_convolutions() : executor_.convolutions();
  }

  // lower_chains.cc
  void lower_chain(const Node& root);
  [[nodiscard]] bool prefers_chain_last(const Node& node) const;
  [[nodiscard]] const Node* chained(const Node& node, TensorId id) const;
  std::size_t emit(const Node& node, const Node& root, bool channels_last, Chain& chain,
                   std::vector<std::size_t>& unused);
  ChainOperand outside_operand(TensorId id, const Node& node, const Node& root, bool channels_last,
                               Chain& chain);
  void broadcast(ValueId from, ValueId to);

  // lower_others.cc
  void lower_pool(const Node& node);
  bool lower_rows(const Node& node);
  bool lower_sum(const Node& node, const Shape& x);
  // Returns true for a sum or mean over the points of images.
  [[nodiscard]] bool is_image_sum(const Node& node) const;
  bool lower_movement(const Node& node);
  void lower_concat(const Node& node);
  void lower_slowly(const Node& node);

  const Network& network_;
  Executor& executor_;
  LoweringOptions options_;
  std::vector<NodeFusion> fusions_;
  Pass pass_;
  std::vector<Forms> forms_;                       // by TensorId
  std::vector<TensorId> reshaped_;                 // tensors that are another one in a new shape
  std::vector<ElementType> made_;                  // the type that a layer's result has, by node
  std::vector<std::vector<std::size_t>> readers_;  // nodes that read a tensor
  std::vector<std::int32_t> taken_by_;             // the layer that computes a node with it, or -1
  std::vector<bool> is_output_;                    // by TensorId
};

// Returns the distances of neighbours in a dense tensor.
std::vector<std::int64_t> dense_steps_of(std::span<const std::int64_t> shape);
// Returns the product of the extents [first, last).
std::int64_t product_of(std::span<const std::int64_t> shape, std::size_t first, std::size_t last);
// Returns where the dimension of a tensor lies in the order of its elements.
std::size_t stored_axis(std::size_t axis, bool channels_last);
// Reorders what there is one of for each dimension.
Shape in_stored_order(const Shape& logical, bool channels_last);
// Returns the type in which a layer of this type keeps its tensors.
constexpr ElementType element_type(DataType type) {
  return type == DataType::kI8     ? ElementType::kI8
         : type == DataType::kBf16 ? ElementType::kBf16
                                   : ElementType::kF32;
}
// Returns true for an image whose elements have the same order with its channels first and last.
bool has_one_order(const Shape& shape);

}  // namespace foretune::graph
