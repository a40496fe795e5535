// Layers with fewer weights.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "foretune/graph/ops.h"
#include "foretune/graph/run/internal/lowering.h"
#include "foretune/graph/run/reduction.h"
#include "foretune/graph/run/weight_transform.h"
#include "foretune/problem/conv/conv.h"

namespace foretune::graph {

bool Lowering::skips_zeros(const Node& node, const LayerVariant& variant) const {
  if (variant.reduction == Reduction::kPruned || variant.reduction == Reduction::kPattern) {
    return true;
  }
  if (variant.reduction != Reduction::kOwn ||
      !find_weight_transform(variant.reduction_of)->prunes()) {
    return false;
  }
  const bool is_conv = node.op->name == "conv";
  return variant.type == DataType::kF32 && !variant.skips_points() && variant.skip_taps == 0 &&
         !variant.before_activation &&
         (!is_conv ||
          conv_window(network_.tensor(node.inputs[1]).shape, node.attributes).groups == 1);
}

Result<std::vector<float>> Lowering::weights_of(const Layer& layer) const {
  const Tensor& weights = network_.tensor(layer.node.inputs[1]);
  if (layer.variant.reduction == Reduction::kRank) {
    return *weights.values;  // factorised later
  }
  return reduced_weights(*weights.values, weights.shape, layer.variant);
}

Result<ConvDispatcher*> Lowering::dispatcher_of(const LayerVariant& variant) {
  const bool is_wide = pass_.images == 1;
  return variant.reduction == Reduction::kWinograd
             ? executor_.winograd(variant.reduction_of, is_wide)
             : Result<ConvDispatcher*>(&dispatcher());
}

Status Lowering::add_reduced(const Layer& layer, ConvSizes sizes, ValueId input,
                             std::vector<float> weights, bool channels_last) {
  if (layer.variant.reduction == Reduction::kRank) {
    return add_low_rank(layer, sizes, input, weights, channels_last);
  }
  if (layer.variant.reduction == Reduction::kChannels) {
    input = without_zeros(sizes, input, weights);
  }
  return skips_zeros(layer.node, layer.variant)
             ? add_pruned(layer, sizes, input, weights, channels_last)
             : add_layer(layer, sizes, input, weights, channels_last);
}

// Leaves out the channels whose weights are all 0, and copies the others of the input.
ValueId Lowering::without_zeros(ConvSizes& sizes, ValueId input, std::vector<float>& weights) {
  const std::size_t channels = index(sizes.c);
  std::vector<std::size_t> kept;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t i = channel; i < weights.size(); i += channels) {
      if (weights[i] != 0) {
        kept.push_back(channel);
        break;
      }
    }
  }
  if (kept.empty()) {
    kept.push_back(0);
  }
  std::vector<float> fewer;
  fewer.reserve(weights.size() / channels * kept.size());
  for (std::size_t row = 0; row < weights.size(); row += channels) {
    for (const std::size_t channel : kept) {
      fewer.push_back(weights[row + channel]);
    }
  }
  weights = std::move(fewer);
  const std::size_t rows = value(input).elements() / channels;
  const ElementType type = value(input).type;
  const ValueId made = add_value(
      {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(kept.size())}, false, type);
  pass_.values[index(made)].quantization = value(input).quantization;
  sizes.c = static_cast<std::int64_t>(kept.size());
  add_step(make_gather_step(value(input), input, made, rows, channels, kept));
  return made;
}

// Adds a layer of few filters, and one of one point that makes all outputs of theirs.
Status Lowering::add_low_rank(const Layer& layer, const ConvSizes& sizes, ValueId input,
                              std::span<const float> weights, bool channels_last) {
  const Shape& shape = network_.tensor(layer.node.inputs[1]).shape;
  const std::int64_t rank = reduced_rank(shape, layer.variant);
  const Factors factors = factorise(weights, sizes.k, rank);
  ConvSizes first = sizes;
  first.k = rank;
  first.weights = ConvWeights::kConstant;
  FORETUNE_TRY(const ConvProblem problem, ConvProblem::create(first));
  const ConvStepOperands operands{
      .input = input,
      .output = channels_last ? add_value({sizes.n, rank, problem.ho(), problem.wo()}, true)
                              : add_value({sizes.wi, rank}, false)};
  FORETUNE_TRY(std::unique_ptr<Step> step,
               make_conv_step(dispatcher(), problem, operands,
                              {.weights = std::as_bytes(std::span(factors.right))}));
  add_step(std::move(step));
  const ConvSizes second{
      .n = sizes.n, .c = rank, .k = sizes.k, .hi = problem.ho(), .wi = problem.wo()};
  return add_layer(layer, second, operands.output, factors.left, channels_last);
}

Status Lowering::add_pruned(const Layer& layer, ConvSizes sizes, ValueId input,
                            std::span<const float> weights, bool channels_last) {
  std::vector<float> bias = bias_of(layer);
  const bool relu = layer.fusion.relu && !layer.ends_later;
  sizes.weights = ConvWeights::kConstant;
  sizes.epilogue = epilogue_of(!bias.empty(), false, relu);
  FORETUNE_TRY(const ConvProblem problem, ConvProblem::create(sizes));
  const TensorId output = layer.fusion.output;
  const ValueId made = layer.ends_later ? add_value(full_shape(output), channels_last)
                                        : result(output, channels_last);
  FORETUNE_TRY(std::unique_ptr<Step> step,
               make_pruned_step(executor_.isa(), problem, input, made, weights, std::move(bias)));
  add_step(std::move(step));
  if (layer.ends_later) {
    add_ending(layer, made, channels_last);
  }
  return {};
}

}  // namespace foretune::graph
