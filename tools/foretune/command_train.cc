// foretune train: trains a model file for every target from data sets.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

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
  std::string out = concat("tried ", count_of(found.trials.size() - 1, "draw"), " on up to ",
                           count_of(found.folds, "fold"), "; efficiency of the picks there:\n");
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

struct Arguments : TrainArguments {
  bool per_machine = false;
  void visit(OptionList& list) {
    TrainArguments::visit(list);
    list.section("Several machines");
    list.add_switch(
            "per-machine", per_machine,
            "train a model for each machine of the data, not a joint one; --model is then a "
            "folder, in which predict chooses by the machine")
        .only({"with --model and without --out-dir and --json",
               [this] { return !model.empty() && out_dir.empty() && json.empty(); }});
  }
};

Result<int> train_and_report(Dataset dataset, const TrainArguments& arguments,
                             const Invocation& invocation) {
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
  FORETUNE_TRY(const Training training, train_on(std::move(dataset), arguments, invocation, hooks));
  line.clear();
  print(concat("trained on ", count_of(training.dataset.size(), "measurement"), " of ",
               count_of(training.dataset.problems().size(), "problem"), " in ",
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

Result<int> run_train(const Arguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(Dataset dataset, read_training(arguments, invocation));
  if (!arguments.per_machine) {
    return train_and_report(std::move(dataset), arguments, invocation);
  }
  FORETUNE_TRY(const std::vector<Fingerprint> machines, dataset.machines());
  std::error_code error;
  std::filesystem::create_directories(arguments.model, error);
  const TrainArguments& common = arguments;
  for (const Fingerprint& machine : machines) {
    print(concat(machine.device, " (digest ", hex_text(machine.digest()), ")\n"));
    TrainArguments one = common;
    one.model = (std::filesystem::path(arguments.model) /
                 concat(dataset.header().family, "-", hex_text(machine.digest()), ".ftm"))
                    .string();
    FORETUNE_TRY_STATUS(
        train_and_report(dataset.of_machine(machine), one, invocation).map([](int) {}));
  }
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_train(OptionList& list) {
  return prepare_with<Arguments, run_train>(list);
}

}  // namespace foretune::cli
