// foretune measure: given configs of one problem, beside the family's default and a model's pick.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/figures.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/tune_analysis.h"
#include "foretune/models/infer/model_file.h"
#include "foretune/select/select.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/problem_arguments.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct MeasureCommandArguments {
  OneProblemArguments problem;
  std::vector<std::string> configs;
  std::string model;
  std::string metrics;
  std::int64_t rounds = 15;
  std::string json;
  FamilyArguments family;
  MeasureArguments measuring;

  void visit(OptionList& list) {
    problem.visit(list);
    list.add(
        "config", configs, "TEXT",
        "a config as it is printed, \"mr=8 nr=32 ...\", or several; of a sequence its numbers");
    list.add("model", model, "FILE", "measure the pick of this model, too");
    list.add("metrics", metrics, "LIST",
             "find out these metrics, too, each in a stage of its own; joined by commas");
    list.add("rounds", rounds, "N", "windows that time the configs against each other").at_least(1);
    list.add("json", json, "FILE", "write the figures as JSON");
    family.visit(list);
    measuring.visit(list);
  }
};

// One line of the table.
struct Measured {
  std::string name;  // "given", "default", "model's pick"
  Config config;
  std::optional<Measurement> alone{};   // verified, with all metrics
  std::optional<Measurement> beside{};  // timed against the others
};

void add(const std::string& name, const Config& config, std::vector<Measured>& out) {
  const auto same = [&](const Measured& known) { return known.config == config; };
  const auto found = std::find_if(out.begin(), out.end(), same);
  if (found == out.end()) {
    out.push_back({.name = name, .config = config});
  } else if (found->name.find(name) == std::string::npos) {
    found->name += concat(", ", name);
  }
}

Result<std::vector<Measured>> configs_of(const MeasureCommandArguments& arguments,
                                         const Family& family, const Space& space,
                                         const Problem& problem) {
  std::vector<Measured> out;
  for (const std::string& text : arguments.configs) {
    auto config = parse_config(space.schema(), text);
    if (!config) {
      return fail_because(config.error(), "--config ", quoted(text, 60));
    }
    if (const Support legal = space.why_not(*config); !legal) {
      return fail(ErrorCode::kInvalidArgument, "the config ", quoted(text, 80),
                  " is not legal for ", problem.text(), ": ", legal.reason());
    }
    add("given", *config, out);
  }
  if (const std::vector<Config> defaults = family.default_configs(problem); !defaults.empty()) {
    add("default", defaults.front(), out);
  }
  if (!arguments.model.empty()) {
    FORETUNE_TRY(const std::unique_ptr<Selector> selector, Selector::open(arguments.model));
    FORETUNE_TRY_STATUS(check_model_fits(selector->model(), family.info(), arguments.model));
    const std::vector<Config> best = best_ranked(*selector, problem, 1);
    if (best.empty()) {
      return fail(ErrorCode::kUnsupported, arguments.model, " has no pick for ", problem.text());
    }
    add("model's pick", best.front(), out);
  }
  if (out.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "there is nothing to measure: give a --config or a --model");
  }
  return out;
}

// Each alone, its result verified; then those that are right against each other.
void measure(Measurer& measurer, const Problem& problem, std::span<const std::string> evaluated,
             int rounds, std::vector<Measured>& all) {
  std::vector<Config> timed;
  for (Measured& each : all) {
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
  for (Measured& each : all) {
    if (next < compared.size() && each.config == timed[next]) {
      each.beside = compared[next++];
    }
  }
}

const MetricValue* time_of(const Measured& measured) {
  return measured.alone && measured.alone->outcome == Outcome::kOk && measured.beside &&
                 measured.beside->outcome == Outcome::kOk
             ? measured.beside->find(kTimeNs)
             : nullptr;
}

bool is_time(std::string_view metric) { return metric == kTimeNs || metric == kMedianNs; }

void print_all(const Family& family, const Space& space, const Problem& problem,
               const std::vector<Measured>& all) {
  const auto base = std::find_if(all.begin(), all.end(), [](const Measured& each) {
    return each.name.find("default") != std::string::npos && time_of(each) != nullptr;
  });
  print(concat(problem.text(), " by ", family.info().name, "\n"));
  for (const Measured& each : all) {
    print(concat("\n", each.name, ": ", space.describe(each.config), "\n"));
    const MetricValue* const time = time_of(each);
    if (time == nullptr) {
      const Measurement& why =
          each.alone->outcome == Outcome::kOk && each.beside ? *each.beside : *each.alone;
      print(concat("  ", to_string(why.outcome), why.reason.empty() ? "" : ": ", why.reason, "\n"));
      continue;
    }
    std::string line = concat("  ", time_text(time->value));
    if (base != all.end() && &*base != &each) {
      line += concat(", ", fixed(time_of(*base)->value / time->value, 3),
                     " times as fast as the default");
    }
    line += concat(", spread ", fixed(100 * static_cast<double>(time->spread), 1), " %");
    print(concat(line, ", result verified\n"));
    // Times are those against each other.
    for (const MetricValue& value : each.alone->metrics) {
      const MetricInfo* info = find_metric(family.info().metrics, value.metric);
      info = info == nullptr ? find_metric(common_metrics(), value.metric) : info;
      if (!is_time(value.metric) && info != nullptr) {
        print(concat("  ", value.metric, " ",
                     evaluate_internal::metric_text(value.value, info->unit), "\n"));
      }
    }
  }
}

Status write_json(const std::string& path, const Family& family, const std::vector<Measured>& all,
                  const Invocation& invocation) {
  Figures figures{.name = "measure",
                  .metrics = {},
                  .machine = machine_facts(family.info().fingerprint),
                  .command = invocation.command_line};
  for (const Measured& each : all) {
    const std::string name = to_text(family.info().config_schema, each.config);
    if (const MetricValue* const time = time_of(each)) {
      figures.add(concat(name, " time_ns"), time->value);
    }
    for (const MetricValue& value : each.alone->metrics) {
      if (!is_time(value.metric)) {
        figures.add(concat(name, " ", value.metric), value.value);
      }
    }
    figures.add(concat(name, " is_ok"), time_of(each) != nullptr ? 1 : 0);
  }
  return figures.write(path);
}

Result<int> run_measure(const MeasureCommandArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const LiveFamily live, open_family(arguments.family, nullptr, invocation));
  const Family& family = *live.family;
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, arguments.family.payloads.open());
  FORETUNE_TRY(const Problem problem,
               arguments.problem.parse(family.info().problem_type, *payloads));
  FORETUNE_TRY_STATUS(check_supported(family, {&problem, 1}));
  FORETUNE_TRY(const std::unique_ptr<Space> space, family.space(problem));
  FORETUNE_TRY(std::vector<Measured> all, configs_of(arguments, family, *space, problem));
  FORETUNE_TRY(const std::vector<std::string> evaluated,
               evaluated_metrics(arguments.metrics, family.info()));
  const auto seed = static_cast<std::uint64_t>(invocation.global->seed);
  FORETUNE_TRY(const Context context, arguments.measuring.context(family.info()));
  FORETUNE_TRY(const auto measurer,
               open_measurer(live, arguments.measuring.protocol(seed), context, invocation));
  measure(*measurer, problem, evaluated, static_cast<int>(arguments.rounds), all);
  print_all(family, *space, problem, all);
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(write_json(arguments.json, family, all, invocation));
  }
  // A config that was asked for and failed is no success.
  const bool all_ok = std::all_of(all.begin(), all.end(),
                                  [](const Measured& each) { return time_of(each) != nullptr; });
  return all_ok ? kExitOk : kExitFailure;
}

}  // namespace

std::function<int(const Invocation&)> prepare_measure(OptionList& list) {
  return prepare_with<MeasureCommandArguments, run_measure>(list);
}

}  // namespace foretune::cli
