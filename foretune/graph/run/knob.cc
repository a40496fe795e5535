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
#include "foretune/graph/run/weight_transform.h"
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

// Ways to have fewer weights take the bits of zero_weights, which they exclude, and say so in the
// last bits. Winograd's algorithm has a size instead of parts.
constexpr std::array<std::string_view, 4> kReductions{"rank", "channels", "pruned", "pattern"};
constexpr std::string_view kWinograd = "winograd";
constexpr std::string_view kOwn = "own";
constexpr std::uint32_t kWeightsShift = kTypeBits + 3 * 2 * kPeriodBits;
constexpr std::uint32_t kWeightsBits = 2 * kPeriodBits;
constexpr std::uint32_t kBeforeShift = kWeightsShift + kWeightsBits;
constexpr std::uint32_t kReductionShift = kBeforeShift + 1;

// Returns true for parts that a layer may leave out, whichever layer it is.
bool is_meant(Reduction kind, std::int64_t of, std::int64_t by) {
  switch (kind) {
    case Reduction::kNone:
      return of == 0 && by == 0;
    case Reduction::kWinograd:
      return (of == 2 || of == 4) && by == 0;
    case Reduction::kOwn:
      return of >= 0 && of < 1 << kWeightsBits && by == 0;
    case Reduction::kRank:
    case Reduction::kChannels:
    case Reduction::kPruned:
    case Reduction::kPattern:
      break;
  }
  return of >= 2 && of <= kPeriodMask && by >= 1 && by < of;
}

std::string reduction_text(const LayerVariant& variant) {
  if (variant.reduction == Reduction::kWinograd) {
    return concat(kWinograd, variant.reduction_of);
  }
  if (variant.reduction == Reduction::kOwn) {
    const WeightTransform* const own = find_weight_transform(variant.reduction_of);
    return own == nullptr ? concat(kOwn, variant.reduction_of) : std::string(own->name());
  }
  return concat(kReductions[static_cast<std::size_t>(variant.reduction) - 1], variant.reduction_of,
                ".", variant.reduction_by);
}

// Reads a part of a name into the variant. Returns false for one that is none.
bool read_reduction(std::string_view part, LayerVariant& variant) {
  const WeightTransform* const own = find_weight_transform(part);
  const std::size_t letters = std::min(part.find_first_of("0123456789"), part.size());
  const std::string_view name = part.substr(0, letters);
  const std::vector<std::string_view> numbers = split(part.substr(letters), '.');
  const auto of = parse_int(numbers[0]);
  const auto by = numbers.size() == 2 ? parse_int(numbers[1]) : std::nullopt;
  const auto* const known = std::find(kReductions.begin(), kReductions.end(), name);
  LayerVariant read = variant;
  if (own != nullptr) {
    read.reduction = Reduction::kOwn;
    read.reduction_of = own->number();
  } else if (known != kReductions.end() && of && by) {
    read.reduction = static_cast<Reduction>(known - kReductions.begin() + 1);
    read.reduction_of = *of;
    read.reduction_by = *by;
  } else if ((name == kWinograd || name == kOwn) && of && numbers.size() == 1) {
    read.reduction = name == kOwn ? Reduction::kOwn : Reduction::kWinograd;
    read.reduction_of = *of;
  }
  if (variant.reduction != Reduction::kNone || read.reduction == Reduction::kNone ||
      !is_meant(read.reduction, read.reduction_of, read.reduction_by)) {
    return false;
  }
  variant = read;
  return true;
}

void add_reductions(std::vector<std::int32_t>& knobs) {
  const auto add = [&](DataType type, Reduction kind, std::int64_t of, std::int64_t by) {
    knobs.push_back(
        knob_of({.type = type, .reduction = kind, .reduction_of = of, .reduction_by = by}));
  };
  for (const auto& [of, by] : {std::pair{2, 1}, std::pair{4, 3}}) {
    add(DataType::kF32, Reduction::kRank, of, by);
    add(DataType::kF32, Reduction::kPruned, of, by);
  }
  add(DataType::kF32, Reduction::kPattern, 4, 2);
  for (const DataType type : {DataType::kF32, DataType::kI8}) {
    add(type, Reduction::kChannels, 4, 1);
    add(type, Reduction::kChannels, 2, 1);
  }
  add(DataType::kF32, Reduction::kWinograd, 2, 0);
  add(DataType::kF32, Reduction::kWinograd, 4, 0);
}

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
  if (variant.reduction != Reduction::kNone) {
    const auto of = static_cast<std::uint32_t>(variant.reduction_of);
    const auto by = static_cast<std::uint32_t>(variant.reduction_by);
    bits |= (of | by << kPeriodBits) << kWeightsShift;
    bits |= static_cast<std::uint32_t>(variant.reduction) << kReductionShift;
  }
  bits |= (variant.before_activation ? 1U : 0U) << kBeforeShift;
  return static_cast<std::int32_t>(bits);
}

Result<LayerVariant> variant_of_knob(std::int32_t knob) {
  auto bits = static_cast<std::uint32_t>(knob);
  LayerVariant variant;
  const auto refused = [knob] {
    return fail(ErrorCode::kInvalidArgument, knob, " is the number of no knob");
  };
  if (const std::uint32_t kind = bits >> kReductionShift; kind > 0) {
    if (kind > static_cast<std::uint32_t>(Reduction::kOwn)) {
      return refused();
    }
    const std::uint32_t parts = bits >> kWeightsShift & ((1U << kWeightsBits) - 1);
    variant.reduction = static_cast<Reduction>(kind);
    variant.reduction_of = variant.reduction == Reduction::kOwn ? parts : parts & kPeriodMask;
    variant.reduction_by = variant.reduction == Reduction::kOwn ? 0 : parts >> kPeriodBits;
    if (!is_meant(variant.reduction, variant.reduction_of, variant.reduction_by)) {
      return refused();
    }
    bits &= (1U << kReductionShift) - 1;
    bits &= ~(((1U << kWeightsBits) - 1) << kWeightsShift);
  }
  const std::uint32_t type = bits & ((1U << kTypeBits) - 1);
  bits >>= kTypeBits;
  for (const Skip& skip : kSkips) {
    for (const auto part : {skip.period, skip.at}) {
      variant.*part = bits & kPeriodMask;
      bits >>= kPeriodBits;
    }
    if (variant.*skip.period == 1 ||
        (variant.*skip.at != 0 && variant.*skip.at >= variant.*skip.period)) {
      return refused();
    }
  }
  if (type >= kTypes.size() || bits > 1) {
    return refused();
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
  if (variant->reduction != Reduction::kNone) {
    text += concat("+", reduction_text(*variant));
  }
  return variant->before_activation ? concat(text, "+", kBefore) : text;
}

Result<std::int32_t> parse_knob(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '+');
  LayerVariant variant;
  FORETUNE_TRY(variant.type, parse_data_type(parts[0]));
  if (std::find(kTypes.begin(), kTypes.end(), variant.type) == kTypes.end()) {
    return fail(ErrorCode::kInvalidArgument, "layers compute in f32, f16, bf16 and i8, not ", parts[0]);
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] == kBefore) {
      variant.before_activation = true;
      continue;
    }
    if (read_reduction(parts[i], variant)) {
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
  if (variant.reduction != Reduction::kNone && variant.zero_weights > 0) {
    return fail(ErrorCode::kInvalidArgument, foretune::quoted(text),
                " leaves out weights in two ways");
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
  if (text == "reductions") {
    knobs.push_back(knob_of({}));
    add_reductions(knobs);
    return knobs;
  }
  if (text == "all") {
    for (const DataType type : {DataType::kF32, DataType::kBf16, DataType::kI8}) {
      add_knobs(knobs, type, true);
    }
    add_reductions(knobs);
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
