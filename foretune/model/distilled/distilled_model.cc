#include "foretune/model/distilled/distilled_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <unordered_set>

#include "foretune/model/distilled/internal/distilled_units.h"

namespace foretune {

using distilled_units::clamped_size;
using distilled_units::kLargestCount;
using distilled_units::log2_units;
using distilled_units::standardised;

namespace {

constexpr std::int64_t kUnit = DistilledModel::kUnit;
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t size_of(std::span<const std::int64_t> fields, std::uint8_t field) {
  return clamped_size(fields[field]);
}

std::int64_t use(std::int64_t value, std::int64_t block) {
  return value * kUnit / (ceil_div(value, block) * block);
}

std::int64_t tiles_of(const DistilledFeature& feature, std::span<const std::int64_t> fields) {
  const std::int64_t tiles =
      std::min(kLargestCount, ceil_div(size_of(fields, feature.field), feature.block) *
                                  ceil_div(size_of(fields, feature.other), feature.other_block));
  return std::min(kLargestCount, tiles * size_of(fields, feature.repeat));
}

}  // namespace

std::int64_t distilled_feature_value(const DistilledFeature& feature,
                                     std::span<const std::int64_t> fields) {
  switch (feature.kind) {
    case DistilledFeatureKind::kLog2:
      return log2_units(size_of(fields, feature.field));
    case DistilledFeatureKind::kUse:
      return use(size_of(fields, feature.field), feature.block);
    case DistilledFeatureKind::kLabel:
      return fields[feature.field] == feature.block ? kUnit : 0;
    case DistilledFeatureKind::kWaveUse:
      return use(tiles_of(feature, fields), feature.places);
    case DistilledFeatureKind::kWaves:
      return log2_units(ceil_div(tiles_of(feature, fields), feature.places));
  }
  return 0;
}

Status check_distilled_feature(const DistilledFeature& feature, std::size_t index,
                               std::size_t fields) {
  if (feature.kind > DistilledFeatureKind::kWaves) {
    return fail(ErrorCode::kUnsupported, "input ", index, " of the fast model is of a kind that ",
                "this version does not know");
  }
  // A label may be any number. The other kinds divide by `block`.
  const bool is_label = feature.kind == DistilledFeatureKind::kLabel;
  if (feature.field >= fields || feature.other >= fields || feature.repeat >= fields ||
      (!is_label && feature.block < 1) || feature.other_block < 1 || feature.places < 1) {
    return fail(ErrorCode::kCorrupt, "input ", index, " of the fast model makes no sense");
  }
  return {};
}

void put_distilled_feature(ByteWriter& writer, const DistilledFeature& feature) {
  writer.put(static_cast<std::uint8_t>(feature.kind), feature.field, feature.other, feature.repeat,
             feature.block, feature.other_block, feature.places, feature.mean, feature.scale);
}

DistilledFeature get_distilled_feature(ByteReader& reader) {
  DistilledFeature feature;
  feature.kind = static_cast<DistilledFeatureKind>(reader.get<std::uint8_t>());
  feature.field = reader.get<std::uint8_t>();
  feature.other = reader.get<std::uint8_t>();
  feature.repeat = reader.get<std::uint8_t>();
  feature.block = reader.get<std::int32_t>();
  feature.other_block = reader.get<std::int32_t>();
  feature.places = reader.get<std::int32_t>();
  feature.mean = reader.get<std::int32_t>();
  feature.scale = reader.get<std::int32_t>();
  return feature;
}

void DistilledModel::inputs(std::span<const std::int64_t> fields,
                            std::span<std::int16_t> out) const noexcept {
  for (std::size_t i = 0; i < features.size(); ++i) {
    const DistilledFeature& feature = features[i];
    out[i] = standardised(distilled_feature_value(feature, fields), feature.mean, feature.scale);
  }
}

namespace {

// Returns the sum of products of 16-bit numbers. Compilers turn it into one instruction for every
// eight products.
std::int32_t dot(const std::int16_t* a, const std::int16_t* b, std::size_t count) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += static_cast<std::int32_t>(a[i]) * b[i];
  }
  return sum;
}

}  // namespace

void DistilledModel::scores(std::span<const std::int16_t> inputs,
                            std::span<std::int32_t> out) const noexcept {
  std::array<std::array<std::int16_t, kMaxHidden>, 2> hidden;  // NOLINT: written before it is read
  const std::int16_t* values = inputs.data();
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const DistilledLayer& layer = layers[l];
    std::array<std::int16_t, kMaxHidden>& next = hidden[l % 2];
    for (std::size_t i = 0; i < layer.outputs; ++i) {
      const std::int32_t sum =
          layer.bias[i] + dot(layer.weights.data() + i * layer.inputs, values, layer.inputs);
      if (l + 1 == layers.size()) {
        out[i] = sum;
      } else {
        next[i] = static_cast<std::int16_t>(std::clamp(sum >> layer.shift, 0, kMaxHiddenValue));
      }
    }
    values = next.data();
  }
}

float DistilledModel::bound(std::span<const std::int16_t> inputs) const noexcept {
  std::size_t at = 0;
  while (regions[at].feature != DistilledRegion::kLeaf) {
    at = regions[at].left + (inputs[regions[at].feature] <= regions[at].threshold ? 0U : 1U);
  }
  return regions[at].bound;
}

// ---- checks -------------------------------------------------------------------------------------

namespace {

// Fails when some inputs could make a sum of the layer overflow 32 bits.
Status check_layer(const DistilledLayer& layer, std::size_t index, std::int64_t largest_input) {
  if (layer.weights.size() != std::size_t{layer.inputs} * layer.outputs ||
      layer.bias.size() != layer.outputs || layer.shift > 31) {
    return fail(ErrorCode::kCorrupt, "the sizes of layer ", index, " of the fast model differ");
  }
  for (std::size_t i = 0; i < layer.outputs; ++i) {
    std::int64_t largest = std::abs(std::int64_t{layer.bias[i]});
    for (std::size_t k = 0; k < layer.inputs; ++k) {
      largest += std::abs(std::int64_t{layer.weights[i * layer.inputs + k]}) * largest_input;
    }
    if (largest > std::numeric_limits<std::int32_t>::max()) {
      return fail(ErrorCode::kCorrupt, "a sum of layer ", index, " of the fast model overflows");
    }
  }
  return {};
}

Status check_layers(const DistilledModel& model) {
  if (model.layers.empty() || model.layers.size() > DistilledModel::kMaxLayers) {
    return fail(ErrorCode::kCorrupt, "the fast model has ", model.layers.size(), " layers");
  }
  std::size_t width = model.features.size();
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const DistilledLayer& layer = model.layers[l];
    const bool is_last = l + 1 == model.layers.size();
    if (layer.inputs != width ||
        (is_last ? layer.outputs != model.portfolio.size()
                 : layer.outputs < 1 || layer.outputs > DistilledModel::kMaxHidden)) {
      return fail(ErrorCode::kCorrupt, "layer ", l, " of the fast model does not fit the others");
    }
    FORETUNE_TRY_STATUS(
        check_layer(layer, l, l == 0 ? DistilledModel::kUnit : DistilledModel::kMaxHiddenValue));
    width = layer.outputs;
  }
  return {};
}

// Checks that children come after their parent, so that every path through the tree ends.
Status check_regions(const DistilledModel& model) {
  if (model.regions.empty()) {
    return fail(ErrorCode::kCorrupt, "the fast model has no bound");
  }
  for (std::size_t i = 0; i < model.regions.size(); ++i) {
    const DistilledRegion& region = model.regions[i];
    const bool is_leaf = region.feature == DistilledRegion::kLeaf;
    const bool fits = is_leaf ? region.bound >= 0 && std::isfinite(region.bound)
                              : region.feature < model.features.size() && region.left > i &&
                                    region.left + std::size_t{1} < model.regions.size();
    if (!fits) {
      return fail(ErrorCode::kCorrupt, "region ", i, " of the fast model makes no sense");
    }
  }
  return {};
}

}  // namespace

Status DistilledModel::validate(std::size_t fields, std::size_t pool) const {
  if (portfolio.empty() || portfolio.size() > kMaxPortfolio) {
    return fail(ErrorCode::kCorrupt, "the fast model ranks ", portfolio.size(),
                " candidates instead of 1 to ", kMaxPortfolio);
  }
  std::unordered_set<std::uint32_t> seen;
  for (const std::uint32_t candidate : portfolio) {
    if (candidate >= pool || !seen.insert(candidate).second) {
      return fail(ErrorCode::kCorrupt, "the fast model names candidate ", candidate,
                  candidate < pool ? " twice" : ", which does not exist");
    }
  }
  if (features.empty() || features.size() > kMaxInputs) {
    return fail(ErrorCode::kCorrupt, "the fast model has ", features.size(), " inputs");
  }
  for (std::size_t i = 0; i < features.size(); ++i) {
    FORETUNE_TRY_STATUS(check_distilled_feature(features[i], i, fields));
  }
  if (!(score_unit > 0 && std::isfinite(score_unit) && mean_regret >= 0 &&
        std::isfinite(mean_regret) && p90_regret >= 0 && std::isfinite(p90_regret))) {
    return fail(ErrorCode::kCorrupt, "the unit of the fast model's scores or its regret is no ",
                "number above 0");
  }
  FORETUNE_TRY_STATUS(check_layers(*this));
  return check_regions(*this);
}

// ---- bytes --------------------------------------------------------------------------------------

void put_distilled_model(ByteWriter& writer, const DistilledModel& model) {
  writer.put_varint(model.portfolio.size());
  for (const std::uint32_t candidate : model.portfolio) {
    writer.put_varint(candidate);
  }
  writer.put_varint(model.features.size());
  for (const DistilledFeature& feature : model.features) {
    put_distilled_feature(writer, feature);
  }
  writer.put_varint(model.layers.size());
  for (const DistilledLayer& layer : model.layers) {
    writer.put_varint(layer.inputs);
    writer.put_varint(layer.outputs);
    writer.put_varint(layer.shift);
    for (const std::int16_t weight : layer.weights) {
      writer.put(weight);
    }
    for (const std::int32_t bias : layer.bias) {
      writer.put(bias);
    }
  }
  writer.put(model.score_unit);
  writer.put_varint(model.regions.size());
  for (const DistilledRegion& region : model.regions) {
    writer.put(region.feature, region.threshold, region.left, region.bound);
  }
  writer.put(model.mean_regret, model.p90_regret);
}

namespace {

std::uint32_t get_small(ByteReader& reader, std::uint32_t largest) {
  const std::uint64_t value = reader.get_varint();
  if (value > largest) {
    reader.fail();
    return 0;
  }
  return static_cast<std::uint32_t>(value);
}

DistilledLayer get_layer(ByteReader& reader) {
  constexpr std::uint32_t kWidest = DistilledModel::kMaxInputs;
  DistilledLayer layer;
  layer.inputs = get_small(reader, kWidest);
  layer.outputs = get_small(reader, kWidest);
  layer.shift = get_small(reader, 31);
  const std::size_t weights = std::size_t{layer.inputs} * layer.outputs;
  if (weights * sizeof(std::int16_t) > reader.remaining()) {
    reader.fail();
    return layer;
  }
  layer.weights.resize(weights);
  for (std::int16_t& weight : layer.weights) {
    weight = reader.get<std::int16_t>();
  }
  layer.bias.resize(layer.outputs);
  for (std::int32_t& bias : layer.bias) {
    bias = reader.get<std::int32_t>();
  }
  return layer;
}

}  // namespace

Result<DistilledModel> get_distilled_model(ByteReader& reader) {
  constexpr std::size_t kFeatureBytes = 24;
  constexpr std::size_t kRegionBytes = 12;
  DistilledModel model;
  model.portfolio.resize(reader.get_count(1));
  for (std::uint32_t& candidate : model.portfolio) {
    candidate = get_small(reader, UINT32_MAX);
  }
  model.features.resize(reader.get_count(kFeatureBytes));
  for (DistilledFeature& feature : model.features) {
    feature = get_distilled_feature(reader);
  }
  const std::uint64_t layers = reader.get_count(3);
  for (std::uint64_t i = 0; i < layers && reader.ok(); ++i) {
    model.layers.push_back(get_layer(reader));
  }
  model.score_unit = reader.get<double>();
  model.regions.resize(reader.get_count(kRegionBytes));
  for (DistilledRegion& region : model.regions) {
    region.feature = reader.get<std::uint16_t>();
    region.threshold = reader.get<std::int16_t>();
    region.left = reader.get<std::uint32_t>();
    region.bound = reader.get<float>();
  }
  model.mean_regret = reader.get<double>();
  model.p90_regret = reader.get<double>();
  if (!reader.ok()) {
    return fail(ErrorCode::kCorrupt, "the fast model is damaged");
  }
  return model;
}

}  // namespace foretune
