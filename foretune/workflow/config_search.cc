#include "foretune/workflow/config_search.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/learned_rate.h"
#include "foretune/features/feature_table.h"
#include "foretune/interop/ck/ck_words.h"
#include "foretune/model/model_scorer.h"
#include "foretune/problem/problem_type.h"
#include "foretune/search/strategy.h"
#include "foretune/search/surrogate.h"
#include "foretune/space/known_spaces.h"
#include "foretune/space/parametric_space.h"

namespace foretune::workflow {

void SearchArguments::visit(OptionList& list) {
  std::vector<std::string> names = strategy_names();
  // This strategy learns from measurements, and here there are none.
  std::erase(names, "guided");
  model.visit(list).require();
  problem.visit(list);
  family.payloads.visit(list);
  list.add("strategy", strategy, "NAME", "search strategy").choose(std::move(names));
  list.add("budget", budget, "N", "number of configs to score").at_least(1);
  list.add("top-k", top, "N", "number of configs to list").at_least(1);
  list.add_switch("measure", measure, "time the listed configs against each other");
  const Condition is_measured{"with --measure", [this] { return measure; }};
  list.add("rounds", rounds, "N", "rounds of timing").at_least(1).only(is_measured);
  list.add("json", json, "FILE", "write everything as JSON");
  measuring.visit(list, is_measured);
  family.visit_known(list, "the model", is_measured);
}

namespace {

// Returns the values that each parameter may take on the model's device, by a space that is known
// without a family. A value of a kernel of the pool is always among them. A parameter in which all
// of these agree keeps its value, because the model cannot judge another.
Result<std::vector<std::vector<std::int32_t>>> known_values_of(const Model& model) {
  const auto known = known_space_of(model.config_schema, model.fingerprint.isa);
  if (!known || known->domains.empty()) {
    return fail(ErrorCode::kMismatch, "the model does not say which values the parameters of ",
                model.config_schema.name,
                " may take, so there is no space to search; 'foretune predict' ranks the ",
                count_of(model.pool.size(), "config"), " that it knows");
  }
  std::vector<std::vector<std::int32_t>> out;
  for (std::size_t i = 0; i < known->domains.size(); ++i) {
    std::set<std::int32_t> values;
    for (const Config& config : model.pool) {
      values.insert(config.words[i]);
    }
    if (values.size() != 1) {
      values.insert(known->domains[i].begin(), known->domains[i].end());
    }
    out.emplace_back(values.begin(), values.end());
  }
  return out;
}

Result<std::unique_ptr<Space>> space_of(const Model& model, const Problem& problem) {
  if (problem.type() != model.problem_type) {
    return fail(ErrorCode::kMismatch, "the model is not for ", problem.schema().name, " problems");
  }
  if (model.config_schema.kind == SchemaKind::kSequence) {
    FORETUNE_TRY(const FeatureTable* const table, feature_table_of(model));
    std::unique_ptr<Space> space = table->space(problem, model.fingerprint.hardware);
    if (space == nullptr) {
      return fail(ErrorCode::kUnsupported, "the feature table ", table->name(),
                  " knows no space of ", model.config_schema.name, " to search");
    }
    return space;
  }
  FORETUNE_TRY(SpaceDefinition definition, SpaceDefinition::parse(model.space_text));
  if (definition.domains.empty()) {
    FORETUNE_TRY(definition.domains, known_values_of(model));
  }
  FORETUNE_TRY(auto compiled, CompiledSpace::create(std::move(definition)));
  FORETUNE_TRY(std::unique_ptr<ParametricSpace> bound,
               ParametricSpace::bind(std::move(compiled), problem, model.fingerprint.hardware));
  return std::unique_ptr<Space>(std::move(bound));
}

// Times the listed configs and the family's default, interleaved.
Status measure_listed(const SearchArguments& arguments, const Invocation& invocation,
                      const Model& model, SearchReport& report) {
  FORETUNE_TRY(const LiveFamily live,
               open_family(arguments.family.as_known(model.family, model.fingerprint),
                           &model.fingerprint, invocation));
  const FamilyInfo& info = live.family->info();
  FORETUNE_TRY_STATUS(check_model_fits(model, info, arguments.model.path));
  if (info.fingerprint.digest() != model.fingerprint.digest()) {
    invocation.warn("the model was trained on another machine");
  }
  const auto seed = invocation.seed;
  FORETUNE_TRY(const Context context, arguments.measuring.context(info));
  FORETUNE_TRY(const auto measurer,
               open_measurer(live, arguments.measuring.protocol(seed), context, invocation));
  std::vector<Config> configs;
  for (const ScoredConfig& scored : report.found.ranked) {
    configs.push_back(scored.config);
  }
  for (const Config& config : live.family->default_configs(report.problem)) {
    if (std::find(configs.begin(), configs.end(), config) == configs.end()) {
      configs.push_back(config);
    }
    break;
  }
  report.measured = measurer->compare(report.problem, configs, static_cast<int>(arguments.rounds));
  Refusals refusals;
  for (const Measurement& measurement : report.measured) {
    if (measurement.outcome == Outcome::kOk) {
      return {};
    }
    ++refusals[concat(to_string(measurement.outcome), ": ", measurement.reason)];
  }
  return fail(ErrorCode::kUnsupported,
              "no listed config could be timed: ", refusals_text(refusals));
}

}  // namespace

Result<SearchReport> run_search(const SearchArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const OpenedModels opened, arguments.model.open(invocation));
  const Model& model = opened.model;
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, arguments.family.payloads.open());
  OneProblemArguments asked = arguments.problem;
  for (const auto& [field, label] : opened.labels) {
    asked.assume(field, label);
  }
  FORETUNE_TRY(const Problem problem, asked.parse(model.problem_type, *payloads));
  auto made = space_of(model, problem);
  if (!made) {
    return fail_because(made.error(), arguments.model.path);
  }
  const std::shared_ptr<const Space> space = *std::move(made);
  FORETUNE_TRY(const std::unique_ptr<Scorer> scorer, make_scorer(model));
  FORETUNE_TRY(SurrogateResult found,
               surrogate_search(problem, *space, *scorer,
                                {.strategy = arguments.strategy,
                                 .budget = static_cast<std::size_t>(arguments.budget),
                                 .top = static_cast<std::size_t>(arguments.top),
                                 .hardware = model.fingerprint.hardware,
                                 .seed = invocation.seed}));
  SearchReport report{.problem = problem,
                      .schema = model.config_schema,
                      .strategy = arguments.strategy,
                      .is_absolute = model.target == "log",
                      .found = std::move(found),
                      .measured = {},
                      .machine = model.fingerprint};
  if (const std::optional<LearnedRate> rate = learned_rate_of(model)) {
    report.time_ns = [rate = *rate, work = problem_work(problem)](double score) {
      return rate.time_ns(rate.value(score), work);
    };
  }
  if (model.config_schema.kind == SchemaKind::kSequence) {
    report.describe = [space](const Config& config) { return space->describe(config); };
  } else if (!ck_kernel_name(problem, model.pool.front()).empty()) {
    report.describe = [problem](const Config& config) { return ck_kernel_name(problem, config); };
  }
  if (arguments.measure) {
    FORETUNE_TRY_STATUS(measure_listed(arguments, invocation, model, report));
  }
  return report;
}

}  // namespace foretune::workflow
