#include "foretune/workflow/evaluation.h"

#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_words.h"
#include "foretune/model/train/train_metrics.h"
#include "foretune/workflow/datasets.h"
#include "foretune/workflow/judge.h"
#include "foretune/workflow/kernel_pool.h"

namespace foretune::workflow {

void EvaluateArguments::visit(OptionList& list) {
  model.visit(list);
  list.add("dataset", dataset, "FILE", "data set to learn from and to judge by");
  const Condition is_judged{"with --model", [this] { return !model.path.empty(); }};
  list.add("data-dir", data_dir, "DIR",
           "judge the model by all data sets below this folder that have its kernels, except "
           "validation sets")
      .only(is_judged);
  list.add("op", operation, "NAME",
           "judge by problems of this operation alone: forward, bwd_data, gemm_universal")
      .also("operation")
      .only(is_judged);
  list.add("dtype", dtype, "NAME", "judge by problems of this data type alone").only(is_judged);
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
  list.section("Training", {"without --model", [this] { return model.path.empty(); }});
  recipe.visit(list, "how time is learned; auto tries both on inner folds",
               "inner folds, by which training makes its own choices; 0 for none");
  recipe.visit_trees(list);
}

namespace {

// Judges the picks of a model by data that it may have been trained on.
Result<TrainingEvaluation> evaluate_picks(const EvaluateArguments& arguments,
                                          const Invocation& invocation) {
  if (arguments.nested_folds || !arguments.leave_out.empty()) {
    return without_effect({arguments.nested_folds ? "--nested-folds" : "--leave-out"},
                          "without --model");
  }
  const std::string& from = arguments.data_dir.empty() ? arguments.dataset : arguments.data_dir;
  ModelArguments source = arguments.model;
  source.usual_pool = from;
  FORETUNE_TRY(const OpenedModels opened, source.open(invocation));
  const Model& model = opened.model;
  PoolFilter filter{.schema = &model.config_schema,
                    .dtype = std::string(our_label("dtype", arguments.dtype)),
                    .operation = std::string(our_label("op", arguments.operation)),
                    .arch = {},
                    .takes_validation = arguments.data_dir.empty()};
  if (const auto named = parse_ck_operation(arguments.operation)) {
    if (named->type != model.problem_type) {
      return fail(ErrorCode::kMismatch, "the model is not for the operation ", arguments.operation);
    }
    filter.operation = named->label;
  }
  FORETUNE_TRY(std::optional<Dataset> dataset, read_pool_data(from, filter, invocation));
  if (!dataset) {
    return fail(ErrorCode::kMismatch, from, " has no measurements of such kernels and problems");
  }
  FORETUNE_TRY_STATUS(describe_payloads(*dataset, arguments.payloads, invocation));
  dataset->deduplicate();
  EvaluateOptions options;
  options.top_n_worst = static_cast<std::size_t>(arguments.report.top_n_worst);
  options.seed = invocation.seed;
  TrainingEvaluation out{.family = model.family,
                         .machine = dataset->header().fingerprint,
                         .of_model = {},
                         .fronts = {},
                         .picks = {}};
  FORETUNE_TRY(const std::optional<Objective> objective,
               parse_objective_option(arguments.pick_objective));
  FORETUNE_TRY(out.of_model, objective
                                 ? evaluate_model(model, *dataset, from, {}, *objective, options)
                                 : evaluate_model(model, *dataset, from, {}, options));
  return out;
}

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
Result<FrontEvaluation> fronts_of(const Dataset& dataset, const std::vector<OuterSplit>& splits,
                                  const TrainRecipe& train, const Objective& objective,
                                  const DefaultConfigs& defaults) {
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
  return merged(std::move(parts));
}

}  // namespace

Result<TrainingEvaluation> run_evaluation(const EvaluateArguments& arguments,
                                          const Invocation& invocation,
                                          const EvaluateHooks& hooks) {
  if (arguments.dataset.empty() == arguments.data_dir.empty()) {
    return fail(ErrorCode::kInvalidArgument, arguments.dataset.empty()
                                                 ? "--dataset is required"
                                                 : "give either --dataset or --data-dir");
  }
  if (!arguments.model.path.empty()) {
    return evaluate_picks(arguments, invocation);
  }
  FORETUNE_TRY(const TrainOptions recipe, arguments.recipe.options(invocation));
  FORETUNE_TRY(Dataset dataset, read_measurements(arguments.dataset, invocation));
  FORETUNE_TRY_STATUS(describe_payloads(dataset, arguments.payloads, invocation));
  dataset.deduplicate();
  const auto seed = invocation.seed;
  FORETUNE_TRY(const std::vector<OuterSplit> splits, splits_of(arguments, dataset, seed));
  FORETUNE_TRY(const std::optional<Objective> objective,
               parse_objective_option(arguments.pick_objective));
  const std::vector<std::string> metrics =
      objective ? objective->metrics() : std::vector<std::string>();
  const TrainRecipe train = [&](const Dataset& training, const OuterSplit& split) -> Result<Model> {
    const ProgressHook hook = [&](const TrainProgress& progress) {
      return !hooks.on_progress || hooks.on_progress(progress, split);
    };
    FORETUNE_TRY(TrainResult trained,
                 objective ? train_metrics(training, *model_types().front(), recipe, metrics, hook)
                           : train_gbdt(training, recipe, hook));
    return std::move(trained.model);
  };
  TrainingEvaluation out{.family = dataset.header().family,
                         .machine = dataset.header().fingerprint,
                         .of_model = {},
                         .fronts = {},
                         .picks = {}};
  const DefaultConfigs defaults =
      objective ? default_configs_of({}, out.family, out.machine) : nullptr;
  if (objective && objective->is_pareto()) {
    if (!arguments.report.html.empty()) {
      return without_effect({"--html"}, "with one target");
    }
    FORETUNE_TRY(out.fronts, fronts_of(dataset, splits, train, *objective, defaults));
    return out;
  }
  EvaluateOptions options;
  options.top_n_worst = static_cast<std::size_t>(arguments.report.top_n_worst);
  options.seed = seed;
  FORETUNE_TRY(out.picks,
               objective ? cross_evaluate(dataset, *objective, defaults, splits, train, options)
                         : cross_evaluate(dataset, splits, train, options));
  return out;
}

}  // namespace foretune::workflow
