// The options of collect and create-validation, and the collection that they prepare. Shared by the
// command line and the Python package, whose keywords are these options. Nothing here prints.
//
//   TrainingArguments arguments;
//   arguments.visit(list);  // parse, or set_option()
//   FORETUNE_TRY(const PreparedCollection prepared, prepare_collection(arguments, invocation));
//   FORETUNE_TRY(const CollectResult result, run_collection(prepared, invocation, hooks));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/collect/active.h"
#include "foretune/collect/collect.h"
#include "foretune/dataset/dataset.h"
#include "foretune/workflow/family_arguments.h"
#include "foretune/workflow/measure_arguments.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/output.h"
#include "foretune/workflow/problem_arguments.h"

namespace foretune::workflow {

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
  DatasetRole role = DatasetRole::kTraining;
  OutputPaths paths;
  std::uint64_t chunk_size = 0;  // problems between two writes of the export
  LiveFamily live;
  PayloadArguments payloads;
  std::vector<Problem> problems;
  CollectOptions options;
  std::optional<ActiveOptions> active;  // set when a model chooses the configs
  ActiveTrainer train;                  // trains that model
  Protocol protocol;
  Context context;
};

// Returns the problems that the arguments draw or read, without opening a device or measuring
// anything: what a machine that plans for others knows. Errors: as below.
Result<std::vector<Problem>> collection_problems(const CollectArguments& arguments,
                                                 const Invocation& invocation);
// Prepares a collection of some of these problems. Errors: as below.
Result<PreparedCollection> prepare_collection_of(std::vector<Problem> problems,
                                                 const CollectArguments& arguments,
                                                 const Invocation& invocation);
// Opens the family and chooses problems and configs. Measures nothing but the machine's peaks, when
// they are not known yet. Errors: those of the files, families and names that the arguments name.
Result<PreparedCollection> prepare_collection(const CollectArguments& arguments,
                                              const Invocation& invocation);

// Returns what the collection would measure, and how long that would take. With a model that
// chooses, it is the number of configs that is known before, not which ones. Errors: those of the
// file and of the family.
Result<CollectPlan> plan_of(const PreparedCollection& prepared, const Invocation& invocation);

// Measures into the journal, which it continues where one exists, and writes the export. Keeps
// every measurement at once. Sets the clock and on_problem_done() of `hooks` itself. Errors: those
// of the file, of the family's worker and of measuring.
Result<CollectResult> run_collection(const PreparedCollection& prepared,
                                     const Invocation& invocation, CollectHooks hooks);

// Measures some problems into a journal of the caller, without sealing or exporting it. Does not
// repeat rows of `elsewhere`, which may be null. `hooks` need the clock. Errors: those of the
// journal and of measuring; kCancelled once hooks.may_go_on() returns false.
Result<CollectResult> collect_problems(const PreparedCollection& prepared, Measurer& measurer,
                                       JournalWriter& journal, const std::vector<Problem>& problems,
                                       const Dataset* elsewhere, const CollectHooks& hooks);
// Returns the header of the data set that the collection writes.
DatasetHeader collection_header(const PreparedCollection& prepared, const Invocation& invocation);

// Checks that a collection has measured something. Errors: kUnsupported, with the reasons.
Status check_measured(const CollectResult& result);

}  // namespace foretune::workflow
