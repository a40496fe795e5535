// Convolutions, operations with weights, and products of two tensors.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/graph/run/internal/lowering.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::graph {

namespace {

ConvEpilogue epilogue_of(bool has_bias, bool adds, bool relu) {
  if (relu) {
    return adds ? ConvEpilogue::kBiasAddRelu : ConvEpilogue::kBiasRelu;
  }
  return has_bias ? ConvEpilogue::kBias : ConvEpilogue::kNone;
}

std::vector<std::byte> bytes_of_floats(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

// A bias has at most so many units of its sum, so that products have room beside it.
constexpr float kMaxBiasUnits = 1e9F;

// Weights of i8 by filter: the largest becomes 127, unless the bias needs larger units.
struct IntegerWeights {
  std::vector<std::byte> values;
  std::vector<float> scales;
};

IntegerWeights to_integers(std::span<const float> weights, std::size_t filters,
                           std::span<const float> bias, float input_scale) {
  IntegerWeights made;
  const std::size_t own = weights.size() / filters;
  for (std::size_t filter = 0; filter < filters; ++filter) {
    const std::span<const float> row = weights.subspan(filter * own, own);
    float most = 1e-20F;
    for (const float value : row) {
      most = std::max(most, std::abs(value));
    }
    const float bias_scale =
        bias.empty() ? 0 : std::abs(bias[filter]) / (input_scale * kMaxBiasUnits);
    const float scale = std::max(most / 127, bias_scale);
    made.scales.push_back(scale);
    for (const float value : row) {
      made.values.push_back(static_cast<std::byte>(
          static_cast<std::int8_t>(std::clamp(std::nearbyint(value / scale), -127.0F, 127.0F))));
    }
  }
  return made;
}

}  // namespace

Status Lowering::lower_conv(const Layer& layer) {
  const Node& node = layer.node;
  const Shape& weights = network_.tensor(node.inputs[1]).shape;
  const Window window = conv_window(weights, node.attributes);
  const Shape x = full_shape(node.inputs[0]);
  const LayerVariant& v = layer.variant;
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
                  .skip_rows = v.skip_rows,
                  .skip_rows_at = v.skip_rows_at,
                  .skip_columns = v.skip_columns,
                  .skip_columns_at = v.skip_columns_at,
                  .skip_taps = v.skip_taps,
                  .skip_taps_at = v.skip_taps_at};
  const bool is_even = window.pad_top == window.pad_bottom && window.pad_left == window.pad_right;
  ValueId input = kNoValue;
  if (is_even) {
    input = ordered(node.inputs[0], true, layer.type);
    sizes.pad_h = window.pad_top;
    sizes.pad_w = window.pad_left;
  } else {
    input = padded(ordered(node.inputs[0], true), window, 0);
    sizes.hi = value(input).shape[2];
    sizes.wi = value(input).shape[3];
    if (layer.type != ElementType::kF32) {
      const ValueId narrow = add_value(value(input).shape, true, layer.type);
      if (layer.type == ElementType::kI8) {
        pass_.values[index(narrow)].quantization = quantization_of(node.inputs[0]);
      }
      add_step(make_convert_step(executor_.loops(), value(input), input, value(narrow), narrow));
      input = narrow;
    }
  }
  const std::vector<float>& values = *network_.tensor(node.inputs[1]).values;
  std::vector<float> turned(values.size());
  const std::int64_t points = window.kernel_h * window.kernel_w;
  const auto growth = [](std::int64_t period) {
    return period > 0 ? static_cast<float>(period) / static_cast<float>(period - 1) : 1.0F;
  };
  const float factor = growth(v.skip_taps) * growth(v.zero_weights);
  const bool moves = v.zero_weights == 3 && window.kernel_h == 3 && window.kernel_w == 3;
  const auto is_zero = [&](std::int64_t channel, std::int64_t point) {
    const std::int64_t at = moves ? (channel + v.zero_weights_at) % 3 : v.zero_weights_at;
    return ConvProblem::is_skipped(point, v.skip_taps, v.skip_taps_at) ||
           ConvProblem::is_skipped(moves ? point : channel * points + point, v.zero_weights, at);
  };
  for (std::int64_t filter = 0; filter < weights[0]; ++filter) {
    for (std::int64_t channel = 0; channel < weights[1]; ++channel) {
      for (std::int64_t point = 0; point < points; ++point) {
        const float weight = values[index((filter * weights[1] + channel) * points + point)];
        turned[index((filter * points + point) * weights[1] + channel)] =
            is_zero(channel, point) ? 0 : factor * weight;
      }
    }
  }
  return add_layer(layer, sizes, input, turned, true);
}

Status Lowering::lower_linear(const Layer& layer) {
  const Node& node = layer.node;
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
    input = ordered(image, true, layer.type);
  } else {
    input = ordered(node.inputs[0], false, layer.type);
  }
  const std::int64_t rows = element_count(full_shape(node.inputs[0])) / depth;
  return add_layer(layer, {.c = depth, .k = outputs, .wi = rows}, input, values, false);
}

// Adds the steps of a layer whose problem has all but its types and what follows the sums.
Status Lowering::add_layer(const Layer& layer, ConvSizes sizes, ValueId input,
                           std::span<const float> weights, bool channels_last) {
  const bool is_integer = layer.type == ElementType::kI8;
  const bool is_f16 = layer.variant.type == DataType::kF16;
  if (is_f16 && layer.variant.before_activation) {
    input = rounded_to_f16(input);
  }
  // Integers become f32 in a step of their own, which also adds.
  const bool converts = is_integer && layer.made != ElementType::kI8;
  const bool adds = layer.fusion.addend != kNoTensor && !layer.ends_later && !converts;
  const bool relu = layer.fusion.relu && !layer.ends_later && !converts;
  const std::vector<float> bias = bias_of(layer);
  sizes.dtype = is_f16 ? DataType::kF32 : layer.variant.type;
  sizes.weights = ConvWeights::kConstant;
  sizes.epilogue = epilogue_of(!bias.empty(), adds, relu);
  sizes.out = layer.type != layer.made ? ConvOutput::kSums : ConvOutput::kSame;
  FORETUNE_TRY(const ConvProblem problem, ConvProblem::create(sizes));

  const TensorId output = layer.fusion.output;
  ConvStepOperands operands{.input = input};
  if (adds) {
    operands.addend = ordered(layer.fusion.addend, channels_last, layer.made);
  }
  const bool is_direct = !converts && !layer.ends_later;
  operands.output = is_direct ? result(output, channels_last, layer.made)
                              : add_value(full_shape(output), channels_last);

  ConvConstants constants{.bias = bias};
  std::vector<std::byte> elements;
  std::vector<float> scales;  // of sums
  if (is_integer) {
    IntegerWeights integers =
        to_integers(weights, index(sizes.k), bias, value(input).quantization.scale);
    elements = std::move(integers.values);
    scales = std::move(integers.scales);
    const Quantization in = value(input).quantization;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      scales[i] *= in.scale;
      if (!bias.empty()) {
        const float sum = std::nearbyint(bias[i] / scales[i]);
        constants.bias[i] = std::bit_cast<float>(static_cast<std::int32_t>(sum));
      }
    }
    constants.quantization.input_zero = in.zero;
    if (!converts) {
      const Quantization out = value(operands.output).quantization;
      for (const float scale : scales) {
        constants.scales.push_back(scale / out.scale);
      }
      constants.quantization.output_zero = out.zero;
      if (adds) {
        const Quantization added = value(operands.addend).quantization;
        constants.quantization.addend_scale = added.scale / out.scale;
        constants.quantization.addend_zero = added.zero;
      }
    }
  } else if (layer.type == ElementType::kBf16) {
    elements.resize(weights.size() * 2);
    executor_.loops().to_bf16(weights.data(), reinterpret_cast<std::uint16_t*>(elements.data()),
                              weights.size());
  } else {
    std::vector<float> stored(weights.begin(), weights.end());
    if (is_f16) {
      executor_.loops().round_f16(stored.data(), stored.data(), stored.size(), 0, 0);
    }
    elements = bytes_of_floats(stored);
  }
  constants.weights = elements;
  FORETUNE_TRY(std::unique_ptr<Step> step,
               make_conv_step(dispatcher(), problem, operands, std::move(constants)));
  add_step(std::move(step));

  ValueId made = operands.output;
  if (converts) {
    const bool adds_here = layer.fusion.addend != kNoTensor && !layer.ends_later;
    const ValueId addend = adds_here ? ordered(layer.fusion.addend, channels_last) : kNoValue;
    const ValueId sums = made;
    made = layer.ends_later ? add_value(full_shape(output), channels_last)
                            : result(output, channels_last);
    const std::size_t rows = value(made).elements() / scales.size();
    add_step(make_sums_step(executor_.loops(), rows, scales, layer.fusion.relu && !layer.ends_later,
                            sums, addend, made));
  }
  if (layer.variant.skips_points()) {
    add_step(make_interpolate_step(executor_.loops(), value(made), made,
                                   {.rows = sizes.skip_rows,
                                    .rows_at = sizes.skip_rows_at,
                                    .columns = sizes.skip_columns,
                                    .columns_at = sizes.skip_columns_at}));
  }
  if (layer.ends_later) {
    add_ending(layer, made, channels_last);
  }
  return {};
}

// Adds rounding, addition and ReLU behind a layer's sums.
void Lowering::add_ending(const Layer& layer, ValueId made, bool channels_last) {
  Chain chain;
  chain.values = {made};
  chain.elements = value(made).elements();
  chain.registers = 1;
  ChainOperand last{ChainOperand::Kind::kValue, 0};
  const auto then = [&](std::string_view name, ChainInstruction instruction) {
    instruction.a = last;
    chain.instructions.push_back(instruction);
    chain.text += concat(chain.text.empty() ? "" : ", ", name);
    last = {ChainOperand::Kind::kRegister, 0};
  };
  if (layer.variant.type == DataType::kF16) {
    then("round", {.unary = executor_.loops().round_f16});
  }
  if (layer.fusion.addend != kNoTensor) {
    chain.values.push_back(ordered(layer.fusion.addend, channels_last));
    then("add",
         {.binary = executor_.loops().binary_of("add"), .b = {ChainOperand::Kind::kValue, 1}});
  }
  if (layer.fusion.relu) {
    then("relu", {.unary = executor_.loops().unary_of("relu")});
  }
  if (chain.instructions.empty()) {
    then("copy",
         {.binary = executor_.loops().binary_of("max"), .b = {ChainOperand::Kind::kValue, 0}});
  }
  const ValueId sum = result(layer.fusion.output, channels_last);
  add_step(make_chain_step(std::move(chain), sum));
}

ValueId Lowering::rounded_to_f16(ValueId input) {
  Chain chain;
  chain.values = {input};
  chain.elements = value(input).elements();
  chain.registers = 1;
  chain.text = "round";
  chain.instructions = {
      {.unary = executor_.loops().round_f16, .a = {ChainOperand::Kind::kValue, 0}}};
  const ValueId rounded = add_value(value(input).shape, value(input).channels_last);
  add_step(make_chain_step(std::move(chain), rounded));
  return rounded;
}

std::vector<float> Lowering::bias_of(const Layer& layer) const {
  if (layer.node.inputs.size() == 3) {
    return *network_.tensor(layer.node.inputs[2]).values;
  }
  // Kernels with a ReLU always have a bias.
  return std::vector<float>(
      layer.fusion.relu ? index(network_.tensor(layer.node.inputs[1]).shape[0]) : 0, 0.0F);
}

// Copies images of which the kernels, with equal zeros on both sides, cannot add the zeros.
ValueId Lowering::padded(ValueId input, const Window& window, float fill) {
  Shape shape = value(input).shape;
  const Shape stored = value(input).stored_shape();
  shape[2] += window.pad_top + window.pad_bottom;
  shape[3] += window.pad_left + window.pad_right;
  const ValueId made = add_value(shape, true);
  const std::vector<std::int64_t> to = dense_steps_of(value(made).stored_shape());
  add_step(make_copy_step(input, made,
                          {.shape = stored,
                           .from = dense_steps_of(stored),
                           .to = to,
                           .to_first = window.pad_top * to[1] + window.pad_left * to[2]},
                          {.fills = true, .fill = fill, .elements = value(made).elements()}));
  return made;
}

// Returns the tensor with channels last of which this is all of an image in one row.
TensorId Lowering::flattened_image(TensorId id) const {
  const TensorId from = reshaped_[index(id)];
  if (from == kNoTensor || !is_last(from)) {
    return kNoTensor;
  }
  const Shape& shape = network_.tensor(from).shape;
  const Shape& flat = network_.tensor(id).shape;
  return !has_one_order(shape) && flat.size() == 2 && flat[0] == shape[0] ? from : kNoTensor;
}

Status Lowering::lower_matmul(const Node& node) {
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

}  // namespace foretune::graph
