// The options of predicting, and the prediction itself: the best configs of a problem in the order
// of a model, without measuring. Nothing here prints.
//
//   PredictArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const Prediction prediction, run_prediction(arguments));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "foretune/base/result.h"
#include "foretune/evaluate/prediction.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/payload_arguments.h"
#include "foretune/workflow/problem_arguments.h"

namespace foretune::workflow {

struct PredictArguments {
  std::string model;
  OneProblemArguments problem;
  PayloadArguments payloads;
  std::int64_t top = 5;
  bool explain = false;
  std::string objective;
  std::string json;

  void visit(OptionList& list);
};

// Errors: kInvalidArgument for options that make no sense together; those of the files, of the
// problem and of predict().
Result<Prediction> run_prediction(const PredictArguments& arguments);

}  // namespace foretune::workflow
