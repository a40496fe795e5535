#include "foretune/workflow/prediction.h"

#include <memory>
#include <optional>
#include <utility>

#include "foretune/select/generate.h"
#include "foretune/select/select.h"

namespace foretune::workflow {

void PredictArguments::visit(OptionList& list) {
  list.add("model", model, "FILE", "model file").require();
  problem.visit(list);
  payloads.visit(list);
  list.add("top-k", top, "N", "number of configs to list").at_least(1);
  list.add("objective", objective, "TEXT",
           "objective to pick by, over the metrics that the model predicts: \"minimise time_ns "
           "subject to pack_ns <= 2 ms\", or \"pareto time_ns pack_ns\" for the predicted front");
  list.add_switch("explain", explain,
                  "say why the first config beats the second, and which rules exclude others");
  list.add("json", json, "FILE", "write everything as JSON");
}

Result<Prediction> run_prediction(const PredictArguments& arguments) {
  std::optional<Objective> objective;
  if (!arguments.objective.empty()) {
    FORETUNE_TRY(objective, Objective::parse(arguments.objective));
  }
  const bool is_pareto = objective && objective->is_pareto();
  if (is_pareto && arguments.explain) {
    return without_effect({"--explain"}, "with one target");
  }
  SelectorOptions selector_options;
  if (!is_pareto) {
    selector_options.objective = objective;
  }
  FORETUNE_TRY(std::unique_ptr<Selector> selector,
               Selector::open(arguments.model, selector_options));
  FORETUNE_TRY(const std::shared_ptr<PayloadStore> payloads, arguments.payloads.open());
  FORETUNE_TRY(const Problem problem,
               arguments.problem.parse(selector->model().problem_type, *payloads));
  std::size_t generated = 0;
  if (needs_generating(selector->model())) {
    FORETUNE_TRY(GeneratedConfigs found, generate_configs(selector->model(), problem, {}));
    generated = found.considered;
    FORETUNE_TRY(selector, Selector::create(with_pool(selector->model(), std::move(found.configs)),
                                            selector_options));
  }
  const PredictOptions options{.top = static_cast<std::size_t>(arguments.top),
                               .explain = arguments.explain};
  auto prediction = is_pareto ? predict_front(*selector, problem, *objective, options)
                              : predict(*selector, problem, options);
  if (!prediction) {
    return fail_because(prediction.error(), arguments.model);
  }
  prediction->generated = generated;
  return prediction;
}

}  // namespace foretune::workflow
