#include "foretune/workflow/comparison.h"

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/hash.h"
#include "foretune/base/quantities.h"
#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/dataset/split.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/objective_evaluation.h"
#include "foretune/formats/stored_zip.h"
#include "foretune/hardware/cpu.h"
#include "foretune/model/model_file.h"
#include "foretune/workflow/datasets.h"
#include "foretune/workflow/judge.h"

namespace foretune::workflow {

void CompareArguments::visit(OptionList& list_of) {
  list_of
      .add_positional("old", before,
                      "model, what validate-model wrote by --json or --save-predictions, or data "
                      "set")
      .require()
      .accept({"old-predictions"});
  list_of.add_positional("new", after, "candidate to replace it, of the same kind")
      .require()
      .accept({"new-predictions"});
  list_of.add("variant", variant, "NAME", "what the predictions are of")
      .hide()
      .unused("the predictions name their problems");
  const Condition is_retrained{"with --retrain", [this] { return retrain; }};
  list_of.add("dataset", dataset, "FILE", "validation data set; required to compare models")
      .only({"with --retrain or a model",
             [this] { return retrain || is_model_file(before) || is_model_file(after); }});
  list_of.add_switch("retrain", retrain,
                     "old and new are data sets: train on each, by group folds, and compare the "
                     "picks on problems that neither model saw");
  list_of.add("folds", folds, "N", "number of folds").at_least(2).only(is_retrained);
  list_of.add("trees", trees, "N", "maximum number of trees per model")
      .at_least(1)
      .only(is_retrained);
  list_of.add("objective", objective, "TEXT", std::string(kObjectiveHelp))
      .only({"with a model",
             [this] { return !retrain && (is_model_file(before) || is_model_file(after)); }});
  payloads.visit(list_of);
  list_of.add("json", json, "FILE", "write everything as JSON, every problem included");
  list_of.add("list", list, "N", "number of problems to list that lost most, and that won most")
      .at_least(0);
  list_of.section("Largest losses that the new one may have, in percent of the old");
  list_of.add("mean", mean, "X", "in the mean efficiency");
  list_of.add("median", median, "X", "in the median efficiency");
  list_of.add("p10", p10, "X", "in the tenth percentile");
  list_of.add("problem", problem, "X", "in the efficiency of any one problem");
}

namespace {

std::string unmeasured_text(std::size_t picks) {
  return concat(count_of(picks, "pick"), word_for(picks, " was", " were"),
                " never measured, the best-ranked measured config stands in");
}

// `name` is what errors call the model.
Result<Evaluation> evaluate_named(const Model& model, const Dataset& dataset,
                                  const std::string& name) {
  auto ranked = rank_with_model(model, dataset);
  if (!ranked) {
    return fail_because(ranked.error(), name);
  }
  return evaluate(dataset, *ranked, &model, {});
}

// By an objective. The family says what bounds relative to a baseline mean.
Result<std::vector<PickedProblem>> picks_by(const Objective& objective, const Model& model,
                                            const Dataset& dataset, const std::string& path,
                                            const Invocation& invocation) {
  const DefaultConfigs defaults =
      default_configs_of({}, model.family, dataset.header().fingerprint);
  if (objective.is_pareto()) {
    auto fronts = evaluate_fronts(model, dataset, objective, defaults);
    return fronts ? Result<std::vector<PickedProblem>>(front_picks(*fronts))
                  : fail_because(fronts.error(), path);
  }
  EvaluateOptions options;
  options.default_configs = defaults;
  auto evaluation = evaluate_objective(model, dataset, objective, options);
  if (!evaluation) {
    return fail_because(evaluation.error(), path);
  }
  if (evaluation->missed_bounds > 0) {
    invocation.remark(concat(path, ": ", count_of(evaluation->missed_bounds, "pick"),
                             word_for(evaluation->missed_bounds, " misses a bound and counts as 0",
                                      " miss a bound and count as 0")));
  }
  return std::move(evaluation->picks);
}

Result<std::vector<PickedProblem>> picks_of(const std::string& path, const Dataset* dataset,
                                            const std::optional<Objective>& objective,
                                            const Invocation& invocation) {
  if (!is_model_file(path)) {
    FORETUNE_TRY(const std::string text, read_text_file(path));
    if (formats::is_zip(bytes_of(text))) {
      return fail(ErrorCode::kUnsupported, path,
                  " is a checkpoint; foretune import-model makes a model of it");
    }
    auto picks = parse_picks(text);
    return picks ? std::move(picks) : fail_because(picks.error(), path);
  }
  if (dataset == nullptr) {
    return fail(ErrorCode::kInvalidArgument, path, " is a model: say on which --dataset");
  }
  FORETUNE_TRY(const Model model, read_model(path));
  if (objective) {
    return picks_by(*objective, model, *dataset, path, invocation);
  }
  FORETUNE_TRY(Evaluation evaluation, evaluate_named(model, *dataset, path));
  if (evaluation.unmeasured_picks > 0) {
    invocation.remark(concat(path, ": ", unmeasured_text(evaluation.unmeasured_picks),
                             "; validate-model measures ",
                             word_for(evaluation.unmeasured_picks, "it", "them")));
  }
  return std::move(evaluation.picks);
}

// Returns the problems of `dataset` whose group is in the fold (or not in it).
Dataset part_of(const Dataset& dataset,
                const std::unordered_map<std::uint64_t, std::uint32_t>& fold_of_group,
                std::uint32_t fold, bool inside) {
  std::vector<bool> keep;
  for (const Problem& problem : dataset.problems()) {
    const auto found = fold_of_group.find(problem.group());
    keep.push_back((found != fold_of_group.end() && found->second == fold) == inside);
  }
  return dataset.filter_problems(keep);
}

// Compares old data with new data: models of each pick for problems that neither has seen, and the
// same measurements judge all picks.
class Retraining {
 public:
  Retraining(const CompareArguments& arguments, const Invocation& invocation,
             const CompareHooks& hooks)
      : arguments_(arguments), invocation_(invocation), hooks_(hooks) {}

  Status run() {
    FORETUNE_TRY(const Dataset before, read(arguments_.before));
    FORETUNE_TRY(const Dataset after, read(arguments_.after));
    std::optional<Dataset> other;
    if (!arguments_.dataset.empty()) {
      FORETUNE_TRY(other, read_measurements(arguments_.dataset, invocation_));
      FORETUNE_TRY_STATUS(describe_payloads(*other, arguments_.payloads, invocation_));
    }
    const Dataset& judge = other ? *other : after;
    const auto folds = static_cast<std::uint32_t>(arguments_.folds);
    Rng rng = Rng(invocation_.seed).split(hash64("retraining"));
    const std::vector<std::uint32_t> dealt = group_folds(judge.problems(), folds, rng);
    std::unordered_map<std::uint64_t, std::uint32_t> fold_of_group;
    for (std::size_t i = 0; i < dealt.size(); ++i) {
      fold_of_group.emplace(judge.problems()[i].group(), dealt[i]);
    }
    if (fold_of_group.size() < folds) {
      return fail(ErrorCode::kInvalidArgument, count_of(fold_of_group.size(), "group"),
                  " of problems ", word_for(fold_of_group.size(), "is", "are"), " too few for ",
                  folds, " folds");
    }
    for (std::uint32_t fold = 0; fold < folds; ++fold) {
      const Dataset held_out = part_of(judge, fold_of_group, fold, true);
      FORETUNE_TRY_STATUS(add(part_of(before, fold_of_group, fold, false), held_out,
                              concat("old, fold ", fold + 1, " of ", folds), old_picks));
      FORETUNE_TRY_STATUS(add(part_of(after, fold_of_group, fold, false), held_out,
                              concat("new, fold ", fold + 1, " of ", folds), new_picks));
    }
    if (unmeasured_ > 0) {
      invocation_.remark(unmeasured_text(unmeasured_));
    }
    return {};
  }

  std::vector<PickedProblem> old_picks;
  std::vector<PickedProblem> new_picks;

 private:
  [[nodiscard]] Result<Dataset> read(const std::string& path) const {
    FORETUNE_TRY(Dataset dataset, read_measurements(path, invocation_));
    if (dataset.header().role == DatasetRole::kValidation) {
      return fail(ErrorCode::kMismatch, path, " is a validation set; models are not trained on it");
    }
    FORETUNE_TRY_STATUS(describe_payloads(dataset, arguments_.payloads, invocation_));
    dataset.deduplicate();
    return dataset;
  }

  Status add(const Dataset& training, const Dataset& held_out, const std::string& stage,
             std::vector<PickedProblem>& picks) {
    TrainOptions options;
    options.held_out = false;
    options.seed = invocation_.seed;
    options.gbdt.trees = static_cast<std::uint32_t>(arguments_.trees);
    options.gbdt.threads = static_cast<std::uint32_t>(read_cpu_facts().cores);
    auto result = train_gbdt(training, options, [&](const TrainProgress& progress) {
      return !hooks_.on_progress || hooks_.on_progress(progress, stage);
    });
    if (!result) {
      return fail_because(result.error(), stage);
    }
    FORETUNE_TRY(const Evaluation evaluation, evaluate_named(result->model, held_out, stage));
    unmeasured_ += evaluation.unmeasured_picks;
    picks.insert(picks.end(), evaluation.picks.begin(), evaluation.picks.end());
    return {};
  }

  const CompareArguments& arguments_;
  const Invocation& invocation_;
  const CompareHooks& hooks_;
  std::size_t unmeasured_ = 0;
};

}  // namespace

Result<ModelComparison> run_comparison(const CompareArguments& arguments,
                                       const Invocation& invocation, const CompareHooks& hooks) {
  std::vector<PickedProblem> before;
  std::vector<PickedProblem> after;
  if (arguments.retrain) {
    Retraining retraining(arguments, invocation, hooks);
    FORETUNE_TRY_STATUS(retraining.run());
    before = std::move(retraining.old_picks);
    after = std::move(retraining.new_picks);
  } else {
    std::optional<Dataset> dataset;
    if (!arguments.dataset.empty()) {
      FORETUNE_TRY(dataset, read_measurements(arguments.dataset, invocation));
      FORETUNE_TRY_STATUS(describe_payloads(*dataset, arguments.payloads, invocation));
    }
    const Dataset* const measured = dataset ? &*dataset : nullptr;
    FORETUNE_TRY(const std::optional<Objective> objective,
                 parse_objective_option(arguments.objective));
    FORETUNE_TRY(before, picks_of(arguments.before, measured, objective, invocation));
    FORETUNE_TRY(after, picks_of(arguments.after, measured, objective, invocation));
  }
  const AcceptanceRules rules{.mean = arguments.mean / 100,
                              .median = arguments.median / 100,
                              .p10 = arguments.p10 / 100,
                              .problem = arguments.problem / 100};
  return compare_models(before, after, rules, invocation.seed);
}

}  // namespace foretune::workflow
