#include "foretune/workflow/evaluation.h"

#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/interop/ck/ck_words.h"
#include "foretune/model/train/train_metrics.h"
#include "foretune/workflow/datasets.h"
#include "foretune/workflow/judge.h"
#include "foretune/workflow/kernel_pool.h"
#include "foretune/workflow/source.h"

namespace foretune::workflow {

void EvaluateArguments::visit(OptionList& list) {
  model.visit(list);
  list.add("dataset", dataset, "FILE", "data set to learn from and to judge by");
  const Condition is_judged{"with --model", [this] { return !model.path.empty(); }};
  const Condition is_trained{"without --model", [this] { return model.path.empty(); }};
  list.add("data-dir", data_dir, "DIR",
           "judge the model by all data sets below this folder that have its kernels, except "
           "validation sets")
      .only(is_judged);
  list.add("op", operation, "NAME",
           "judge by problems of this operation alone: forward, bwd_data, gemm_universal")
      .also("operation")
      .accept({"direction"})
      .only(is_judged);
  list.add("dtype", dtype, "NAME", "judge by problems of this data type alone").only(is_judged);
  list.add("nested-folds", nested_folds, "N",
           "split the problems into N parts and leave out each in turn (default: 5)")
      .at_least(2);
  list.add("leave-out", leave_out, "DIMENSION",
           "leave out problems that are unlike the rest instead: the largest third by a size (k, "
           "k:smallest, k:middle), each value of a label (layout, layout:rcr), or each machine "
           "(machine)");
  list.add("leave-out-configs", leave_out_configs, "PARTS",
           "also leave out configs, and judge the picks among these: each value of a parameter "
           "(pipeline, pipeline:compv4), each combination of several (tile_m+tile_n), or as many "
           "random parts as a number says")
      .only({"without --pick-objective, --html and --figures",
             [this] {
               return pick_objective.empty() && report.html.empty() && report.figures.empty();
             }})
      .only(is_trained);
  list.add("group-key", group_key, "KEY", std::string(kGroupKeyHelp))
      .choose({group_key_names().begin(), group_key_names().end()})
      .only(is_trained);
  list.add("pick-objective", pick_objective, "TEXT",
           concat("train models of the metrics that this objective names, and ", kObjectiveHelp));
  payloads.visit(list);
  report.visit(list);
  list.section("Training", is_trained);
  recipe.visit(list, "how time is learned; auto tries both on inner folds",
               "inner folds, by which training makes its own choices; 0 for none");
  list.add("row-weight-decay", row_weight_decay, "X",
           "how fast a row's weight falls with its distance from the problem's best");
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
  const PoolFilter filter{.schema = &model.config_schema,
                          .data = {.op = arguments.operation, .dtype = arguments.dtype, .arch = {}},
                          .arch = {},
                          .takes_validation = arguments.data_dir.empty()};
  const auto named = parse_ck_operation(arguments.operation);
  if (named && named->type != model.problem_type) {
    return fail(ErrorCode::kMismatch, "the model is not for the operation ", arguments.operation);
  }
  FORETUNE_TRY(std::optional<Dataset> dataset, read_pool_data(from, filter, invocation));
  if (!dataset) {
    return fail(ErrorCode::kMismatch, from, " has no measurements of such kernels and problems");
  }
  FORETUNE_TRY_STATUS(describe_payloads(*dataset, arguments.payloads, invocation));
  const std::string judged_by = data_source(from, *dataset);
  dataset->deduplicate();
  FORETUNE_TRY(dataset, dataset->by_machine());
  EvaluateOptions options;
  options.top_n_worst = static_cast<std::size_t>(arguments.report.top_n_worst);
  options.seed = invocation.seed;
  TrainingEvaluation out{.family = model.family,
                         .machine = dataset->header().fingerprint,
                         .of_model = {},
                         .fronts = {},
                         .unseen = {},
                         .picks = {}};
  FORETUNE_TRY(const std::optional<Objective> objective,
               parse_objective_option(arguments.pick_objective));
  FORETUNE_TRY(out.of_model, objective
                                 ? evaluate_model(model, *dataset, from, {}, *objective, options)
                                 : evaluate_model(model, *dataset, from, {}, options));
  out.source = source_line({judged_by, model_source(source.path, model)}, out.machine.device);
  return out;
}

Result<std::vector<OuterSplit>> splits_of(const EvaluateArguments& arguments,
                                          const Dataset& dataset, std::uint64_t seed,
                                          GroupKey key) {
  if (arguments.leave_out.empty()) {
    return nested_folds(dataset, static_cast<std::uint32_t>(arguments.nested_folds.value_or(5)),
                        seed, key);
  }
  if (arguments.nested_folds) {
    return fail(ErrorCode::kInvalidArgument, "give --nested-folds or --leave-out, not both");
  }
  return leave_out(dataset, arguments.leave_out);
}

Result<TrainOptions> options_of(const EvaluateArguments& arguments, const Invocation& invocation) {
  if (!(arguments.row_weight_decay >= 0 && arguments.row_weight_decay <= 1e6)) {
    return fail(ErrorCode::kInvalidArgument, "--row-weight-decay must be from 0 to a million, not ",
                arguments.row_weight_decay);
  }
  FORETUNE_TRY(TrainOptions options, arguments.recipe.options(invocation));
  options.weight_decay = arguments.row_weight_decay;
  FORETUNE_TRY(options.group_key, parse_group_key(arguments.group_key));
  return options;
}

// Returns the options of a split. When a machine is left out, its kernels are candidates all the
// same: they are known, only their times are not.
TrainOptions for_split(const TrainOptions& recipe, const Dataset& dataset,
                       const OuterSplit& split) {
  TrainOptions out = recipe;
  if (!split.leaves_out_machine) {
    return out;
  }
  std::vector<bool> is_candidate(dataset.configs().size(), false);
  for (const Dataset::Row& row : dataset.rows()) {
    is_candidate[row.config] =
        is_candidate[row.config] || (split.is_test[row.problem] && row.is_timed());
  }
  for (std::size_t i = 0; i < is_candidate.size(); ++i) {
    if (is_candidate[i]) {
      out.more_candidates.push_back(dataset.configs()[i]);
    }
  }
  return out;
}

// Judges picks among configs that the trainings lack.
Result<UnseenEvaluation> judge_unseen(const EvaluateArguments& arguments, const Dataset& dataset,
                                      const std::vector<OuterSplit>& splits,
                                      const TrainOptions& recipe, const EvaluateOptions& options,
                                      const EvaluateHooks& hooks) {
  FORETUNE_TRY(const std::vector<ConfigPart> parts,
               config_parts(dataset, arguments.leave_out_configs, options.seed));
  const CandidateRecipe train = [&](const Dataset& training, std::span<const Config> left_out,
                                    const OuterSplit& split) -> Result<Model> {
    TrainOptions with_candidates = recipe;
    with_candidates.more_candidates.assign(left_out.begin(), left_out.end());
    FORETUNE_TRY(TrainResult trained,
                 train_gbdt(training, with_candidates, [&](const TrainProgress& progress) {
                   return !hooks.on_progress || hooks.on_progress(progress, split);
                 }));
    return std::move(trained.model);
  };
  return evaluate_unseen_configs(dataset, splits, parts, train, options);
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
  FORETUNE_TRY(const TrainOptions recipe, options_of(arguments, invocation));
  FORETUNE_TRY(Dataset dataset, read_measurements(arguments.dataset, invocation));
  FORETUNE_TRY_STATUS(describe_payloads(dataset, arguments.payloads, invocation));
  const std::string judged_by = data_source(arguments.dataset, dataset);
  dataset.deduplicate();
  FORETUNE_TRY(dataset, dataset.by_machine());
  const auto seed = invocation.seed;
  FORETUNE_TRY(const std::vector<OuterSplit> splits,
               splits_of(arguments, dataset, seed, recipe.group_key));
  FORETUNE_TRY(const std::optional<Objective> objective,
               parse_objective_option(arguments.pick_objective));
  const std::vector<std::string> metrics =
      objective ? objective->metrics() : std::vector<std::string>();
  const TrainRecipe train = [&](const Dataset& training, const OuterSplit& split) -> Result<Model> {
    const ProgressHook hook = [&](const TrainProgress& progress) {
      return !hooks.on_progress || hooks.on_progress(progress, split);
    };
    const TrainOptions options = for_split(recipe, dataset, split);
    FORETUNE_TRY(TrainResult trained,
                 objective ? train_metrics(training, *model_types().front(), options, metrics, hook)
                           : train_gbdt(training, options, hook));
    return std::move(trained.model);
  };
  TrainingEvaluation out{.family = dataset.header().family,
                         .machine = dataset.header().fingerprint,
                         .of_model = {},
                         .fronts = {},
                         .unseen = {},
                         .picks = {}};
  EvaluateOptions options;
  options.top_n_worst = static_cast<std::size_t>(arguments.report.top_n_worst);
  options.seed = seed;
  if (!arguments.leave_out_configs.empty()) {
    FORETUNE_TRY(out.unseen, judge_unseen(arguments, dataset, splits, recipe, options, hooks));
    return out;
  }
  const DefaultConfigs defaults =
      objective ? default_configs_of({}, out.family, out.machine) : nullptr;
  if (objective && objective->is_pareto()) {
    if (!arguments.report.html.empty() || !arguments.report.figures.empty()) {
      return without_effect({"--html", "--figures"}, "with one target");
    }
    FORETUNE_TRY(out.fronts, fronts_of(dataset, splits, train, *objective, defaults));
    return out;
  }
  FORETUNE_TRY(out.picks,
               objective ? cross_evaluate(dataset, *objective, defaults, splits, train, options)
                         : cross_evaluate(dataset, splits, train, options));
  out.source = source_line({judged_by}, out.machine.device);
  return out;
}

}  // namespace foretune::workflow
