#include "foretune/graph/run/internal/lowering.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/run/internal/fusion.h"
#include "foretune/graph/run/internal/steps.h"

namespace foretune::graph {

namespace {

std::vector<std::int64_t> steps_of(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> steps(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    steps[i - 1] = steps[i] * shape[i];
  }
  return steps;
}

std::int64_t product_of(std::span<const std::int64_t> shape, std::size_t first, std::size_t last) {
  return element_count(shape.subspan(first, last - first));
}

// Returns where the dimension of a tensor lies in the order of its elements.
std::size_t stored_axis(std::size_t axis, bool channels_last) {
  constexpr std::size_t kChannelsLast[] = {0, 3, 1, 2};
  return channels_last ? kChannelsLast[axis] : axis;
}

// Reorders what there is one of for each dimension.
Shape in_stored_order(const Shape& logical, bool channels_last) {
  Shape stored(logical.size());
  for (std::size_t i = 0; i < logical.size(); ++i) {
    stored[stored_axis(i, channels_last)] = logical[i];
  }
  return stored;
}

class Lowering {
 public:
  Lowering(const Network& network, Executor& executor, std::int64_t images)
      : network_(network),
        executor_(executor),
        fusions_(find_fusions(network)),
        plain_(network.tensors().size(), kNoValue),
        last_(network.tensors().size(), kNoValue),
        reshaped_(network.tensors().size(), kNoTensor) {
    pass_.images = images;
  }

  Result<Pass> run() {
    for (std::size_t i = 0; i < network_.inputs().size(); ++i) {
      const TensorId id = network_.inputs()[i];
      plain_[index(id)] = add_value(full_shape(id), false);
      pass_.values[index(plain_[index(id)])].input = static_cast<std::int32_t>(i);
    }
    for (std::size_t i = 0; i < network_.nodes().size(); ++i) {
      if (!fusions_[i].is_taken) {
        const std::size_t before = pass_.steps.size();
        FORETUNE_TRY_STATUS(lower_node(i));
        for (std::size_t step = before; step < pass_.steps.size(); ++step) {
          pass_.steps[step]->name = network_.nodes()[i].name;
        }
      }
    }
    for (std::size_t i = 0; i < network_.outputs().size(); ++i) {
      lower_output(i);
    }
    plan_memory(pass_);
    return std::move(pass_);
  }

 private:
  template <class Id>
  static std::size_t index(Id id) {
    return static_cast<std::size_t>(id);
  }

  Shape full_shape(TensorId id) const {
    Shape shape = network_.tensor(id).shape;
    shape[0] *= pass_.images;
    return shape;
  }

  ValueId add_value(Shape shape, bool channels_last, ValueId alias = kNoValue) {
    pass_.values.push_back(
        {.shape = std::move(shape), .channels_last = channels_last, .alias = alias});
    return static_cast<ValueId>(pass_.values.size() - 1);
  }
  const Value& value(ValueId id) const { return pass_.values[index(id)]; }

  // Makes the value that a node's result is computed into.
  ValueId result(TensorId id, bool channels_last) {
    const ValueId made = add_value(full_shape(id), channels_last);
    (channels_last ? last_ : plain_)[index(id)] = made;
    return made;
  }

  static bool has_one_order(const Shape& shape) {
    return shape.size() == 4 && (shape[1] == 1 || shape[2] * shape[3] == 1);
  }

  // Returns the tensor in the wanted order, which takes a copy where it exists in the other alone.
  ValueId ordered(TensorId id, bool channels_last) {
    ValueId& wanted = (channels_last ? last_ : plain_)[index(id)];
    if (wanted != kNoValue) {
      return wanted;
    }
    if (reshaped_[index(id)] != kNoTensor && !channels_last) {
      const ValueId from = ordered(reshaped_[index(id)], false);
      wanted = add_value(full_shape(id), false, from);
      return wanted;
    }
    const ValueId from = channels_last ? ordered(id, false) : last_[index(id)];
    if (has_one_order(value(from).shape)) {
      wanted = add_value(full_shape(id), channels_last, from);
      return wanted;
    }
    const ValueId to = add_value(full_shape(id), channels_last);
    copy_between(from, to);
    return (channels_last ? last_ : plain_)[index(id)] = to;
  }

  // Copies all elements of a tensor from one order to the other.
  void copy_between(ValueId from, ValueId to) {
    const bool to_last = value(to).channels_last;
    const Shape& shape = value(from).shape;
    const auto logical = [&](ValueId id) {
      const std::vector<std::int64_t> steps = steps_of(value(id).stored_shape());
      Shape by_axis(shape.size());
      for (std::size_t i = 0; i < shape.size(); ++i) {
        by_axis[i] = steps[stored_axis(i, value(id).channels_last)];
      }
      return by_axis;
    };
    add_step(make_copy_step(from, to,
                            {.shape = in_stored_order(shape, to_last),
                             .from = in_stored_order(logical(from), to_last),
                             .to = in_stored_order(logical(to), to_last)},
                            {}));
  }

  void add_step(std::unique_ptr<Step> step) { pass_.steps.push_back(std::move(step)); }

  bool is_last(TensorId id) const { return last_[index(id)] != kNoValue; }

  // Returns true when a result of four dimensions should have its channels last.
  bool prefers_last(const Node& node) const {
    return network_.tensor(node.output).shape.size() == 4 &&
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
             return is_last(id) && network_.tensor(id).shape.size() == 4;
           });
  }

  // The threads share out images where there are several.
  ConvDispatcher& dispatcher() const {
    return pass_.images == 1 ? executor_.wide_convolutions() : executor_.convolutions();
  }

  Status lower_node(std::size_t position) {
    const Node& node = network_.nodes()[position];
    const std::string_view op = node.op->name;
    if (op == "conv") {
      return lower_conv(node, fusions_[position]);
    }
    if (op == "linear") {
      return lower_linear(node, fusions_[position]);
    }
    if (op == "matmul") {
      return lower_matmul(node);
    }
    if (is_elementwise(node)) {
      return lower_chain(node);
    }
    if (op == "max_pool" || op == "average_pool") {
      lower_pool(node);
    } else if (op == "reshape") {
      reshaped_[index(node.output)] = node.inputs[0];
    } else if (!lower_rows(node) && !lower_movement(node)) {
      lower_slowly(node);
    }
    return {};
  }

  Status lower_conv(const Node& node, const NodeFusion& fusion) {
    const Shape& weights = network_.tensor(node.inputs[1]).shape;
    const Window window = conv_window(weights, node.attributes);
    const Shape x = full_shape(node.inputs[0]);
    ConvSizes sizes{.n = x[0],
                    .c = x[1],
                    .k = weights[0],
                    .g = window.groups,
                    .hi = x[2],
                    .wi = x[3],
                    .y = window.kernel_h,
                    .x = window.kernel_w,
                    .stride_h = window.stride_h,
                    .stride_w = window.stride_w,
                    .dilation_h = window.dilation_h,
                    .dilation_w = window.dilation_w,
                    .weights = ConvWeights::kConstant,
                    .epilogue = epilogue_of(node, fusion)};
    ValueId input = ordered(node.inputs[0], true);
    if (window.pad_top == window.pad_bottom && window.pad_left == window.pad_right) {
      sizes.pad_h = window.pad_top;
      sizes.pad_w = window.pad_left;
    } else {
      input = padded(input, window);
      sizes.hi = value(input).shape[2];
      sizes.wi = value(input).shape[3];
    }
    FORETUNE_TRY(const ConvProblem problem, ConvProblem::create(sizes));
    const std::vector<float>& values = *network_.tensor(node.inputs[1]).values;
    std::vector<float> turned(values.size());
    const std::int64_t points = window.kernel_h * window.kernel_w;
    for (std::int64_t filter = 0; filter < weights[0]; ++filter) {
      for (std::int64_t channel = 0; channel < weights[1]; ++channel) {
        for (std::int64_t point = 0; point < points; ++point) {
          turned[index((filter * points + point) * weights[1] + channel)] =
              values[index((filter * weights[1] + channel) * points + point)];
        }
      }
    }
    const ConvStepOperands operands{
        .input = input,
        .addend = fusion.addend == kNoTensor ? kNoValue : ordered(fusion.addend, true),
        .output = result(fusion.output, true)};
    FORETUNE_TRY(std::unique_ptr<Step> step,
                 make_conv_step(dispatcher(), problem, operands, turned, bias_of(node, fusion)));
    add_step(std::move(step));
    return {};
  }

  static ConvEpilogue epilogue_of(const Node& node, const NodeFusion& fusion) {
    if (fusion.relu) {
      return fusion.addend == kNoTensor ? ConvEpilogue::kBiasRelu : ConvEpilogue::kBiasAddRelu;
    }
    return node.inputs.size() == 3 ? ConvEpilogue::kBias : ConvEpilogue::kNone;
  }

  std::vector<float> bias_of(const Node& node, const NodeFusion& fusion) const {
    if (node.inputs.size() == 3) {
      return *network_.tensor(node.inputs[2]).values;
    }
    // Kernels with a ReLU always have a bias.
    return std::vector<float>(fusion.relu ? index(network_.tensor(node.inputs[1]).shape[0]) : 0,
                              0.0F);
  }

  // Copies images of which the kernels, with equal zeros on both sides, cannot add the zeros.
  ValueId padded(ValueId input, const Window& window) {
    Shape shape = value(input).shape;
    const Shape stored = value(input).stored_shape();
    shape[2] += window.pad_top + window.pad_bottom;
    shape[3] += window.pad_left + window.pad_right;
    const ValueId made = add_value(shape, true);
    const std::vector<std::int64_t> to = steps_of(value(made).stored_shape());
    add_step(make_copy_step(input, made,
                            {.shape = stored,
                             .from = steps_of(stored),
                             .to = to,
                             .to_first = window.pad_top * to[1] + window.pad_left * to[2]},
                            {.fills = true, .elements = value(made).elements()}));
    return made;
  }

  Status lower_linear(const Node& node, const NodeFusion& fusion) {
    const Tensor& weights = network_.tensor(node.inputs[1]);
    const std::int64_t outputs = weights.shape[0];
    const std::int64_t depth = weights.shape[1];
    std::span<const float> values = *weights.values;
    std::vector<float> turned;
    ValueId input = kNoValue;
    const TensorId image = flattened_image(node.inputs[0]);
    if (image != kNoTensor) {
      // The weights follow the order of the channels, so that nothing is copied at run time.
      const Shape& shape = network_.tensor(image).shape;
      const std::int64_t points = shape[2] * shape[3];
      turned.resize(values.size());
      for (std::int64_t i = 0; i < outputs; ++i) {
        for (std::int64_t channel = 0; channel < shape[1]; ++channel) {
          for (std::int64_t point = 0; point < points; ++point) {
            turned[index(i * depth + point * shape[1] + channel)] =
                values[index(i * depth + channel * points + point)];
          }
        }
      }
      values = turned;
      input = ordered(image, true);
    } else {
      input = ordered(node.inputs[0], false);
    }
    const std::int64_t rows = element_count(full_shape(node.inputs[0])) / depth;
    FORETUNE_TRY(const ConvProblem problem,
                 ConvProblem::create({.c = depth,
                                      .k = outputs,
                                      .wi = rows,
                                      .weights = ConvWeights::kConstant,
                                      .epilogue = epilogue_of(node, fusion)}));
    const ConvStepOperands operands{
        .input = input,
        .addend = fusion.addend == kNoTensor ? kNoValue : ordered(fusion.addend, false),
        .output = result(fusion.output, false)};
    FORETUNE_TRY(std::unique_ptr<Step> step,
                 make_conv_step(dispatcher(), problem, operands, values, bias_of(node, fusion)));
    add_step(std::move(step));
    return {};
  }

  // Returns the tensor with channels last of which this is all of an image in one row.
  TensorId flattened_image(TensorId id) const {
    const TensorId from = reshaped_[index(id)];
    if (from == kNoTensor || !is_last(from)) {
      return kNoTensor;
    }
    const Shape& shape = network_.tensor(from).shape;
    const Shape& flat = network_.tensor(id).shape;
    return !has_one_order(shape) && flat.size() == 2 && flat[0] == shape[0] ? from : kNoTensor;
  }

  Status lower_matmul(const Node& node) {
    const Shape a = full_shape(node.inputs[0]);
    const Shape b = full_shape(node.inputs[1]);
    const std::int64_t batch = product_of(a, 0, a.size() - 2);
    FORETUNE_TRY(
        const GemmProblem problem,
        GemmProblem::create({.m = a[a.size() - 2],
                             .n = b.back(),
                             .k = a.back(),
                             .batch = batch,
                             .operation = batch > 1 ? GemmOperation::kBmm : GemmOperation::kMm}));
    const ValueId left = ordered(node.inputs[0], false);
    const ValueId right = ordered(node.inputs[1], false);
    FORETUNE_TRY(std::unique_ptr<Step> step,
                 make_product_step(executor_, problem, left, right, result(node.output, false)));
    add_step(std::move(step));
    return {};
  }

  Status lower_chain(const Node& root) {
    const bool channels_last = prefers_chain_last(root);
    Chain chain;
    chain.elements = index(element_count(full_shape(root.output)));
    std::vector<std::size_t> unused;
    emit(root, root, channels_last, chain, unused);
    const ValueId output = result(root.output, channels_last);
    add_step(make_chain_step(std::move(chain), output));
    return {};
  }

  // Looks at all operands of a chain, which `node` ends.
  bool prefers_chain_last(const Node& node) const {
    if (prefers_last(node)) {
      return true;
    }
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
      const Node* const before = chained(node, id);
      return before != nullptr && prefers_chain_last(*before);
    });
  }

  // Returns the operation that computes an operand within the chain of `node`, or nullptr.
  const Node* chained(const Node& node, TensorId id) const {
    const Tensor& tensor = network_.tensor(id);
    if (tensor.node < 0 || !is_elementwise(node)) {
      return nullptr;
    }
    const NodeFusion& fusion = fusions_[index(tensor.node)];
    const bool is_computed = plain_[index(id)] != kNoValue || is_last(id);
    return fusion.is_taken && fusion.registers > 0 && !is_computed
               ? &network_.nodes()[index(tensor.node)]
               : nullptr;
  }

  // Adds the instructions of a node and of those that it took over; returns the result's register.
  std::size_t emit(const Node& node, const Node& root, bool channels_last, Chain& chain,
                   std::vector<std::size_t>& unused) {
    std::vector<ChainOperand> operands;
    std::vector<std::size_t> used;
    for (const TensorId id : node.inputs) {
      if (const Node* const before = chained(node, id)) {
        used.push_back(emit(*before, root, channels_last, chain, unused));
        operands.push_back({ChainOperand::Kind::kRegister, used.back()});
      } else {
        operands.push_back(outside_operand(id, node, root, channels_last, chain));
      }
    }
    if (used.empty()) {
      if (unused.empty()) {
        unused.push_back(chain.registers++);
      }
      used.push_back(unused.back());
      unused.pop_back();
    }
    const std::size_t to = used.front();
    unused.insert(unused.end(), used.begin() + 1, used.end());
    chain.text += concat(chain.text.empty() ? "" : ", ", node.op->name);
    const std::vector<double>& numbers = node.attributes.numbers;
    if (const auto kernel = unary_kernel(node.op->name)) {
      chain.instructions.push_back(
          {.unary = executor_.loops().unary_of(*kernel),
           .a = operands[0],
           .to = to,
           .p = numbers.empty() ? 0.0F : static_cast<float>(numbers[0]),
           .q = numbers.size() < 2 ? 0.0F : static_cast<float>(numbers[1])});
    } else if (const auto pair = binary_kernel(node.op->name)) {
      chain.instructions.push_back({.binary = executor_.loops().binary_of(*pair),
                                    .a = operands[0],
                                    .b = operands[1],
                                    .to = to});
    } else {
      const ChainOperand scaled{ChainOperand::Kind::kRegister, to};
      chain.instructions.push_back({.binary = executor_.loops().binary_of(BinaryKernel::kMul),
                                    .a = operands[0],
                                    .b = operands[1],
                                    .to = to});
      chain.instructions.push_back({.binary = executor_.loops().binary_of(BinaryKernel::kAdd),
                                    .a = scaled,
                                    .b = operands[2],
                                    .to = to});
    }
    return to;
  }

  ChainOperand outside_operand(TensorId id, const Node& node, const Node& root, bool channels_last,
                               Chain& chain) {
    const Tensor& tensor = network_.tensor(id);
    const Shape& shape = network_.tensor(root.output).shape;
    if (tensor.is_constant()) {
      chain.constants.push_back(
          repeated_constant(tensor, shape, node.op->name == "affine", channels_last));
      return {ChainOperand::Kind::kConstant, chain.constants.size() - 1};
    }
    ValueId from = kNoValue;
    if (tensor.shape == shape) {
      from = ordered(id, channels_last);
    } else {
      from = add_value(full_shape(root.output), channels_last);
      broadcast(ordered(id, channels_last && tensor.shape.size() == 4), from);
    }
    chain.values.push_back(from);
    return {ChainOperand::Kind::kValue, chain.values.size() - 1};
  }

  // Writes out a tensor that is broadcast.
  void broadcast(ValueId from, ValueId to) {
    const Shape shape = value(to).stored_shape();
    const Shape own = value(from).stored_shape();
    Shape steps = steps_of(own);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i] == 1 && shape[i] != 1) {
        steps[i] = 0;
      }
    }
    add_step(make_copy_step(from, to, {.shape = shape, .from = steps, .to = steps_of(shape)}, {}));
  }

  // Returns one period of a constant operand, in the order of the result's elements.
  static std::vector<float> repeated_constant(const Tensor& constant, const Shape& result,
                                              bool is_of_channels, bool channels_last) {
    Shape shape(result.size(), 1);
    if (is_of_channels) {
      shape[1] = result[1];
    } else {
      std::copy(constant.shape.begin(), constant.shape.end(),
                shape.end() - static_cast<std::ptrdiff_t>(constant.shape.size()));
    }
    Shape steps = steps_of(shape);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      steps[i] = shape[i] == 1 ? 0 : steps[i];
    }
    const Shape stored = in_stored_order(result, channels_last);
    const Shape stored_steps = in_stored_order(steps, channels_last);
    std::size_t first = 0;  // dimension that the constant varies along
    while (first < stored.size() && stored_steps[first] == 0) {
      ++first;
    }
    const std::int64_t period = product_of(stored, first, stored.size());
    std::vector<float> values;
    for (std::int64_t place = 0; place < period; ++place) {
      std::int64_t rest = place;
      std::int64_t from = 0;
      for (std::size_t i = stored.size(); i-- > first;) {
        from += rest % stored[i] * stored_steps[i];
        rest /= stored[i];
      }
      values.push_back((*constant.values)[index(from)]);
    }
    return values;
  }

  void lower_pool(const Node& node) {
    const Shape x = full_shape(node.inputs[0]);
    const Shape y = full_shape(node.output);
    const ValueId input = ordered(node.inputs[0], true);
    add_step(make_pool_step(executor_.loops(), pool_window(node.attributes),
                            node.op->name == "max_pool",
                            {.images = x[0],
                             .channels = x[1],
                             .rows_in = x[2],
                             .columns_in = x[3],
                             .rows = y[2],
                             .columns = y[3]},
                            input, result(node.output, true)));
  }

  // Lowers operations along rows of elements; returns false for one that is none.
  bool lower_rows(const Node& node) {
    const std::string_view op = node.op->name;
    const Shape x = full_shape(node.inputs[0]);
    if (op == "reduce_mean" || op == "reduce_sum") {
      return lower_sum(node, x);
    }
    const bool is_last_axis =
        (op == "softmax" || op == "layer_norm") &&
        (op == "layer_norm" || node.attributes.integers[0] + 1 == static_cast<int>(x.size()));
    if (!is_last_axis) {
      return false;
    }
    const auto length = index(product_of(x, index(node.attributes.integers[0]), x.size()));
    const std::size_t rows = index(element_count(x)) / length;
    const ValueId input = ordered(node.inputs[0], false);
    const ValueId output = result(node.output, false);
    if (op == "softmax") {
      add_step(make_softmax_step(executor_.loops(), rows, length, input, output));
      return true;
    }
    const auto constant = [&](std::size_t operand) {
      return operand < node.inputs.size() ? *network_.tensor(node.inputs[operand]).values
                                          : std::vector<float>();
    };
    add_step(make_normalise_step(executor_.loops(), rows, length,
                                 static_cast<float>(node.attributes.numbers[0]), constant(1),
                                 constant(2), input, output));
    return true;
  }

  bool lower_sum(const Node& node, const Shape& x) {
    std::vector<std::int64_t> axes(node.attributes.integers.begin() + 1,
                                   node.attributes.integers.end());
    std::sort(axes.begin(), axes.end());
    if (axes.back() - axes.front() + 1 != static_cast<std::int64_t>(axes.size())) {
      return false;
    }
    const std::size_t first = index(axes.front());
    const std::size_t last = index(axes.back()) + 1;
    const std::int64_t rows = product_of(x, first, last);
    const float factor = node.op->name == "reduce_mean" ? 1.0F / static_cast<float>(rows) : 1.0F;
    const bool is_image = x.size() == 4 && first == 2 && last == 4 && is_last(node.inputs[0]);
    const bool keeps = node.attributes.integers[0] != 0;
    const ValueId input = ordered(node.inputs[0], is_image);
    const ValueId output = result(node.output, is_image && keeps);
    add_step(make_sum_step(executor_.loops(), index(is_image ? x[0] : product_of(x, 0, first)),
                           index(rows), index(is_image ? x[1] : product_of(x, last, x.size())),
                           factor, input, output));
    return true;
  }

  // Lowers operations that move elements; returns false for one that is none.
  bool lower_movement(const Node& node) {
    const std::string_view op = node.op->name;
    if (op == "concat") {
      lower_concat(node);
      return true;
    }
    if (op != "slice" && op != "transpose" && op != "pad") {
      return false;
    }
    const std::vector<std::int64_t>& v = node.attributes.integers;
    const bool channels_last = op != "transpose" && prefers_last(node);
    const ValueId input = ordered(node.inputs[0], channels_last);
    const Shape own = value(input).stored_shape();
    const ValueId output = result(node.output, channels_last);
    const Shape made = value(output).stored_shape();
    Copying copying{.shape = made, .from = steps_of(own), .to = steps_of(made)};
    CopyStepOptions options;
    if (op == "transpose") {
      for (std::size_t i = 0; i < v.size(); ++i) {
        copying.from[i] = steps_of(own)[index(v[i])];
      }
    } else if (op == "slice") {
      const std::size_t axis = stored_axis(index(v[0]), channels_last);
      copying.from_first = v[1] * copying.from[axis];
      copying.from[axis] *= v[3];
    } else {
      copying.shape = own;
      for (std::size_t i = 0; i < own.size(); ++i) {
        copying.to_first += v[i] * copying.to[stored_axis(i, channels_last)];
      }
      options = {.fills = true,
                 .fill = static_cast<float>(node.attributes.numbers[0]),
                 .elements = value(output).elements()};
    }
    add_step(make_copy_step(input, output, std::move(copying), std::move(options)));
    return true;
  }

  void lower_concat(const Node& node) {
    const bool channels_last = prefers_last(node);
    std::vector<ValueId> inputs;
    for (const TensorId id : node.inputs) {
      inputs.push_back(network_.tensor(id).is_constant() ? kNoValue : ordered(id, channels_last));
    }
    const ValueId output = result(node.output, channels_last);
    const std::size_t axis = stored_axis(index(node.attributes.integers[0]), channels_last);
    const Shape to = steps_of(value(output).stored_shape());
    std::int64_t first = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& tensor = network_.tensor(node.inputs[i]);
      Shape shape = in_stored_order(tensor.shape, channels_last);
      Copying copying{.shape = shape, .from = steps_of(shape), .to = to};
      CopyStepOptions options;
      if (tensor.is_constant()) {
        options.constant = stored_values(tensor, channels_last);
        // The same for every image.
        copying.shape.insert(copying.shape.begin(), pass_.images);
        copying.from.insert(copying.from.begin(), 0);
        copying.to.insert(copying.to.begin(), to[0] * shape[0]);
      } else {
        copying.shape[0] *= pass_.images;
      }
      copying.to_first = first * to[axis];
      first += shape[axis];
      add_step(make_copy_step(inputs[i], output, std::move(copying), std::move(options)));
    }
  }

  static std::vector<float> stored_values(const Tensor& constant, bool channels_last) {
    if (!channels_last) {
      return *constant.values;
    }
    std::vector<float> stored;
    const Shape& s = constant.shape;
    for (std::int64_t n = 0; n < s[0]; ++n) {
      for (std::int64_t point = 0; point < s[2] * s[3]; ++point) {
        for (std::int64_t channel = 0; channel < s[1]; ++channel) {
          stored.push_back((*constant.values)[index((n * s[1] + channel) * s[2] * s[3] + point)]);
        }
      }
    }
    return stored;
  }

  void lower_slowly(const Node& node) {
    std::vector<SlowOperand> operands;
    for (const TensorId id : node.inputs) {
      const Tensor& tensor = network_.tensor(id);
      SlowOperand operand;
      if (tensor.is_constant()) {
        operand.shape = tensor.shape;
        operand.constant.assign(tensor.values->begin(), tensor.values->end());
      } else {
        operand.value = ordered(id, false);
        operand.shape = full_shape(id);
      }
      operands.push_back(std::move(operand));
    }
    const ValueId output = result(node.output, false);
    add_step(make_slow_step(*node.op, node.attributes, std::move(operands), full_shape(node.output),
                            output));
  }

  void lower_output(std::size_t position) {
    const TensorId id = network_.outputs()[position];
    const ValueId found = ordered(id, false);
    const ValueId root = pass_.root_of(found);
    if (value(root).input < 0 && value(root).output < 0) {
      pass_.values[index(root)].output = static_cast<std::int32_t>(position);
      return;
    }
    const ValueId copy = add_value(full_shape(id), false);
    pass_.values[index(copy)].output = static_cast<std::int32_t>(position);
    copy_between(found, copy);
    pass_.steps.back()->name = "output";
  }

  const Network& network_;
  Executor& executor_;
  std::vector<NodeFusion> fusions_;
  Pass pass_;
  // The values of tensors, by TensorId, in either order; kNoValue where there is none.
  std::vector<ValueId> plain_;
  std::vector<ValueId> last_;
  std::vector<TensorId> reshaped_;  // tensors that are another one in a new shape
};

}  // namespace

Result<Pass> lower(const Network& network, Executor& executor, std::int64_t images) {
  return Lowering(network, executor, images).run();
}

}  // namespace foretune::graph
