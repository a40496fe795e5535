// foretune predict: ranks the best configs for one problem.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/evaluate/prediction.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/select/generate.h"
#include "foretune/select/select.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/output.h"
#include "foretune/workflow/problem_arguments.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct PredictArguments {
  std::string model;
  OneProblemArguments problem;
  PayloadArguments payloads;
  std::int64_t top = 5;
  bool explain = false;
  std::string objective;
  std::string json;

  void visit(OptionList& list) {
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
};

Result<int> run_predict(const PredictArguments& arguments, const Invocation& invocation) {
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
  print(prediction_text(*prediction, output_has_color()));
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.json, prediction_json(*prediction, invocation.command_line)));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_predict(OptionList& list) {
  return prepare_with<PredictArguments, run_predict>(list);
}

}  // namespace foretune::cli
