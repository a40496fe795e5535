#include "foretune/workflow/recipe.h"

#include <utility>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/cpu.h"

namespace foretune::workflow {

void RecipeArguments::visit(OptionList& list, std::string target_help, std::string folds_help) {
  list.add("target", target, "TARGET", std::move(target_help))
      .choose({"relative-log", "log", "auto"});
  std::vector<std::string> tables;
  for (const FeatureTable* table : feature_tables()) {
    tables.emplace_back(table->name());
  }
  list.add("features", features, "TABLE", "feature table (default: the family's)")
      .choose(std::move(tables));
  list.add("folds", folds, "N", std::move(folds_help))
      .at_least(0)
      .at_most(kMaxCount)
      .also("n-splits");
  list.add("threads", threads, "N", "threads of the trainer; 0 takes all cores")
      .at_least(0)
      .at_most(kMaxCount);
  list.add("learning-rate", learning_rate, "X",
           concat("shrinkage per tree (default: ", defaults.gbdt.learning_rate,
                  "), or step of a network's optimizer (default: ", defaults.network.learning_rate,
                  ")"));
}

void RecipeArguments::visit_trees(OptionList& list) {
  list.add("objective", objective, "NAME",
           "loss of the trees; auto takes regret where time is learned relative to the problem's "
           "best, and regression elsewhere")
      .choose({"auto", "regression", "lambdarank", "regret"});
  list.add("base-feature", base_feature, "NAME",
           "column of the feature table whose step function the trees begin with; they learn what "
           "it leaves open");
  list.add("without-features", without_features, "NAME",
           "columns of the feature table that no tree splits on");
  list.add("trees", trees, "N",
           "maximum number of trees; early stopping decides where there are folds")
      .at_least(1)
      .at_most(kMaxCount);
  list.add("leaves", leaves, "N", "maximum number of leaves per tree")
      .at_least(2)
      .at_most(kMaxCount);
  list.add("forests", forests, "N",
           "number of forests whose scores are averaged: better picks, but slower")
      .at_least(1)
      .at_most(kMaxCount);
}

Result<TrainOptions> RecipeArguments::options(const Invocation& invocation) const {
  if (learning_rate && !(*learning_rate > 0 && *learning_rate <= 1)) {
    return fail(ErrorCode::kInvalidArgument, "--learning-rate must be above 0 and at most 1");
  }
  TrainOptions out = defaults;
  out.feature_table = features;
  out.base_column = base_feature;
  out.without_columns = without_features;
  out.target = target == "log" ? Target::kLog : Target::kRelativeLog;
  out.choose_target = target == "auto";
  out.objective = parse_objective(objective).value_or(out.objective);
  out.folds = static_cast<std::uint32_t>(folds);
  out.seed = invocation.seed;
  out.forests = static_cast<std::uint32_t>(forests);
  out.gbdt.trees = static_cast<std::uint32_t>(trees);
  out.gbdt.leaves = static_cast<std::uint32_t>(leaves);
  out.gbdt.learning_rate = learning_rate.value_or(out.gbdt.learning_rate);
  out.network.learning_rate = learning_rate.value_or(out.network.learning_rate);
  out.gbdt.threads =
      static_cast<std::uint32_t>(threads > 0 ? threads : std::int64_t{read_cpu_facts().cores});
  out.network.threads = out.gbdt.threads;
  return out;
}

}  // namespace foretune::workflow
