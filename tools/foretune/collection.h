// What collect and create-validation are asked for, and what that makes ready to be measured;
// shared by the command line and the Python package, whose keywords are these options. Nothing here
// prints.
//
//   TrainingArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const PreparedCollection prepared, prepare_collection(arguments, invocation));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/tune/active.h"
#include "foretune/tune/collect.h"
#include "tools/foretune/common.h"
#include "tools/foretune/options.h"
#include "tools/foretune/problem_arguments.h"

namespace foretune::cli {

struct CollectArguments {
  explicit CollectArguments(DatasetRole collected_role) : role(collected_role) {}

  DatasetRole role;
  std::string output;
  std::string budget;
  std::string search_space = "DEFAULT";
  std::string search_mode = "max-autotune";
  std::string metrics;
  std::optional<std::int64_t> chunk_size;
  bool dry_run = false;
  bool no_resume = false;
  std::string training_data;
  std::string model;
  std::int64_t model_top = 16;
  std::int64_t confirm_top = 5;
  bool active = false;
  std::optional<std::int64_t> active_budget;
  std::optional<std::int64_t> configs_per_problem;
  std::optional<std::int64_t> rounds;
  std::string policy;
  std::string active_objective;
  FamilyArguments family;
  ProblemArguments problems;
  MeasureArguments measuring;

  void visit(OptionList& list);

 private:
  void visit_active(OptionList& list);
};

struct TrainingArguments : CollectArguments {
  TrainingArguments() : CollectArguments(DatasetRole::kTraining) {
    output = "matmul_dataset.ftd";
    problems.num_shapes = 100;
  }
};
struct ValidationArguments : CollectArguments {
  ValidationArguments() : CollectArguments(DatasetRole::kValidation) {
    output = "matmul_validation_dataset.ftd";
    problems.num_shapes = 30;
  }
};

struct PreparedCollection {
  OutputPaths paths;
  std::uint64_t chunk_size = 0;  // problems between two writes of the export
  LiveFamily live;
  PayloadArguments payloads;
  std::vector<Problem> problems;
  CollectOptions options;
  std::optional<ActiveOptions> active;  // a model chooses
  ActiveTrainer train;                  // that model
  Protocol protocol;
  Context context;
  std::vector<std::string> remarks;  // what the caller should be told
};

// Opens the family and chooses problems and configs; measures nothing but the machine's peaks where
// they are not known yet. Errors: those of the files, families and names that the arguments name.
Result<PreparedCollection> prepare_collection(const CollectArguments& arguments,
                                              const Invocation& invocation);

// Errors: kUnsupported, with the reasons, when a collection has nothing to show for itself.
Status check_measured(const CollectResult& result);

// What `prepared` describes, into a journal opened for it: collect(), or collect_active() with what
// the file holds already. Errors: theirs.
Result<CollectResult> collect_prepared(const PreparedCollection& prepared, Measurer& measurer,
                                       JournalWriter& journal, const CollectHooks& hooks);

}  // namespace foretune::cli
