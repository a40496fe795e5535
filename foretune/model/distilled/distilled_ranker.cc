#include "foretune/model/distilled/distilled_ranker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "foretune/model/distilled/internal/distilled_units.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace foretune {
namespace {

constexpr std::int64_t kUnit = DistilledModel::kUnit;

using distilled_units::clamped_size;
using distilled_units::kLargestCount;
using distilled_units::log2_units;
using distilled_units::standardised;

__extension__ using Wide = unsigned __int128;

}  // namespace

std::uint64_t DistilledRanker::Divisor::ceil(std::uint64_t value) const {
  const std::uint64_t sum = value + by_ - 1;
  return reciprocal_ == 0 ? sum : static_cast<std::uint64_t>((Wide{sum} * reciprocal_) >> 64U);
}

namespace {

// Returns the share that a value fills of whole blocks. The quotient of the doubles is exact enough
// to be rounded down: it is at most 4,096, and where it is no integer, at least 2^-32 from the
// next.
std::int64_t use_of(std::uint64_t value, std::uint64_t filled) {
  return static_cast<std::int64_t>(static_cast<double>(static_cast<std::int64_t>(value) * kUnit) /
                                   static_cast<double>(static_cast<std::int64_t>(filled)));
}

std::uint64_t size_of(std::span<const std::int64_t> fields, std::uint8_t field) {
  return static_cast<std::uint64_t>(clamped_size(fields[field]));
}

}  // namespace

DistilledRanker::DistilledRanker(const DistilledModel& model) {
  for (std::size_t i = 0; i < model.features.size(); ++i) {
    add_input(model.features[i], i);
  }
  for (const DistilledLayer& layer : model.layers) {
    add_layer(layer);
  }
}

void DistilledRanker::add_input(const DistilledFeature& feature, std::size_t input) {
  const Standard standard{.mean = feature.mean, .scale = feature.scale, .input = input};
  const auto divisor = [](std::int32_t by) { return Divisor(static_cast<std::uint32_t>(by)); };
  switch (feature.kind) {
    case DistilledFeatureKind::kLog2:
    case DistilledFeatureKind::kUse: {
      auto size = std::find_if(sizes_.begin(), sizes_.end(),
                               [&](const Size& known) { return known.field == feature.field; });
      if (size == sizes_.end()) {
        size = sizes_.insert(size, {.field = feature.field, .logs = {}, .uses = {}});
      }
      if (feature.kind == DistilledFeatureKind::kLog2) {
        size->logs.push_back(standard);
      } else {
        size->uses.emplace_back(divisor(feature.block), standard);
      }
      return;
    }
    case DistilledFeatureKind::kLabel:
      labels_.push_back({.field = feature.field,
                         .label = feature.block,
                         .input = input,
                         .if_equal = standardised(kUnit, feature.mean, feature.scale),
                         .otherwise = standardised(0, feature.mean, feature.scale)});
      return;
    case DistilledFeatureKind::kWaveUse:
    case DistilledFeatureKind::kWaves:
      waves_.push_back({.rows = {feature.field, divisor(feature.block)},
                        .columns = {feature.other, divisor(feature.other_block)},
                        .repeat = feature.repeat,
                        .places = divisor(feature.places),
                        .is_use = feature.kind == DistilledFeatureKind::kWaveUse,
                        .standard = standard});
      return;
  }
}

void DistilledRanker::add_layer(const DistilledLayer& layer) {
  Layer out{.pairs = (layer.inputs + std::size_t{1}) / 2,
            .groups = (layer.outputs + kGroup - 1) / kGroup,
            .shift = static_cast<int>(layer.shift),
            .weights = {},
            .bias = layer.bias};
  out.bias.resize(out.groups * kGroup);
  out.weights.resize(out.groups * out.pairs * kGroup * 2);
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      const std::size_t pair = o / kGroup * out.pairs + i / 2;
      out.weights[(pair * kGroup + o % kGroup) * 2 + i % 2] = layer.weights[o * layer.inputs + i];
    }
  }
  layers_.push_back(std::move(out));
}

void DistilledRanker::put(std::int64_t value, const Standard& standard, Inputs& out) {
  out[standard.input] = standardised(value, standard.mean, standard.scale);
}

void DistilledRanker::inputs(std::span<const std::int64_t> fields, Inputs& out) const noexcept {
  // The last pair of the first layer may be half of one.
  std::fill_n(out.begin(), std::min(out.size(), 2 * layers_.front().pairs), std::int16_t{0});
  for (const Size& size : sizes_) {
    const std::uint64_t value = size_of(fields, size.field);
    for (const Standard& log : size.logs) {
      put(log2_units(static_cast<std::int64_t>(value)), log, out);
    }
    for (const auto& [block, standard] : size.uses) {
      put(use_of(value, block.ceil(value) * block.by()), standard, out);
    }
  }
  for (const Label& label : labels_) {
    out[label.input] = fields[label.field] == label.label ? label.if_equal : label.otherwise;
  }
  constexpr auto kMostTiles = static_cast<std::uint64_t>(kLargestCount);
  for (const Wave& wave : waves_) {
    const std::uint64_t of_one =
        std::min(kMostTiles, wave.rows.block.ceil(size_of(fields, wave.rows.field)) *
                                 wave.columns.block.ceil(size_of(fields, wave.columns.field)));
    const std::uint64_t tiles = std::min(kMostTiles, of_one * size_of(fields, wave.repeat));
    const std::uint64_t waves = wave.places.ceil(tiles);
    put(wave.is_use ? use_of(tiles, waves * wave.places.by())
                    : log2_units(static_cast<std::int64_t>(waves)),
        wave.standard, out);
  }
}

#if defined(__SSE2__)

// Computes sixteen outputs: a product instruction multiplies a pair of inputs with the weights of
// four of them.
void DistilledRanker::sums(const Layer& layer, std::size_t group, const std::int16_t* inputs,
                           std::int32_t* out) {
  const auto load = [](const void* from) {
    __m128i vector;
    std::memcpy(&vector, from, sizeof(vector));
    return vector;
  };
  const std::int32_t* bias = layer.bias.data() + group * kGroup;
  __m128i first = load(bias);
  __m128i second = load(bias + 4);
  __m128i third = load(bias + 8);
  __m128i fourth = load(bias + 12);
  const std::int16_t* weights = layer.weights.data() + group * layer.pairs * kGroup * 2;
  for (std::size_t pair = 0; pair < layer.pairs; ++pair, weights += kGroup * 2) {
    std::int32_t two = 0;
    std::memcpy(&two, inputs + 2 * pair, sizeof(two));
    const __m128i both = _mm_set1_epi32(two);
    first = _mm_add_epi32(first, _mm_madd_epi16(both, load(weights)));
    second = _mm_add_epi32(second, _mm_madd_epi16(both, load(weights + 8)));
    third = _mm_add_epi32(third, _mm_madd_epi16(both, load(weights + 16)));
    fourth = _mm_add_epi32(fourth, _mm_madd_epi16(both, load(weights + 24)));
  }
  std::memcpy(out, &first, sizeof(first));
  std::memcpy(out + 4, &second, sizeof(second));
  std::memcpy(out + 8, &third, sizeof(third));
  std::memcpy(out + 12, &fourth, sizeof(fourth));
}

#else

void DistilledRanker::sums(const Layer& layer, std::size_t group, const std::int16_t* inputs,
                           std::int32_t* out) {
  std::copy_n(layer.bias.data() + group * kGroup, kGroup, out);
  const std::int16_t* weights = layer.weights.data() + group * layer.pairs * kGroup * 2;
  for (std::size_t pair = 0; pair < layer.pairs; ++pair, weights += kGroup * 2) {
    const std::int32_t even = inputs[2 * pair];
    const std::int32_t odd = inputs[2 * pair + 1];
    for (std::size_t o = 0; o < kGroup; ++o) {
      out[o] += even * weights[2 * o] + odd * weights[2 * o + 1];
    }
  }
}

#endif

void DistilledRanker::scores(const Inputs& inputs, Scores& out) const noexcept {
  std::array<std::array<std::int16_t, DistilledModel::kMaxHidden>, 2>
      hidden;  // NOLINT: written before it is read
  const std::int16_t* values = inputs.data();
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    std::array<std::int16_t, DistilledModel::kMaxHidden>& next = hidden[l % 2];
    for (std::size_t group = 0; group < layer.groups; ++group) {
      if (l + 1 == layers_.size()) {
        sums(layer, group, values, out.data() + group * kGroup);
        continue;
      }
      std::array<std::int32_t, kGroup> raw;  // NOLINT: written before it is read
      sums(layer, group, values, raw.data());
      for (std::size_t o = 0; o < kGroup; ++o) {
        next[group * kGroup + o] = static_cast<std::int16_t>(
            std::clamp(raw[o] >> layer.shift, 0, DistilledModel::kMaxHiddenValue));
      }
    }
    values = next.data();
  }
}

}  // namespace foretune
