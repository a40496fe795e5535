// The options of evaluating a way of training, and the evaluation itself: models of one part of a
// data set are judged on the rest. With a model, its picks are judged instead. Nothing here prints.
//
//   EvaluateArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const TrainingEvaluation judged, run_evaluation(arguments, invocation, hooks));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "foretune/base/result.h"
#include "foretune/evaluate/cross_evaluate.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/objective_evaluation.h"
#include "foretune/evaluate/unseen_configs.h"
#include "foretune/hardware/hardware.h"
#include "foretune/model/train/trainer.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/model_source.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/payload_arguments.h"
#include "foretune/workflow/recipe.h"
#include "foretune/workflow/report_arguments.h"

namespace foretune::workflow {

struct EvaluateArguments {
  ModelArguments model;
  std::string dataset;
  std::string data_dir;
  std::string operation;
  std::string dtype;
  std::optional<std::int64_t> nested_folds;
  std::string leave_out;
  std::string leave_out_configs;
  std::string group_key = "problem";
  std::string pick_objective;
  PayloadArguments payloads;
  ReportArguments report;
  RecipeArguments recipe;
  double row_weight_decay = recipe.defaults.weight_decay;

  void visit(OptionList& list);
};

struct EvaluateHooks {
  // With the part that is left out; may be empty. False stops the evaluation with kCancelled.
  std::function<bool(const TrainProgress&, const OuterSplit&)> on_progress;
};

struct TrainingEvaluation {
  std::string family;
  Fingerprint machine;
  std::optional<Evaluation> of_model;      // with --model
  std::optional<FrontEvaluation> fronts;   // with a Pareto objective
  std::optional<UnseenEvaluation> unseen;  // when configs were left out
  CrossEvaluation picks;                   // otherwise
  std::string source = {};                 // one line below figures
};

// Errors: kInvalidArgument for options that make no sense together; those of reading, training and
// judging.
Result<TrainingEvaluation> run_evaluation(const EvaluateArguments& arguments,
                                          const Invocation& invocation, const EvaluateHooks& hooks);

}  // namespace foretune::workflow
