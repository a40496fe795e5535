// Objectives: refused with a reason, or their text reads back to the same value, and judging by
// them yields numbers.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/metrics/objective.h"

namespace {

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void judge_all(const foretune::Objective& objective) {
  using foretune::MetricInfo;
  static const std::array<MetricInfo, 2> kInfos{
      MetricInfo{.name = "rate", .unit = "%", .direction = foretune::Direction::kMaximise},
      MetricInfo{.name = "pack_ns", .unit = "ns"}};
  static const std::array<foretune::MetricValue, 5> kBaseline{
      {{"time_ns", 1e6}, {"rate", -2}, {"qos_tune", 0}, {"pack_ns", 1e300}, {"bytes", 4096}}};
  const auto judge = foretune::Judge::create(objective, kInfos, kBaseline);
  if (!judge) {
    require(!judge.error().message.empty());
    return;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -1.0, 2e6, 1e308, -1e308, kInfinity, -kInfinity,
                             std::numeric_limits<double>::quiet_NaN()}) {
    const std::vector<double> values(judge->metrics().size(), value);
    const foretune::Judgement judgement = judge->judge(values);
    require(judgement.violation >= 0 && judgement.keep_violation >= 0);
    require(judgement.has_targets() != std::isnan(value));
    // The second bound is the looser one.
    require(!judgement.is_feasible() || judgement.is_kept());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using foretune::Objective;
  const auto objective =
      Objective::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!objective) {
    require(!objective.error().message.empty());
    return 0;
  }
  const std::string text = objective->text();
  const auto again = Objective::parse(text);
  require(again.has_value() && *again == *objective && again->text() == text);
  judge_all(*objective);
  return 0;
}
