#include "tools/foretune/reporting.h"

#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/objective_evaluation.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {

void ReportArguments::visit(OptionList& list) {
  list.add("top-n-worst", top_n_worst, "N", "worst problems to list").at_least(0);
  list.add("json", json, "FILE", "write the figures as JSON");
  list.add("html", html, "FILE", "write the report as one self-contained page");
}

Status ReportArguments::show(const Evaluation& evaluation, const std::string& json_text,
                             const std::string& title) const {
  print(report_text(evaluation, output_has_color()));
  if (!json.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(json, json_text));
  }
  if (!html.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(html, report_html(evaluation, title)));
    print(concat("report: ", html, "\n"));
  }
  return {};
}

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

Result<std::optional<Objective>> parse_objective_option(const std::string& text) {
  std::optional<Objective> out;
  if (!text.empty()) {
    FORETUNE_TRY(out, Objective::parse(text));
  }
  return out;
}

}  // namespace foretune::cli
