#include "foretune/workflow/measure_configs.h"

#include <algorithm>
#include <span>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/model/model_file.h"
#include "foretune/select/select.h"
#include "foretune/workflow/judge.h"

namespace foretune::workflow {

void MeasureConfigsArguments::visit(OptionList& list) {
  problem.visit(list);
  list.add("config", configs, "TEXT",
           "config to measure, as it is printed: \"mr=8 nr=32 ...\"; for a sequence its numbers. "
           "May be repeated");
  list.add("json", json, "FILE", "write the figures as JSON");
  visit_measuring(list);
}

void MeasureConfigsArguments::visit_measuring(OptionList& list) {
  list.add("model", model, "FILE", "also measure this model's pick");
  list.add("metrics", metrics, "LIST",
           "also evaluate these metrics, joined by commas, each in a stage of its own");
  list.add("rounds", rounds, "N", "rounds in which the configs are timed against each other")
      .at_least(1);
  family.visit(list);
  measuring.visit(list);
}

const MetricValue* MeasuredConfig::time() const {
  return alone && alone->outcome == Outcome::kOk && beside && beside->outcome == Outcome::kOk
             ? beside->find(kTimeNs)
             : nullptr;
}

namespace {

void add(const std::string& name, const Config& config, std::vector<MeasuredConfig>& out) {
  const auto same = [&](const MeasuredConfig& known) { return known.config == config; };
  const auto found = std::find_if(out.begin(), out.end(), same);
  if (found == out.end()) {
    out.push_back({.name = name, .config = config});
  } else if (found->name.find(name) == std::string::npos) {
    found->name += concat(", ", name);
  }
}

Result<std::vector<MeasuredConfig>> configs_of(const MeasureConfigsArguments& arguments,
                                               const Family& family, const Space& space,
                                               const Problem& problem) {
  std::vector<MeasuredConfig> out;
  for (const std::string& text : arguments.configs) {
    auto config = parse_config(space.schema(), text);
    if (!config) {
      return fail_because(config.error(), "--config ", quoted(text, 60));
    }
    if (const Support legal = space.why_not(*config); !legal) {
      return fail(ErrorCode::kInvalidArgument, "the config ", quoted(text, 80),
                  " is not legal for ", problem.shown_text(), ": ", legal.reason());
    }
    add("given", *config, out);
  }
  if (const std::vector<Config> defaults = family.default_configs(problem); !defaults.empty()) {
    add("default", defaults.front(), out);
  }
  if (!arguments.model.empty()) {
    FORETUNE_TRY(const std::unique_ptr<Selector> selector,
                 open_selector(arguments.model, family.info()));
    const std::vector<Config> best = best_ranked(*selector, problem, 1);
    if (best.empty()) {
      return fail(ErrorCode::kUnsupported, arguments.model, " has no pick for ",
                  problem.shown_text());
    }
    add("model's pick", best.front(), out);
  }
  if (out.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "there is nothing to measure: give a --config or a --model");
  }
  return out;
}

// Measures each config alone and verifies its result; then times the right ones against each other.
void measure(Measurer& measurer, const Problem& problem, std::span<const std::string> evaluated,
             int rounds, std::vector<MeasuredConfig>& all) {
  std::vector<Config> timed;
  for (MeasuredConfig& each : all) {
    each.alone = measurer.measure({.problem = problem, .config = each.config});
    if (each.alone->outcome != Outcome::kOk) {
      continue;
    }
    timed.push_back(each.config);
    if (!evaluated.empty()) {
      Measurement late = measurer.measure({.problem = problem,
                                           .config = each.config,
                                           .evaluate = {evaluated.begin(), evaluated.end()}});
      if (late.outcome != Outcome::kOk) {
        each.alone->outcome = late.outcome;
        each.alone->reason = late.reason;
        timed.pop_back();
        continue;
      }
      for (MetricValue& value : late.metrics) {
        each.alone->metrics.push_back(std::move(value));
      }
    }
  }
  const std::vector<Measurement> compared = measurer.compare(problem, timed, rounds);
  std::size_t next = 0;
  for (MeasuredConfig& each : all) {
    if (next < compared.size() && each.config == timed[next]) {
      each.beside = compared[next++];
    }
  }
}

}  // namespace

Result<MeasuredConfigs> measure_configs(const MeasureConfigsArguments& arguments,
                                        const Invocation& invocation) {
  FORETUNE_TRY(LiveFamily live, open_family(arguments.family, nullptr, invocation));
  const Family& family = *live.family;
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, arguments.family.payloads.open());
  FORETUNE_TRY(Problem problem, arguments.problem.parse(family.info().problem_type, *payloads));
  FORETUNE_TRY_STATUS(check_supported(family, {&problem, 1}));
  FORETUNE_TRY(std::unique_ptr<Space> space, family.space(problem));
  FORETUNE_TRY(std::vector<MeasuredConfig> configs, configs_of(arguments, family, *space, problem));
  FORETUNE_TRY(const std::vector<std::string> evaluated,
               evaluated_metrics(arguments.metrics, family.info()));
  FORETUNE_TRY(const Context context, arguments.measuring.context(family.info()));
  FORETUNE_TRY(
      const auto measurer,
      open_measurer(live, arguments.measuring.protocol(invocation.seed), context, invocation));
  measure(*measurer, problem, evaluated, static_cast<int>(arguments.rounds), configs);
  return MeasuredConfigs{std::move(live), std::move(problem), std::move(space), std::move(configs)};
}

}  // namespace foretune::workflow
