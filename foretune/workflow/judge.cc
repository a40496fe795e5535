#include "foretune/workflow/judge.h"

#include <utility>

#include "foretune/base/text.h"
#include "foretune/evaluate/objective_evaluation.h"
#include "foretune/select/generate.h"

namespace foretune::workflow {

DefaultConfigs default_configs_of(FamilyArguments family, const std::string& name,
                                  const Fingerprint& known) {
  family.family = name;
  Result<LiveFamily> live = open_family_of(family, known);
  if (!live) {
    return nullptr;
  }
  return
      [opened = live->family](const Problem& problem) { return opened->default_configs(problem); };
}

namespace {

void warn_of_training_set(const Dataset& dataset, std::string_view name, Evaluation& evaluation) {
  if (dataset.header().role == DatasetRole::kTraining) {
    evaluation.warnings.push_back(concat(name, " is a training set, not a validation set"));
  }
}

}  // namespace

Result<Evaluation> evaluate_model(const Model& model, const Dataset& dataset, std::string_view name,
                                  FamilyArguments family, EvaluateOptions options) {
  options.default_configs =
      default_configs_of(std::move(family), model.family, dataset.header().fingerprint);
  FORETUNE_TRY(const std::vector<RankedProblem> ranked, rank_with_model(model, dataset));
  FORETUNE_TRY(Evaluation evaluation, evaluate(dataset, ranked, &model, options));
  warn_of_training_set(dataset, name, evaluation);
  return evaluation;
}

Result<Evaluation> evaluate_model(const Model& model, const Dataset& dataset, std::string_view name,
                                  FamilyArguments family, const Objective& objective,
                                  EvaluateOptions options) {
  options.default_configs =
      default_configs_of(std::move(family), model.family, dataset.header().fingerprint);
  FORETUNE_TRY(Evaluation evaluation, evaluate_objective(model, dataset, objective, options));
  warn_of_training_set(dataset, name, evaluation);
  return evaluation;
}

Result<std::unique_ptr<Selector>> open_selector(const std::string& path, const FamilyInfo& info) {
  FORETUNE_TRY(std::unique_ptr<Selector> selector, Selector::open(path));
  if (selector->model().config_schema != info.config_schema) {
    FORETUNE_TRY(Model model, read_model_for(info, path));
    return Selector::create(std::move(model));
  }
  FORETUNE_TRY_STATUS(check_model_fits(selector->model(), info, path));
  return selector;
}

std::vector<Config> best_ranked(const Selector& selector, const Problem& problem, std::size_t top) {
  if (needs_generating(selector.model())) {
    const auto found = generate_configs(selector.model(), problem, {.kept = top});
    return found ? found->configs : std::vector<Config>();
  }
  std::vector<Config> configs;
  for (const RankedCandidate& ranked : selector.rank(problem)) {
    if (configs.size() == top) {
      break;
    }
    configs.push_back(selector.config(ranked.candidate));
  }
  return configs;
}

Result<std::optional<Objective>> parse_objective_option(const std::string& text) {
  std::optional<Objective> out;
  if (!text.empty()) {
    FORETUNE_TRY(out, Objective::parse(text));
  }
  return out;
}

}  // namespace foretune::workflow
