// Evaluations over several splits as text and as JSON.
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

}  // namespace

std::string splits_text(const CrossEvaluation& result) {
  using report_internal::percent_text;
  using report_internal::right;
  std::size_t width = 12;
  for (const SplitResult& split : result.splits) {
    width = std::max(width, split.name.size());
  }
  std::string out = concat("  left out", std::string(width - 8, ' '), right("trained on", 12),
                           right("tested on", 11), right("mean", 8), right("P10", 8),
                           right("min", 8), right("top 5", 8), "\n");
  std::size_t shared = 0;
  for (const SplitResult& split : result.splits) {
    shared += split.shared_groups;
    out += concat(
        "  ", report_internal::clean_text(split.name), std::string(width - split.name.size(), ' '),
        right(concat(split.training_problems), 12), right(concat(split.test_problems), 11),
        right(percent_text(split.mean_efficiency), 8), right(percent_text(split.p10_efficiency), 8),
        right(percent_text(split.min_efficiency), 8),
        right(percent_text(split.top5_measured_efficiency), 8), "\n");
  }
  if (shared > 0) {
    out +=
        concat("  ", shared, " of the problems have the same sizes as one that was trained on\n");
  }
  return out;
}

std::string cross_report_json(const CrossEvaluation& result, const std::string& name,
                              const std::string& command, const Fingerprint& machine) {
  Json out = Json::parse(report_json(result.evaluation, name, command, machine));
  out["splits"] = Json::array();
  for (const SplitResult& split : result.splits) {
    out["splits"].push_back({{"name", split.name},
                             {"training_problems", split.training_problems},
                             {"test_problems", split.test_problems},
                             {"shared_groups", split.shared_groups},
                             {"mean_efficiency", split.mean_efficiency},
                             {"p10_efficiency", split.p10_efficiency},
                             {"min_efficiency", split.min_efficiency},
                             {"top5_measured_efficiency", split.top5_measured_efficiency}});
  }
  return report_internal::text_of(out);
}

}  // namespace foretune
