#include "foretune/model/policy/policy_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "foretune/base/check.h"
#include "foretune/base/text.h"
#include "foretune/model/network/internal/network_kernels.h"
#include "foretune/model/network/internal/prepared_network.h"

namespace foretune {
namespace {

using loop::LoopActions;
using loop::PolicyObserver;

constexpr std::size_t kLoopInputs = PolicyObserver::kLoopColumns;
constexpr std::size_t kWholeInputs = PolicyObserver::kWholeColumns;
constexpr std::size_t kOuts = 2;
static_assert(LoopActions::kLevels <= kNetworkLanes);

DenseLayer zeros(std::size_t inputs, std::size_t outputs, bool is_rectified) {
  DenseLayer layer{.inputs = static_cast<std::uint32_t>(inputs),
                   .outputs = static_cast<std::uint32_t>(outputs),
                   .is_rectified = is_rectified};
  layer.weights.resize(inputs * outputs);
  layer.bias.resize(outputs);
  return layer;
}

bool is_shaped(const DenseLayer& layer, std::size_t inputs, std::size_t outputs) {
  return layer.inputs == inputs && layer.outputs == outputs &&
         layer.weights.size() == inputs * outputs && layer.bias.size() == outputs;
}

bool is_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

std::vector<float> applied(const DenseLayer& layer, std::span<const float> input) {
  std::vector<float> out = layer.bias;
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      out[o] = std::fma(input[i], layer.weights[i * layer.outputs + o], out[o]);
    }
    out[o] = layer.is_rectified ? std::max(0.0F, out[o]) : out[o];
  }
  return out;
}

}  // namespace

PolicyNetwork PolicyNetwork::of_width(std::uint32_t width) {
  return {.embed = zeros(kLoopInputs + kWholeInputs, width, true),
          .mix = zeros(kMixed * width, width, true),
          .heads = zeros(width, LoopActions::kOperations, false),
          .pool = zeros(width + kWholeInputs, width, true),
          .out = zeros(width, kOuts, false)};
}

std::vector<const DenseLayer*> PolicyNetwork::layers() const {
  return {&embed, &mix, &heads, &pool, &out};
}

std::vector<DenseLayer*> PolicyNetwork::layers() { return {&embed, &mix, &heads, &pool, &out}; }

Status PolicyNetwork::validate() const {
  const std::size_t w = width();
  const bool is_right =
      w > 0 && w <= kMaxWidth && is_shaped(embed, kLoopInputs + kWholeInputs, w) &&
      is_shaped(mix, kMixed * w, w) && is_shaped(heads, w, LoopActions::kOperations) &&
      is_shaped(pool, w + kWholeInputs, w) && is_shaped(out, w, kOuts);
  if (!is_right) {
    return fail(ErrorCode::kCorrupt, "the layers of the policy do not fit each other");
  }
  for (const DenseLayer* const layer : layers()) {
    if (!is_finite(layer->weights) || !is_finite(layer->bias)) {
      return fail(ErrorCode::kCorrupt, "a weight of the policy is no number");
    }
  }
  return {};
}

void fix_constants(PolicyNetwork& network, std::span<const InputRange> loops,
                   std::span<const InputRange> whole) {
  FORETUNE_CHECK(loops.size() == kLoopInputs && whole.size() == kWholeInputs);
  const auto fix = [](DenseLayer& layer, std::size_t first, std::span<const InputRange> ranges) {
    for (std::size_t column = 0; column < ranges.size(); ++column) {
      if (ranges[column].low != ranges[column].high) {
        continue;
      }
      const auto weights =
          std::span(layer.weights).subspan((first + column) * layer.outputs, layer.outputs);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        layer.bias[i] += ranges[column].low * weights[i];
        weights[i] = 0;
      }
    }
  };
  fix(network.embed, 0, loops);
  fix(network.embed, kLoopInputs, whole);
  fix(network.pool, network.width(), whole);
}

void never_choose(PolicyNetwork& network, std::size_t operation) {
  constexpr float kNever = -1e4F;
  DenseLayer& heads = network.heads;
  for (std::size_t input = 0; input < heads.inputs; ++input) {
    heads.weights[input * heads.outputs + operation] = 0;
  }
  heads.bias[operation] = kNever;
}

void put_policy_network(ByteWriter& writer, const PolicyNetwork& network) {
  writer.put_varint(network.width());
  for (const DenseLayer* const layer : network.layers()) {
    writer.put_bytes(std::as_bytes(std::span(layer->weights)));
    writer.put_bytes(std::as_bytes(std::span(layer->bias)));
  }
}

Result<PolicyNetwork> get_policy_network(ByteReader& reader) {
  const std::uint64_t width = reader.get_varint();
  if (width == 0 || width > PolicyNetwork::kMaxWidth) {
    return fail(ErrorCode::kCorrupt, "the policy is ", width, " units wide");
  }
  PolicyNetwork network = PolicyNetwork::of_width(static_cast<std::uint32_t>(width));
  for (DenseLayer* const layer : network.layers()) {
    for (std::vector<float>* const values : {&layer->weights, &layer->bias}) {
      const std::span<const std::byte> bytes = reader.get_bytes(values->size() * sizeof(float));
      std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(*values)).begin());
    }
  }
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "the policy ends too early");
  }
  FORETUNE_TRY_STATUS(network.validate());
  return network;
}

PolicyScores policy_reference(const PolicyNetwork& network, std::span<const float> loops,
                              std::span<const float> whole, std::size_t count) {
  const std::size_t width = network.width();
  std::vector<std::vector<float>> embedded;
  for (std::size_t level = 0; level < count; ++level) {
    const std::span<const float> row = loops.subspan(level * kLoopInputs, kLoopInputs);
    std::vector<float> input(row.begin(), row.end());
    input.insert(input.end(), whole.begin(), whole.end());
    embedded.push_back(applied(network.embed, input));
  }
  PolicyScores scores;
  std::vector<float> mean(width, 0.0F);
  for (std::size_t level = 0; level < count; ++level) {
    std::vector<float> around(width, 0.0F);
    std::vector<float> inside(width, 0.0F);
    for (std::size_t other = 0; other < level; ++other) {
      for (std::size_t c = 0; c < width; ++c) {
        around[c] += embedded[other][c];
      }
    }
    for (std::size_t other = count; other-- > level + 1;) {
      for (std::size_t c = 0; c < width; ++c) {
        inside[c] += embedded[other][c];
      }
    }
    std::vector<float> input = embedded[level];
    for (const std::vector<float>* const sums : {&around, &inside}) {
      for (const float sum : *sums) {
        input.push_back(PolicyNetwork::kSumScale * sum);
      }
    }
    const std::vector<float> none(width, 0.0F);
    const std::vector<float>& outer = level > 0 ? embedded[level - 1] : none;
    const std::vector<float>& inner = level + 1 < count ? embedded[level + 1] : none;
    input.insert(input.end(), outer.begin(), outer.end());
    input.insert(input.end(), inner.begin(), inner.end());
    const std::vector<float> mixed = applied(network.mix, input);
    const std::vector<float> heads = applied(network.heads, mixed);
    std::copy(
        heads.begin(), heads.end(),
        scores.actions.begin() + static_cast<std::ptrdiff_t>(level * LoopActions::kOperations));
    for (std::size_t c = 0; c < width; ++c) {
      mean[c] += mixed[c];
    }
  }
  const float share = 1.0F / static_cast<float>(std::max<std::size_t>(1, count));
  for (float& value : mean) {
    value *= share;
  }
  mean.insert(mean.end(), whole.begin(), whole.end());
  const std::vector<float> out = applied(network.out, applied(network.pool, mean));
  scores.actions[LoopActions::kStop] = out[0];
  scores.value = out[1];
  return scores;
}

struct PolicyEvaluator::Parts {
  struct Layer {
    AlignedFloats weights;
    AlignedFloats bias;
    std::size_t inputs = 0;
    std::size_t outputs = 0;
    bool is_rectified = false;
  };
  static Layer packed(const DenseLayer& layer) {
    const std::size_t padded = network_padded(layer.outputs);
    Layer out{.weights = AlignedFloats(padded * layer.inputs),
              .bias = AlignedFloats(padded),
              .inputs = layer.inputs,
              .outputs = layer.outputs,
              .is_rectified = layer.is_rectified};
    std::fill_n(out.weights.data(), out.weights.size(), 0.0F);
    std::fill_n(out.bias.data(), padded, 0.0F);
    std::copy(layer.bias.begin(), layer.bias.end(), out.bias.data());
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      for (std::size_t o = 0; o < layer.outputs; ++o) {
        const std::size_t tile = o / kNetworkTile * kNetworkTile * layer.inputs;
        out.weights.data()[tile + i * kNetworkTile + o % kNetworkTile] =
            layer.weights[i * layer.outputs + o];
      }
    }
    return out;
  }
  void run(const Layer& layer, const float* from, float* to, std::size_t lanes) const {
    kernels->dense({.input = from,
                    .weights = layer.weights.data(),
                    .bias = layer.bias.data(),
                    .initial = nullptr,
                    .skip = nullptr,
                    .scale = nullptr,
                    .shift = nullptr,
                    .output = to,
                    .inputs = layer.inputs,
                    .outputs = layer.outputs,
                    .lanes = lanes,
                    .is_rectified = layer.is_rectified});
  }

  explicit Parts(const PolicyNetwork& network, CpuIsa isa)
      : kernels(network_kernels(isa)),
        width(network.width()),
        embed(packed(network.embed)),
        mix(packed(network.mix)),
        heads(packed(network.heads)),
        pool(packed(network.pool)),
        out(packed(network.out)) {
    const std::size_t padded = network_padded(width);
    const std::size_t widest =
        std::max({kLoopInputs + kWholeInputs, PolicyNetwork::kMixed * width, width + kWholeInputs});
    for (AlignedFloats* const buffer : {&input, &mixed}) {
      *buffer = AlignedFloats(widest * kNetworkLanes);
      std::fill_n(buffer->data(), buffer->size(), 0.0F);
    }
    hidden =
        AlignedFloats(std::max(padded, network_padded(LoopActions::kOperations)) * kNetworkLanes);
    std::fill_n(hidden.data(), hidden.size(), 0.0F);
  }

  const NetworkKernels* kernels;
  std::size_t width;
  Layer embed;
  Layer mix;
  Layer heads;
  Layer pool;
  Layer out;
  // Rows of kNetworkLanes places, one for every loop.
  AlignedFloats input;
  AlignedFloats mixed;
  AlignedFloats hidden;
};

PolicyEvaluator::PolicyEvaluator(const PolicyNetwork& network, CpuIsa isa)
    : parts_(std::make_unique<Parts>(network, isa)) {}
PolicyEvaluator::~PolicyEvaluator() = default;
PolicyEvaluator::PolicyEvaluator(PolicyEvaluator&&) noexcept = default;
PolicyEvaluator& PolicyEvaluator::operator=(PolicyEvaluator&&) noexcept = default;

float PolicyEvaluator::score(std::span<const float> loops, std::span<const float> whole,
                             std::size_t count, std::span<float> actions) {
  FORETUNE_DCHECK(actions.size() == LoopActions::kCount && count <= LoopActions::kLevels);
  Parts& p = *parts_;
  const std::size_t width = p.width;
  float* const input = p.input.data();
  for (std::size_t level = 0; level < count; ++level) {
    for (std::size_t i = 0; i < kLoopInputs; ++i) {
      input[i * kNetworkLanes + level] = loops[level * kLoopInputs + i];
    }
    for (std::size_t i = 0; i < kWholeInputs; ++i) {
      input[(kLoopInputs + i) * kNetworkLanes + level] = whole[i];
    }
  }
  // The parts of `mix` lie one behind the other; the first is the embedding itself.
  float* const own = p.mixed.data();
  p.run(p.embed, input, p.hidden.data(), count);
  std::copy_n(p.hidden.data(), width * kNetworkLanes, own);
  const std::size_t part = width * kNetworkLanes;
  for (std::size_t c = 0; c < width; ++c) {
    const float* const h = own + c * kNetworkLanes;
    float* const around = own + part + c * kNetworkLanes;
    float* const inside = around + part;
    float* const outer = inside + part;
    float* const inner = outer + part;
    float sum = 0;
    for (std::size_t level = 0; level < count; ++level) {
      around[level] = PolicyNetwork::kSumScale * sum;
      sum += h[level];
      outer[level] = level > 0 ? h[level - 1] : 0;
      inner[level] = level + 1 < count ? h[level + 1] : 0;
    }
    sum = 0;
    for (std::size_t level = count; level-- > 0;) {
      inside[level] = PolicyNetwork::kSumScale * sum;
      sum += h[level];
    }
  }
  float* const g = input;
  p.run(p.mix, own, g, count);
  p.run(p.heads, g, p.hidden.data(), count);
  std::fill(actions.begin(), actions.end(), 0.0F);
  for (std::size_t level = 0; level < count; ++level) {
    for (std::size_t o = 0; o < LoopActions::kOperations; ++o) {
      actions[level * LoopActions::kOperations + o] = p.hidden.data()[o * kNetworkLanes + level];
    }
  }
  const float share = 1.0F / static_cast<float>(std::max<std::size_t>(1, count));
  for (std::size_t c = 0; c < width; ++c) {
    float sum = 0;
    for (std::size_t level = 0; level < count; ++level) {
      sum += g[c * kNetworkLanes + level];
    }
    own[c * kNetworkLanes] = sum * share;
  }
  for (std::size_t i = 0; i < kWholeInputs; ++i) {
    own[(width + i) * kNetworkLanes] = whole[i];
  }
  p.run(p.pool, own, g, 1);
  p.run(p.out, g, p.hidden.data(), 1);
  actions[LoopActions::kStop] = p.hidden.data()[0];
  return p.hidden.data()[kNetworkLanes];
}

}  // namespace foretune
