#include "foretune/evaluate/training_curves.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/formats/json.h"

namespace foretune {
namespace {

using ParsedJson = formats::Json;

constexpr std::int32_t kMaxEpochs = 1'000'000'000;

// The part of the card that is about networks: an ensemble's has two.
const ParsedJson* networks_part(const ParsedJson& card) {
  const ParsedJson* part = formats::member(card, "networks");
  return part != nullptr && part->is_object() ? part : &card;
}

const ParsedJson* curves_part(const ParsedJson& part) {
  const ParsedJson* training = formats::member(part, "training");
  const ParsedJson* curves = training == nullptr ? nullptr : formats::member(*training, "curves");
  return curves != nullptr && curves->is_array() ? curves : nullptr;
}

// 1 and more, or nothing.
std::optional<std::uint32_t> count_at(const ParsedJson& object, const char* key) {
  const std::optional<std::int64_t> value = formats::integer_at(object, key);
  return value && *value >= 1 && *value <= kMaxEpochs
             ? std::optional(static_cast<std::uint32_t>(*value))
             : std::nullopt;
}

// One number for every epoch, or nothing.
std::optional<std::vector<double>> column_at(const ParsedJson& curve, const char* key) {
  const ParsedJson* const column = formats::member(curve, key);
  if (column == nullptr || !column->is_array()) {
    return std::nullopt;
  }
  std::vector<double> out;
  for (const ParsedJson& value : *column) {
    if (!value.is_number()) {
      return std::nullopt;
    }
    out.push_back(value.get<double>());
  }
  return out;
}

// Beyond it a plot of the losses would compute with infinities.
constexpr double kMaxLoss = 1e100;

// Epochs ascend, none is after the last, and losses are numbers.
bool is_sound(const TrainingCurve& curve) {
  std::uint32_t last = 0;
  for (const TrainingCurve::Point& point : curve.points) {
    if (point.epoch <= last || !(std::fabs(point.train_loss) <= kMaxLoss) ||
        std::fabs(point.stop_loss) > kMaxLoss) {
      return false;
    }
    last = point.epoch;
  }
  return last <= curve.epochs;
}

std::optional<std::vector<TrainingCurve::Point>> points_of(const ParsedJson& json) {
  const auto epoch = column_at(json, "epoch");
  const auto train_loss = column_at(json, "train_loss");
  if (!epoch || !train_loss) {
    return std::nullopt;
  }
  // Without stopping problems there is no such column.
  const auto stop_loss = formats::member(json, "stop_loss") != nullptr
                             ? column_at(json, "stop_loss")
                             : std::vector(epoch->size(), std::nan(""));
  if (!stop_loss || train_loss->size() != epoch->size() || stop_loss->size() != epoch->size()) {
    return std::nullopt;
  }
  std::vector<TrainingCurve::Point> out;
  for (std::size_t i = 0; i < epoch->size(); ++i) {
    const double number = (*epoch)[i];
    if (!(number >= 1 && number <= kMaxEpochs)) {
      return std::nullopt;
    }
    out.push_back({static_cast<std::uint32_t>(number), (*train_loss)[i], (*stop_loss)[i]});
  }
  return out;
}

std::optional<TrainingCurve> curve_of(const ParsedJson& json) {
  const auto epochs = count_at(json, "epochs");
  const auto best_epoch = count_at(json, "best_epoch");
  auto points = points_of(json);
  if (!epochs || !best_epoch || !points) {
    return std::nullopt;
  }
  const auto best =
      std::find_if(points->begin(), points->end(),
                   [&](const TrainingCurve::Point& point) { return point.epoch == *best_epoch; });
  if (best == points->end()) {
    return std::nullopt;
  }
  const auto fold = count_at(json, "fold");
  TrainingCurve out{.name = fold ? concat("fold ", *fold) : std::string("all data"),
                    .is_whole = !fold,
                    .epochs = *epochs,
                    .best = *best};
  out.points = *std::move(points);
  return is_sound(out) ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

TrainingCurves training_curves(std::string_view card_json) {
  TrainingCurves out;
  const Result<ParsedJson> card = formats::parse_json(card_json);
  const ParsedJson* const part = card ? networks_part(*card) : nullptr;
  const ParsedJson* const curves = part == nullptr ? nullptr : curves_part(*part);
  if (curves == nullptr) {
    return out;
  }
  if (const ParsedJson* options = formats::member(*part, "options")) {
    out.loss = formats::text_at(*options, "loss").value_or("");
  }
  const bool are_several = std::any_of(curves->begin(), curves->end(), [](const ParsedJson& curve) {
    return count_at(curve, "network").value_or(1) > 1;
  });
  for (const ParsedJson& json : *curves) {
    if (std::optional<TrainingCurve> curve = curve_of(json)) {
      if (are_several) {
        curve->name += concat(", network ", count_at(json, "network").value_or(1));
      }
      out.curves.push_back(*std::move(curve));
    }
  }
  return out;
}

std::string card_without_curves(const std::string& card_json) {
  using Ordered = nlohmann::ordered_json;
  if (training_curves(card_json).curves.empty()) {
    return card_json;
  }
  // It was parsed with limits above; this time the order of its keys is kept.
  Ordered card = Ordered::parse(card_json, nullptr, false);
  if (card.is_discarded()) {
    return card_json;
  }
  for (Ordered* part : {&card, card.contains("networks") ? &card["networks"] : &card}) {
    if (part->is_object()) {
      part->erase("training");
    }
  }
  return card.dump(2, ' ', false, Ordered::error_handler_t::replace);
}

}  // namespace foretune
