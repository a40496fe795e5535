// foretune evaluate: how good a way of training is, from one data set.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/dataset/exchange.h"
#include "foretune/evaluate/cross_evaluate.h"
#include "foretune/features/feature_table.h"
#include "foretune/hardware/cpu.h"
#include "foretune/models/train/trainer.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/common.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct EvaluateArguments {
  std::string dataset;
  std::optional<std::int64_t> nested_folds;
  std::string leave_out;
  std::string json;
  std::string html;
  std::int64_t top_n_worst = 10;
  std::string target = "relative-log";
  std::string features;
  std::int64_t folds = 5;
  std::int64_t threads = 0;
  TrainOptions defaults;
  std::int64_t trees = defaults.gbdt.trees;
  std::int64_t leaves = defaults.gbdt.leaves;
  double learning_rate = defaults.gbdt.learning_rate;
  std::int64_t forests = defaults.forests;

  void visit(OptionList& list) {
    list.add("dataset", dataset, "FILE", "measurements to learn from and to judge by").require();
    list.add("nested-folds", nested_folds, "N",
             "leave out each of N parts of the problems in turn (default: 5)")
        .at_least(2);
    list.add("leave-out", leave_out, "DIMENSION",
             "leave out what is unlike the rest instead: the problems with the largest third of a "
             "size (k, k:smallest, k:middle) or each value of a label (layout, layout:rcr)");
    list.add("top-n-worst", top_n_worst, "N", "worst problems to list").at_least(0);
    list.add("json", json, "FILE", "write the figures as JSON");
    list.add("html", html, "FILE", "write the report as one self-contained page");
    list.section("Training");
    list.add("target", target, "TARGET", "what is learned; auto tries both on inner folds")
        .choose({"relative-log", "log", "auto"});
    std::vector<std::string> tables;
    for (const FeatureTable* table : feature_tables()) {
      tables.emplace_back(table->name());
    }
    list.add("features", features, "TABLE", "feature table (default: the family's)")
        .choose(std::move(tables));
    list.add("folds", folds, "N", "inner folds, by which the recipe makes its choices; 0 for none")
        .at_least(0);
    list.add("threads", threads, "N", "threads of the trainer; 0 is all cores").at_least(0);
    list.add("trees", trees, "N", "at most; early stopping decides").at_least(1);
    list.add("leaves", leaves, "N", "per tree").at_least(2);
    list.add("learning-rate", learning_rate, "X", "shrinkage per tree");
    list.add("forests", forests, "N", "forests whose scores are averaged").at_least(1);
  }
};

Result<TrainOptions> recipe_of(const EvaluateArguments& arguments, const GlobalOptions& global) {
  if (!(arguments.learning_rate > 0 && arguments.learning_rate <= 1)) {
    return fail(ErrorCode::kInvalidArgument, "--learning-rate must be above 0 and at most 1");
  }
  TrainOptions options = arguments.defaults;
  options.feature_table = arguments.features;
  options.target = arguments.target == "log" ? Target::kLog : Target::kRelativeLog;
  options.choose_target = arguments.target == "auto";
  options.folds = static_cast<std::uint32_t>(arguments.folds);
  options.seed = static_cast<std::uint64_t>(global.seed);
  options.forests = static_cast<std::uint32_t>(arguments.forests);
  options.gbdt.trees = static_cast<std::uint32_t>(arguments.trees);
  options.gbdt.leaves = static_cast<std::uint32_t>(arguments.leaves);
  options.gbdt.learning_rate = arguments.learning_rate;
  options.gbdt.threads = static_cast<std::uint32_t>(
      arguments.threads > 0 ? arguments.threads : std::int64_t{read_cpu_facts().cores});
  return options;
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

Result<int> run_evaluate(const EvaluateArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const TrainOptions recipe, recipe_of(arguments, *invocation.global));
  FORETUNE_TRY(Dataset dataset, import_dataset(arguments.dataset, std::nullopt));
  dataset.deduplicate();
  const auto seed = static_cast<std::uint64_t>(invocation.global->seed);
  FORETUNE_TRY(const std::vector<OuterSplit> splits, splits_of(arguments, dataset, seed));
  EvaluateOptions options;
  options.top_n_worst = static_cast<std::size_t>(arguments.top_n_worst);
  options.seed = seed;
  ProgressLine line;
  const auto train = [&](const Dataset& training, const OuterSplit& split) -> Result<Model> {
    FORETUNE_TRY(TrainResult trained,
                 train_gbdt(training, recipe, [&](const TrainProgress& progress) {
                   if (line.due()) {
                     line.show(concat("without ", split.name, ": ", progress.stage, ": tree ",
                                      progress.tree, "/", progress.trees));
                   }
                   return !stop_flag().load();
                 }));
    return std::move(trained.model);
  };
  FORETUNE_TRY(const CrossEvaluation result, cross_evaluate(dataset, splits, train, options));
  line.clear();
  print(concat(splits_text(result), "\n"));
  print(report_text(result.evaluation, output_has_color()));
  const Fingerprint& machine = dataset.header().fingerprint;
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.json, cross_report_json(result, "evaluate", invocation.command_line, machine)));
  }
  if (!arguments.html.empty()) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(
        arguments.html,
        report_html(result.evaluation, concat(dataset.header().family, " on ", machine.device,
                                              arguments.leave_out.empty()
                                                  ? std::string(", nested folds")
                                                  : concat(", without ", arguments.leave_out)))));
    print(concat("report: ", arguments.html, "\n"));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_evaluate(OptionList& list) {
  return prepare_with<EvaluateArguments, run_evaluate>(list);
}

}  // namespace foretune::cli
