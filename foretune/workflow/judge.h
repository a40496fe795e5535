// Judges the picks of models by data sets.
// Thread safety: any thread may call these functions.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/metric_view.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/metrics/objective.h"
#include "foretune/model/model_file.h"
#include "foretune/problem/problem.h"
#include "foretune/select/select.h"
#include "foretune/space/config.h"
#include "foretune/workflow/family_arguments.h"

namespace foretune::workflow {

// Evaluates the model's picks. The family's default config is one of the baselines when the family
// is available here; `family` has the options to open it. `name` names the data set in warnings.
// Errors: those of rank_with_model() and evaluate().
Result<Evaluation> evaluate_model(const Model& model, const Dataset& dataset, std::string_view name,
                                  FamilyArguments family, EvaluateOptions options);
// Evaluates the model's picks by an objective with one target.
Result<Evaluation> evaluate_model(const Model& model, const Dataset& dataset, std::string_view name,
                                  FamilyArguments family, const Objective& objective,
                                  EvaluateOptions options);

// Returns the family's own choices on its device, for baselines and for bounds relative to them;
// nothing when the family is not available here.
DefaultConfigs default_configs_of(FamilyArguments family, const std::string& name,
                                  const Fingerprint& known);

// Opens a model file of the family. Errors: kMismatch for another family or version; those of
// Selector::open().
Result<std::unique_ptr<Selector>> open_selector(const std::string& path, const FamilyInfo& info);

// Returns the configs that the model ranks highest on the problem, at most `top`.
std::vector<Config> best_ranked(const Selector& selector, const Problem& problem, std::size_t top);

// The option with the objective that judges picks. Errors: those of Objective::parse().
inline constexpr std::string_view kObjectiveHelp =
    "judge picks by this, of the data set's metrics: \"minimise time_ns subject to pack_ns <= 2 "
    "ms\", or \"pareto time_ns pack_ns\" for the volume that predicted fronts keep";
Result<std::optional<Objective>> parse_objective_option(const std::string& text);

}  // namespace foretune::workflow
