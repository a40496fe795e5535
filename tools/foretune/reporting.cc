#include "tools/foretune/reporting.h"

#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
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

Result<Evaluation> evaluate_model(const Model& model, const Dataset& dataset, std::string_view name,
                                  FamilyArguments family, EvaluateOptions options) {
  family.family = model.family;
  const Result<LiveFamily> live = open_family_of(family, dataset.header().fingerprint);
  if (live) {
    options.default_configs = [&live](const Problem& problem) {
      return live->family->default_configs(problem);
    };
  }
  FORETUNE_TRY(const std::vector<RankedProblem> ranked, rank_with_model(model, dataset));
  FORETUNE_TRY(Evaluation evaluation, evaluate(dataset, ranked, &model, options));
  if (dataset.header().role == DatasetRole::kTraining) {
    evaluation.warnings.push_back(concat(name, " is a training set, not a validation set"));
  }
  return evaluation;
}

}  // namespace foretune::cli
