// The work of collect, create-validation and tune, shared out: the problems of a run, and a task
// that measures its shards. Other work of the library calls run_task() with a function of its own.
//
//   FORETUNE_TRY(const std::vector<Problem> problems, run_problems(arguments, invocation));
//   FORETUNE_TRY(const TaskReport report, run_work_task(run, place, arguments, invocation));
//
// Thread safety: used by one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cluster/run_folder.h"
#include "foretune/cluster/task.h"
#include "foretune/workflow/collection.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"
#include "foretune/workflow/tuning.h"

namespace foretune::cluster {

// Returns the names of locks that a task takes for a family (node_locks.h): one for each GPU when
// it runs on a device, one for each core otherwise, and none when its times are simulated.
std::vector<std::string> locks_for(const FamilyInfo& info, const std::vector<int>& cores,
                                   const std::vector<std::string>& gpus);

// The place of a task: its name, cores and GPUs.
struct TaskPlace {
  TaskOptions options;            // `locks` are set here
  std::vector<std::string> gpus;  // names of the GPUs that the task was given
  bool share_cores = false;       // takes no locks
};

// Checks that the options make sense for a run that is shared out. Errors: kInvalidArgument.
Status check_shareable(const workflow::CollectArguments& arguments);
Status check_shareable(const workflow::TuneArguments& arguments);

// Return the problems of a run. Errors: those of the files, families and names in the arguments.
Result<std::vector<Problem>> run_problems(const workflow::CollectArguments& arguments,
                                          const workflow::Invocation& invocation);
Result<std::vector<Problem>> run_problems(const workflow::TuneArguments& arguments,
                                          const workflow::Invocation& invocation);

// Run one task on this machine. Errors: those of run_task() and of preparing.
Result<TaskReport> run_work_task(const RunFolder& run, TaskPlace place,
                                 workflow::CollectArguments arguments,
                                 const workflow::Invocation& invocation);
Result<TaskReport> run_work_task(const RunFolder& run, TaskPlace place,
                                 workflow::TuneArguments arguments,
                                 const workflow::Invocation& invocation);

// Returns the options of `list` whose values differ from those of `defaults`, a list of the same
// options, as text that set_option() takes.
std::vector<std::pair<std::string, std::vector<std::string>>> changed_options(
    const workflow::OptionList& list, const workflow::OptionList& defaults);

}  // namespace foretune::cluster
