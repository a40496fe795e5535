// foretune train: trains a model file for every target from data sets.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "foretune/base/figures.h"
#include "foretune/base/quantities.h"
#include "foretune/base/text.h"
#include "foretune/interop/ck/output_directory.h"
#include "foretune/model/train/trainer.h"
#include "foretune/workflow/output.h"
#include "foretune/workflow/training.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

std::string progress_text(const TrainProgress& progress) {
  std::string out = concat(progress.stage, ": ", progress.step, " ", progress.tree, "/",
                           progress.trees, "  loss ", fixed(progress.loss, 5));
  if (progress.efficiency > 0) {
    out += concat("  efficiency ", fixed(100 * progress.efficiency, 1), " %");
  }
  if (progress.seconds_left > 0) {
    out += concat("  at most ", duration_text(progress.seconds_left), " left");
  }
  return out;
}

std::string hyper_search_text(const HyperSearch& found) {
  constexpr std::size_t kShown = 5;
  std::string out = concat("tried ", found.trials.size() - 1, " draws on up to ", found.folds,
                           " folds; efficiency of the picks there:\n");
  for (std::size_t i = 0; i < std::min(kShown, found.trials.size()); ++i) {
    const HyperTrial& trial = found.trials[i];
    const GbdtOptions& gbdt = trial.gbdt;
    out += concat("  ", fixed(100 * trial.mean_efficiency, 2), " % on ", trial.folds, "  --leaves ",
                  gbdt.leaves, " --learning-rate ", fixed(gbdt.learning_rate, 4),
                  " --min-rows-per-leaf ", gbdt.min_rows_per_leaf, "\n      --feature-fraction ",
                  fixed(gbdt.feature_fraction, 3), " --bagging-fraction ",
                  fixed(gbdt.bagging_fraction, 3), " --lambda-l2 ", fixed(gbdt.lambda_l2, 3),
                  " --weight-decay ", fixed(trial.weight_decay, 2), i == 0 ? "  (as given)" : "",
                  "\n");
  }
  return out;
}

void report(const TrainResult& result, std::string_view name, bool is_one_of_several,
            Figures& figures) {
  if (is_one_of_several) {
    print(concat(name, "\n"));
  }
  for (const auto& [metric, value] : result.metrics) {
    figures.add(is_one_of_several ? concat(name, "_", metric) : metric, value);
    constexpr double kSmallest = 1e-3;  // smallest value that four decimals show
    const bool is_tiny = value != 0 && std::fabs(value) < kSmallest;
    print(concat("  ", metric, " ",
                 !std::isfinite(value) ? std::string("-")
                 : is_tiny             ? concat(static_cast<float>(value))
                                       : fixed(value, 4),
                 "\n"));
  }
}

Result<int> run_train(const TrainArguments& arguments, const Invocation& invocation) {
  ProgressLine line;
  TrainHooks hooks;
  hooks.on_progress = [&](const TrainProgress& progress) {
    if (progress.trees > 0 && line.due()) {
      line.show(progress_text(progress));
    }
    return !stop_flag().load();
  };
  hooks.on_search = [&](const HyperSearch& found) {
    line.clear();
    print(hyper_search_text(found));
  };
  FORETUNE_TRY(const Training training, train(arguments, invocation, hooks));
  line.clear();
  print(concat("trained on ", count_text(training.dataset.size()), " measurements of ",
               count_text(training.dataset.problems().size()), " problems in ",
               duration_text(training.seconds), "\n"));
  Figures figures;
  figures.name = "train";
  figures.machine = machine_facts(training.dataset.header().fingerprint);
  figures.command = invocation.command_line;
  for (const TrainResult& result : training.results) {
    report(result, file_name_of(result.target), training.results.size() > 1, figures);
  }
  FORETUNE_TRY(const TrainedFiles files, write_trained(arguments, training));
  if (!files.model.empty()) {
    print(concat("model: ", files.model, "\n"));
  }
  if (!files.folder.empty()) {
    print(concat("models: ", files.folder, "\n"));
  }
  if (!arguments.json.empty()) {
    FORETUNE_TRY_STATUS(figures.write(arguments.json));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_train(OptionList& list) {
  return prepare_with<TrainArguments, run_train>(list);
}

}  // namespace foretune::cli
