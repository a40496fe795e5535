// Evaluations of picks among configs that training lacks, as text and as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "foretune/base/text.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/json_values.h"

namespace foretune {
namespace {

using Json = nlohmann::ordered_json;
using report_internal::percent_text;
using report_internal::right;

constexpr std::size_t kWidth = 8;

std::string row_text(const UnseenConfigs& part, std::size_t width) {
  std::string out = concat("  ", report_internal::clean_text(part.name),
                           std::string(width - part.name.size(), ' '));
  out += right(concat(part.configs), kWidth) + right(concat(part.unseen.problems), 10);
  for (const double share :
       {part.unseen.mean_efficiency.value, part.unseen.median_efficiency.value,
        part.unseen.p10_efficiency.value, part.unseen.top1_hit, part.seen.mean_efficiency.value,
        part.random.mean_efficiency.value, part.of_all.mean_efficiency.value,
        part.of_all.p10_efficiency.value, part.picked_share}) {
    out += right(percent_text(share), kWidth);
  }
  return out + "\n";
}

Json picks_json(const PickerResult& picks) {
  return {{"problems", picks.problems},
          {"mean_efficiency", report_internal::number(picks.mean_efficiency.value)},
          {"median_efficiency", report_internal::number(picks.median_efficiency.value)},
          {"p10_efficiency", report_internal::number(picks.p10_efficiency.value)},
          {"min_efficiency", report_internal::number(picks.min_efficiency.value)},
          {"top1_hit", report_internal::number(picks.top1_hit)}};
}

Json part_json(const UnseenConfigs& part) {
  return {{"name", part.name},
          {"configs", part.configs},
          {"unseen", picks_json(part.unseen)},
          {"seen", picks_json(part.seen)},
          {"random", picks_json(part.random)},
          {"of_all", picks_json(part.of_all)},
          {"picked_share", report_internal::number(part.picked_share)}};
}

}  // namespace

std::string unseen_text(const UnseenEvaluation& unseen) {
  std::size_t width = std::max<std::size_t>(8, unseen.together.name.size());
  for (const UnseenConfigs& part : unseen.parts) {
    width = std::max(width, part.name.size());
  }
  std::string out = concat("  left out", std::string(width - 8, ' '));
  out += right("configs", kWidth) + right("problems", 10);
  for (const char* const name :
       {"mean", "median", "P10", "top 1", "seen", "random", "of all", "P10", "picked"}) {
    out += right(name, kWidth);
  }
  out += "\n";
  for (const UnseenConfigs& part : unseen.parts) {
    out += row_text(part, width);
  }
  return concat(
      out, row_text(unseen.together, width),
      "  mean, median, P10, top 1: picks among the configs left out, which no training measured\n"
      "  seen: mean of these picks by models that learned from those configs; random: of any\n"
      "  of all: picks among all configs, by the models that lack them; picked: how many of these "
      "are of the part\n");
}

std::string unseen_json(const UnseenEvaluation& unseen, const std::string& name,
                        const std::string& command, const Fingerprint& machine) {
  const UnseenConfigs& all = unseen.together;
  Json out;
  out["name"] = name;
  out["metrics"] = {
      {"unseen_mean_efficiency", report_internal::number(all.unseen.mean_efficiency.value)},
      {"unseen_p10_efficiency", report_internal::number(all.unseen.p10_efficiency.value)},
      {"seen_mean_efficiency", report_internal::number(all.seen.mean_efficiency.value)},
      {"random_efficiency", report_internal::number(all.random.mean_efficiency.value)},
      {"of_all_mean_efficiency", report_internal::number(all.of_all.mean_efficiency.value)},
      {"of_all_p10_efficiency", report_internal::number(all.of_all.p10_efficiency.value)}};
  out["machine"] = report_internal::machine_json(machine);
  out["command"] = command;
  out["parts"] = report_internal::array_of(unseen.parts, part_json);
  out["together"] = part_json(all);
  return report_internal::text_of(out);
}

}  // namespace foretune
