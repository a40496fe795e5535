// foretune evaluate: judges a way of training from one data set.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/evaluate/cross_evaluate.h"
#include "foretune/evaluate/objective_evaluation.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/model/train/train_metrics.h"
#include "foretune/model/train/trainer.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/workflow/datasets.h"
#include "foretune/workflow/recipe.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/reporting.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct EvaluateArguments {
  std::string dataset;
  std::optional<std::int64_t> nested_folds;
  std::string leave_out;
  std::string pick_objective;
  PayloadArguments payloads;
  ReportArguments report;
  RecipeArguments recipe;

  void visit(OptionList& list) {
    list.add("dataset", dataset, "FILE", "data set to learn from and to judge by").require();
    list.add("nested-folds", nested_folds, "N",
             "split the problems into N parts and leave out each in turn (default: 5)")
        .at_least(2);
    list.add("leave-out", leave_out, "DIMENSION",
             "leave out problems that are unlike the rest instead: the largest third by a size (k, "
             "k:smallest, k:middle), or each value of a label (layout, layout:rcr)");
    list.add("pick-objective", pick_objective, "TEXT",
             concat("train models of the metrics that this objective names, and ", kObjectiveHelp));
    payloads.visit(list);
    report.visit(list);
    list.section("Training");
    recipe.visit(list, "how time is learned; auto tries both on inner folds",
                 "inner folds, by which training makes its own choices; 0 for none");
    recipe.visit_trees(list);
  }
};

Result<std::vector<OuterSplit>> splits_of(const EvaluateArguments& arguments,
                                          const Dataset& dataset, std::uint64_t seed) {
  if (arguments.leave_out.empty()) {
    return nested_folds(dataset, static_cast<std::uint32_t>(arguments.nested_folds.value_or(5)),
                        seed);
  }
  if (arguments.nested_folds) {
    return fail(ErrorCode::kInvalidArgument, "give --nested-folds or --leave-out, not both");
  }
  return leave_out(dataset, arguments.leave_out);
}

// Returns the fronts that models of the training sides predict for the problems of the other side.
Result<int> report_fronts(const EvaluateArguments& arguments, const Invocation& invocation,
                          const Dataset& dataset, const std::vector<OuterSplit>& splits,
                          const TrainRecipe& train, const Objective& objective,
                          const DefaultConfigs& defaults, ProgressLine& line) {
  if (!arguments.report.html.empty()) {
    return without_effect({"--html"}, "with one target");
  }
  std::vector<FrontEvaluation> parts;
  for (const OuterSplit& split : splits) {
    std::vector<bool> is_training = split.is_test;
    is_training.flip();
    FORETUNE_TRY(const Model model, train(dataset.filter_problems(is_training), split));
    auto fronts =
        evaluate_fronts(model, dataset.filter_problems(split.is_test), objective, defaults);
    if (!fronts) {
      return fail_because(fronts.error(), split.name);
    }
    parts.push_back(*std::move(fronts));
  }
  line.clear();
  const FrontEvaluation all = merged(std::move(parts));
  print(fronts_text(all, static_cast<std::size_t>(arguments.report.top_n_worst)));
  if (!arguments.report.json.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.report.json,
        fronts_json(all, "evaluate", invocation.command_line, dataset.header().fingerprint)));
  }
  return kExitOk;
}

Result<int> run_evaluate(const EvaluateArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const TrainOptions recipe, arguments.recipe.options(invocation));
  FORETUNE_TRY(Dataset dataset, read_measurements(arguments.dataset, invocation));
  FORETUNE_TRY_STATUS(describe_payloads(dataset, arguments.payloads, invocation));
  dataset.deduplicate();
  const auto seed = invocation.seed;
  FORETUNE_TRY(const std::vector<OuterSplit> splits, splits_of(arguments, dataset, seed));
  EvaluateOptions options;
  options.top_n_worst = static_cast<std::size_t>(arguments.report.top_n_worst);
  options.seed = seed;
  ProgressLine line;
  FORETUNE_TRY(const std::optional<Objective> objective,
               parse_objective_option(arguments.pick_objective));
  const std::vector<std::string> metrics =
      objective ? objective->metrics() : std::vector<std::string>();
  const auto train = [&](const Dataset& training, const OuterSplit& split) -> Result<Model> {
    const ProgressHook hook = [&](const TrainProgress& progress) {
      if (line.due()) {
        line.show(concat("without ", split.name, ": ", progress.stage, ": tree ", progress.tree,
                         "/", progress.trees));
      }
      return !stop_flag().load();
    };
    FORETUNE_TRY(TrainResult trained,
                 objective ? train_metrics(training, *model_types().front(), recipe, metrics, hook)
                           : train_gbdt(training, recipe, hook));
    return std::move(trained.model);
  };
  const Fingerprint& machine = dataset.header().fingerprint;
  const DefaultConfigs defaults =
      objective ? default_configs_of({}, dataset.header().family, machine) : nullptr;
  if (objective && objective->is_pareto()) {
    return report_fronts(arguments, invocation, dataset, splits, train, *objective, defaults, line);
  }
  FORETUNE_TRY(const CrossEvaluation result,
               objective ? cross_evaluate(dataset, *objective, defaults, splits, train, options)
                         : cross_evaluate(dataset, splits, train, options));
  line.clear();
  print(concat(splits_text(result), "\n"));
  FORETUNE_TRY_STATUS(arguments.report.show(
      result.evaluation, cross_report_json(result, "evaluate", invocation.command_line, machine),
      concat(dataset.header().family, " on ", machine.device,
             arguments.leave_out.empty() ? std::string(", nested folds")
                                         : concat(", without ", arguments.leave_out))));
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_evaluate(OptionList& list) {
  return prepare_with<EvaluateArguments, run_evaluate>(list);
}

}  // namespace foretune::cli
