// foretune measure: times given configs of one problem beside the family's default and a model's
// pick.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/text.h"
#include "foretune/report/tune_report.h"
#include "foretune/workflow/measure_configs.h"
#include "foretune/workflow/output.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

bool is_time(std::string_view metric) { return metric == kTimeNs || metric == kMedianNs; }

void print_all(const Family& family, const Space& space, const Problem& problem,
               const std::vector<MeasuredConfig>& all) {
  const auto base = std::find_if(all.begin(), all.end(), [](const MeasuredConfig& each) {
    return each.name.find("default") != std::string::npos && each.time() != nullptr;
  });
  print(concat(problem.shown_text(), " by ", family.info().name, "\n"));
  for (const MeasuredConfig& each : all) {
    print(concat("\n", each.name, ": ", space.describe(each.config), "\n"));
    const MetricValue* const time = each.time();
    if (time == nullptr) {
      const Measurement& why =
          each.alone->outcome == Outcome::kOk && each.beside ? *each.beside : *each.alone;
      print(concat("  ", to_string(why.outcome), why.reason.empty() ? "" : ": ", why.reason, "\n"));
      continue;
    }
    std::string line = concat("  ", time_text(time->value));
    if (base != all.end() && &*base != &each) {
      line += concat(", ", fixed(base->time()->value / time->value, 3),
                     " times as fast as the default");
    }
    line += concat(", spread ", fixed(100 * static_cast<double>(time->spread), 1), " %");
    print(concat(line, ", result verified\n"));
    // Shows the times measured against each other.
    for (const MetricValue& value : each.alone->metrics) {
      const MetricInfo* info = find_metric(family.info().metrics, value.metric);
      info = info == nullptr ? find_metric(common_metrics(), value.metric) : info;
      if (!is_time(value.metric) && info != nullptr) {
        print(concat("  ", value.metric, " ", metric_text(value.value, info->unit), "\n"));
      }
    }
  }
}

Status write_json(const std::string& path, const Family& family,
                  const std::vector<MeasuredConfig>& all, const Invocation& invocation) {
  Figures figures{.name = "measure",
                  .metrics = {},
                  .machine = machine_facts(family.info().fingerprint),
                  .command = invocation.command_line};
  for (const MeasuredConfig& each : all) {
    const std::string name = to_text(family.info().config_schema, each.config);
    if (const MetricValue* const time = each.time()) {
      figures.add(concat(name, " time_ns"), time->value);
    }
    for (const MetricValue& value : each.alone->metrics) {
      if (!is_time(value.metric)) {
        figures.add(concat(name, " ", value.metric), value.value);
      }
    }
    figures.add(concat(name, " is_ok"), each.time() != nullptr ? 1 : 0);
  }
  return figures.write(path);
}

Result<int> run_measure(const MeasureConfigsArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const MeasuredConfigs measured, measure_configs(arguments, invocation));
  const std::vector<MeasuredConfig>& all = measured.configs;
  print_all(*measured.live.family, *measured.space, measured.problem, all);
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(write_json(arguments.json, *measured.live.family, all, invocation));
  }
  // A requested config that failed is no success.
  const bool all_ok = std::all_of(
      all.begin(), all.end(), [](const MeasuredConfig& each) { return each.time() != nullptr; });
  return all_ok ? kExitOk : kExitFailure;
}

}  // namespace

std::function<int(const Invocation&)> prepare_measure(OptionList& list) {
  return prepare_with<MeasureConfigsArguments, run_measure>(list);
}

}  // namespace foretune::cli
