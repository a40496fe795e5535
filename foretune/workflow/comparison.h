// The options of comparing an old model with a new one, or old data with new data by models of
// both, and the comparison itself. Nothing here prints.
//
//   CompareArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const ModelComparison comparison, run_comparison(arguments, invocation, hooks));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "foretune/base/result.h"
#include "foretune/evaluate/compare.h"
#include "foretune/model/train/trainer.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/payload_arguments.h"

namespace foretune::workflow {

struct CompareArguments {
  std::string before;
  std::string after;
  std::string dataset;
  std::string objective;
  std::string json;
  std::string variant;  // unused
  PayloadArguments payloads;
  bool retrain = false;
  std::int64_t folds = 3;
  std::int64_t trees = GbdtOptions().trees;
  std::int64_t list = 5;
  double mean = 0.5;
  double median = 0.5;
  double p10 = 2;
  double problem = 10;

  void visit(OptionList& list_of);
};

struct CompareHooks {
  // With the name of the training of --retrain, such as "old, fold 1 of 3"; may be empty. False
  // stops the comparison with kCancelled.
  std::function<bool(const TrainProgress&, std::string_view)> on_progress;
};

// Errors: kInvalidArgument for files that cannot be compared in this way, kMismatch for a
// validation set that models would learn from; those of the files, of training and of judging.
Result<ModelComparison> run_comparison(const CompareArguments& arguments,
                                       const Invocation& invocation, const CompareHooks& hooks);

}  // namespace foretune::workflow
