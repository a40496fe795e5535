#include "foretune/graph/run/knob.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/graph/ops.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune::graph {

namespace {

constexpr std::array<DataType, 4> kTypes{DataType::kF32, DataType::kBf16, DataType::kI8,
                                         DataType::kF16};
constexpr std::uint32_t kTypeBits = 3;
constexpr std::uint32_t kPeriodBits = 3;
constexpr std::uint32_t kPeriodMask = 7;

struct Skip {
  std::string_view name;
  std::int64_t LayerVariant::* period;
  std::int64_t LayerVariant::* at;
};
constexpr std::array<Skip, 4> kSkips{
    {{"rows", &LayerVariant::skip_rows, &LayerVariant::skip_rows_at},
     {"columns", &LayerVariant::skip_columns, &LayerVariant::skip_columns_at},
     {"taps", &LayerVariant::skip_taps, &LayerVariant::skip_taps_at},
     {"weights", &LayerVariant::zero_weights, &LayerVariant::zero_weights_at}}};
constexpr std::string_view kBefore = "before";

void add_knobs(std::vector<std::int32_t>& knobs, DataType type, bool with_taps,
               std::int64_t most_columns = 4) {
  knobs.push_back(knob_of({.type = type}));
  for (const Skip& skip : kSkips) {
    if (skip.name == "weights" || (skip.name == "taps" && !with_taps)) {
      continue;
    }
    const std::int64_t most = skip.name == "columns" ? most_columns : 4;
    for (std::int64_t period = 2; period <= most; ++period) {
      for (std::int64_t at = 0; at < period; ++at) {
        LayerVariant variant{.type = type};
        variant.*skip.period = period;
        variant.*skip.at = at;
        knobs.push_back(knob_of(variant));
      }
    }
  }
}

}  // namespace

std::int32_t knob_of(const LayerVariant& variant) {
  const auto type = static_cast<std::uint32_t>(
      std::find(kTypes.begin(), kTypes.end(), variant.type) - kTypes.begin());
  std::uint32_t bits = type;
  std::uint32_t shift = kTypeBits;
  for (const Skip& skip : kSkips) {
    for (const auto part : {skip.period, skip.at}) {
      bits |= static_cast<std::uint32_t>(variant.*part) << shift;
      shift += kPeriodBits;
    }
  }
  bits |= (variant.before_activation ? 1U : 0U) << shift;
  return static_cast<std::int32_t>(bits);
}

Result<LayerVariant> variant_of_knob(std::int32_t knob) {
  auto bits = static_cast<std::uint32_t>(knob);
  LayerVariant variant;
  const std::uint32_t type = bits & ((1U << kTypeBits) - 1);
  bits >>= kTypeBits;
  for (const Skip& skip : kSkips) {
    for (const auto part : {skip.period, skip.at}) {
      variant.*part = bits & kPeriodMask;
      bits >>= kPeriodBits;
    }
    if (variant.*skip.period == 1 ||
        (variant.*skip.at != 0 && variant.*skip.at >= variant.*skip.period)) {
      return fail(ErrorCode::kInvalidArgument, knob, " is the number of no knob");
    }
  }
  if (type >= kTypes.size() || bits > 1) {
    return fail(ErrorCode::kInvalidArgument, knob, " is the number of no knob");
  }
  variant.type = kTypes[type];
  variant.before_activation = bits == 1;
  return variant;
}

std::string knob_text(std::int32_t knob) {
  const Result<LayerVariant> variant = variant_of_knob(knob);
  if (!variant) {
    return concat("?", knob);
  }
  std::string text(to_string(variant->type));
  for (const Skip& skip : kSkips) {
    if ((*variant).*skip.period > 0) {
      text += concat("+", skip.name, (*variant).*skip.period, ".", (*variant).*skip.at);
    }
  }
  return variant->before_activation ? concat(text, "+", kBefore) : text;
}

Result<std::int32_t> parse_knob(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '+');
  LayerVariant variant;
  FORETUNE_TRY(variant.type, parse_data_type(parts[0]));
  if (std::find(kTypes.begin(), kTypes.end(), variant.type) == kTypes.end()) {
    return fail(ErrorCode::kInvalidArgument, "no layer computes in ", parts[0]);
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] == kBefore) {
      variant.before_activation = true;
      continue;
    }
    const auto* const skip = std::find_if(kSkips.begin(), kSkips.end(), [&](const Skip& each) {
      return parts[i].starts_with(each.name);
    });
    const std::vector<std::string_view> numbers =
        skip == kSkips.end() ? std::vector<std::string_view>{}
                             : split(parts[i].substr(skip->name.size()), '.');
    const auto period = numbers.size() == 2 ? parse_int(numbers[0]) : std::nullopt;
    const auto at = numbers.size() == 2 ? parse_int(numbers[1]) : std::nullopt;
    if (!period || !at || *period < 2 || *period > kPeriodMask || *at < 0 || *at >= *period) {
      return fail(ErrorCode::kInvalidArgument, "a knob has parts like rows2.0, not ",
                  foretune::quoted(parts[i]));
    }
    variant.*skip->period = *period;
    variant.*skip->at = *at;
  }
  return knob_of(variant);
}

Result<std::vector<std::int32_t>> knob_catalogue(std::string_view text) {
  std::vector<std::int32_t> knobs;
  if (text == "exact") {
    return std::vector{knob_of({})};
  }
  if (text == "types") {
    return std::vector{knob_of({}), knob_of({.type = DataType::kBf16}),
                       knob_of({.type = DataType::kI8})};
  }
  if (text == "points") {
    add_knobs(knobs, DataType::kF32, false);
    return knobs;
  }
  if (text == "default") {
    add_knobs(knobs, DataType::kF32, true, 2);
    add_knobs(knobs, DataType::kI8, true, 2);
    knobs.push_back(knob_of({.type = DataType::kBf16}));
    return knobs;
  }
  if (text == "all") {
    for (const DataType type : {DataType::kF32, DataType::kBf16, DataType::kI8}) {
      add_knobs(knobs, type, true);
    }
    return knobs;
  }
  for (const std::string_view name : split(text, ',')) {
    FORETUNE_TRY(const std::int32_t knob, parse_knob(trim(name)));
    knobs.push_back(knob);
  }
  return knobs;
}

std::vector<const Node*> layers_of(const Network& network) {
  std::vector<const Node*> layers;
  for (const Node& node : network.nodes()) {
    if (has_weights(*node.op)) {
      layers.push_back(&node);
    }
  }
  return layers;
}

}  // namespace foretune::graph
