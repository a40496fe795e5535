// The options of validating a model, and the validation itself: it judges the picks by a data set,
// and measures first the picks that the data set lacks. Nothing here prints.
//
//   ValidateArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const Validation validation, run_validation(arguments, invocation, hooks));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/collect/collect.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/objective_evaluation.h"
#include "foretune/hardware/hardware.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/model_source.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/report_arguments.h"

namespace foretune::workflow {

struct ValidateArguments {
  ModelArguments model;
  std::string dataset;
  std::string variant;
  std::string problem_set;
  std::string operation;
  std::string save_predictions;
  std::optional<std::int64_t> known_shapes;
  std::optional<double> pass_mark;
  std::string training_data;
  std::string objective;
  ReportArguments report;
  std::int64_t batch_size = 64;
  std::int64_t measure_top = 16;
  bool no_measure = false;
  FamilyArguments family;
  MeasureArguments measuring;

  void visit(OptionList& list);
};

struct ValidateHooks {
  const std::atomic<bool>* stop = nullptr;  // once true, measuring ends with kCancelled
  // With the name of the stage, such as "measuring picks"; may be empty.
  std::function<void(const CollectProgress&, std::string_view)> on_progress;
};

struct Validation {
  std::string family;
  Fingerprint machine;
  std::optional<FrontEvaluation> fronts;  // with a Pareto objective
  Evaluation evaluation;                  // otherwise
  std::string source = {};                // one line below figures
  bool passes = true;                     // the mean efficiency reaches --pass-mark
};

// Appends what it measures to the data set. Errors: kInvalidArgument for options that make no sense
// together, kMismatch for a model of other configs, kCancelled when stopped; those of the files, of
// measuring and of judging.
Result<Validation> run_validation(const ValidateArguments& arguments, const Invocation& invocation,
                                  const ValidateHooks& hooks);

}  // namespace foretune::workflow
