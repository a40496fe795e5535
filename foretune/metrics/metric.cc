#include "foretune/metrics/metric.h"

#include <algorithm>
#include <array>
#include <vector>

#include "foretune/base/text.h"

namespace foretune {
namespace {

constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMaxUnitBytes = 16;
constexpr std::string_view kEvaluationWord = "evaluation";

const std::array<MetricInfo, 7>& common() {
  static const std::array<MetricInfo, 7> infos{{
      {.name = std::string(kTimeNs), .unit = "ns"},
      {.name = std::string(kMedianNs), .unit = "ns"},
      {.name = std::string(kPackNs), .unit = "ns"},
      {.name = std::string(kEnergyJ), .unit = "J", .stage = MetricStage::kEvaluation},
      {.name = std::string(kWorkspaceBytes), .unit = "B"},
      {.name = "qos_tune",
       .unit = "",
       .direction = Direction::kMaximise,
       .stage = MetricStage::kEvaluation},
      {.name = "qos_test",
       .unit = "",
       .direction = Direction::kMaximise,
       .stage = MetricStage::kEvaluation},
  }};
  return infos;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::optional<Direction> parse_direction(std::string_view text) {
  for (const Direction direction : {Direction::kMinimise, Direction::kMaximise}) {
    if (to_string(direction) == text) {
      return direction;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Direction direction) {
  return direction == Direction::kMaximise ? "maximise" : "minimise";
}

const MetricValue* find_metric(std::span<const MetricValue> values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const MetricValue& value) { return value.metric == name; });
  return found == values.end() ? nullptr : &*found;
}

const MetricInfo* find_metric(std::span<const MetricInfo> infos, std::string_view name) {
  const auto found = std::find_if(infos.begin(), infos.end(),
                                  [&](const MetricInfo& info) { return info.name == name; });
  return found == infos.end() ? nullptr : &*found;
}

std::span<const MetricInfo> common_metrics() { return common(); }

MetricInfo metric_info(std::string_view name) {
  if (const MetricInfo* known = find_metric(common_metrics(), name)) {
    return *known;
  }
  return {.name = std::string(name), .unit = ""};
}

Status check_metric_info(const MetricInfo& info) {
  const std::string_view name = info.name;
  if (name.empty() || name.size() > kMaxNameBytes || !is_letter(name.front()) ||
      !std::all_of(name.begin(), name.end(),
                   [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; })) {
    return fail(ErrorCode::kInvalidArgument, quoted(name, 40),
                " is no name of a metric: a letter, then letters, digits and underscores, at most ",
                kMaxNameBytes);
  }
  const bool is_clean = std::all_of(info.unit.begin(), info.unit.end(), [](char c) {
    return c > ' ' && c != ':' && c != ',' && c != '"';
  });
  if (info.unit.size() > kMaxUnitBytes || !is_clean) {
    return fail(ErrorCode::kInvalidArgument, quoted(info.unit, 40), " is no unit of the metric ",
                name, ": at most ", kMaxUnitBytes, " bytes, without spaces, colons and quotes");
  }
  return {};
}

std::string to_text(const MetricInfo& info) {
  if (const MetricInfo* known = find_metric(common_metrics(), info.name);
      known != nullptr && *known == info) {
    return info.name;
  }
  std::string out = concat(info.name, ":", to_string(info.direction), ":", info.unit);
  if (info.stage == MetricStage::kEvaluation) {
    out += concat(":", kEvaluationWord);
  }
  return out;
}

Result<MetricInfo> parse_metric_info(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  MetricInfo info = metric_info(parts[0]);
  const std::optional<Direction> direction =
      parts.size() > 1 ? parse_direction(parts[1]) : info.direction;
  if (parts.size() > 4 || !direction || (parts.size() == 4 && parts[3] != kEvaluationWord)) {
    return fail(ErrorCode::kInvalidArgument, quoted(text, 60),
                " is no metric: NAME, or NAME:minimise:UNIT or NAME:maximise:UNIT, with "
                ":evaluation behind it for one of a later stage");
  }
  if (parts.size() > 1) {
    info.direction = *direction;
    info.unit = parts.size() > 2 ? std::string(parts[2]) : std::string();
    info.stage = parts.size() > 3 ? MetricStage::kEvaluation : MetricStage::kRun;
  }
  FORETUNE_TRY_STATUS(check_metric_info(info));
  return info;
}

}  // namespace foretune
