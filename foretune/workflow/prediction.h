// The options of predicting, and the prediction itself: the best configs of a problem in the order
// of a model, without measuring. Nothing here prints.
//
//   PredictArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const std::vector<Prediction> found, run_prediction(arguments, invocation));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/evaluate/prediction.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/model_source.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/payload_arguments.h"
#include "foretune/workflow/problem_arguments.h"

namespace foretune::workflow {

struct PredictArguments {
  ModelArguments model;
  OneProblemArguments problem;
  std::string problems;
  PayloadArguments payloads;
  std::int64_t top = 5;
  bool explain = false;
  std::string objective;
  std::string json;

  void visit(OptionList& list);
};

// Returns the prediction of the problem, or one for each of --problems. Errors: kInvalidArgument
// for options that make no sense together; those of the files, of the problems and of predict().
Result<std::vector<Prediction>> run_prediction(const PredictArguments& arguments,
                                               const Invocation& invocation);

}  // namespace foretune::workflow
