// What commands that judge models share with each other and with the Python package.
// Thread safety: used by the main thread; evaluate_model() by any, without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/metric_view.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/metrics/objective.h"
#include "foretune/models/infer/model_file.h"
#include "tools/foretune/common.h"
#include "tools/foretune/options.h"

namespace foretune::cli {

// What of a report is wanted, and where.
struct ReportArguments {
  std::int64_t top_n_worst = 10;
  std::string json;
  std::string html;
  void visit(OptionList& list);
  // Prints the text and writes the files that are wanted; `json_text` is the content of one.
  [[nodiscard]] Status show(const Evaluation& evaluation, const std::string& json_text,
                            const std::string& title) const;
};

// How good the model's picks are. What the family runs when nobody chooses is one of the baselines,
// where the family is here; `family` says how to open it. `name` is what a warning calls the data
// set. Errors: those of rank_with_model() and evaluate().
Result<Evaluation> evaluate_model(const Model& model, const Dataset& dataset, std::string_view name,
                                  FamilyArguments family, EvaluateOptions options);
// The same by an objective with one target.
Result<Evaluation> evaluate_model(const Model& model, const Dataset& dataset, std::string_view name,
                                  FamilyArguments family, const Objective& objective,
                                  EvaluateOptions options);

// The family's own choices on its device, for baselines and for bounds relative to them; nothing
// where it is not here.
DefaultConfigs default_configs_of(FamilyArguments family, const std::string& name,
                                  const Fingerprint& known);

// An option that says what picks are judged by. Errors: those of Objective::parse().
inline constexpr std::string_view kObjectiveHelp =
    "judge picks by this, of the data set's metrics: \"minimise time_ns subject to pack_ns <= 2 "
    "ms\", or \"pareto time_ns pack_ns\" for the volume that predicted fronts keep";
Result<std::optional<Objective>> parse_objective_option(const std::string& text);

}  // namespace foretune::cli
