// foretune cluster-task: one task of a run that collect, create-validation or tune shares out.
#include <cstdlib>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/cluster/node_locks.h"
#include "foretune/cluster/run_folder.h"
#include "foretune/cluster/work.h"
#include "foretune/workflow/collection.h"
#include "foretune/workflow/tuning.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

struct ClusterTaskArguments {
  std::string run;
  std::string name;
  std::string cores;
  bool share_cores = false;

  void visit(OptionList& list) {
    list.add_positional("run", run, "folder of the run").require();
    list.add("name", name, "NAME", "name of the task, which no other one of the run has had")
        .require();
    list.add("cores", cores, "LIST", "cores to run on, as in 0,2-4 (default: all that it may use)");
    list.add_switch("share-cores", share_cores, "measure beside other tasks");
  }
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): main thread
  return value == nullptr ? std::string() : std::string(value);
}

// Returns the names of the GPUs that this task was given: Slurm's numbers, which are those of the
// whole node, or else CUDA's.
std::vector<std::string> own_gpus() {
  for (const char* const name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"}) {
    const std::string listed = variable(name);
    if (listed.empty()) {
      continue;
    }
    std::vector<std::string> gpus;
    for (const std::string_view gpu : split(listed, ',')) {
      gpus.emplace_back(trim(gpu));
    }
    return gpus;
  }
  return {"0"};
}

template <class Work>
Result<cluster::TaskReport> run_as(const cluster::RunFolder& run, const cluster::TaskPlace& place,
                                   const Invocation& invocation) {
  Work arguments;
  OptionList list;
  arguments.visit(list);
  for (const auto& [name, values] : run.plan().options) {
    FORETUNE_TRY_STATUS(set_option(list, name, values));
  }
  return cluster::run_work_task(run, place, arguments, invocation);
}

Result<int> run_cluster_task(const ClusterTaskArguments& arguments, const Invocation& given) {
  FORETUNE_TRY(const cluster::RunFolder run, cluster::RunFolder::open(arguments.run));
  if (!arguments.cores.empty()) {
    FORETUNE_TRY(const std::vector<int> cores, cluster::parse_cores(arguments.cores));
    FORETUNE_TRY_STATUS(cluster::use_cores(cores));
  }
  Invocation invocation = given;
  invocation.seed = run.plan().seed;
  invocation.command_line = run.plan().command_line;
  const cluster::TaskPlace place{.options = {.name = arguments.name,
                                             .locks = {},
                                             .cores = cluster::own_cores(),
                                             .job = variable("SLURM_JOB_ID"),
                                             .stop = &stop_flag()},
                                 .gpus = own_gpus(),
                                 .share_cores = arguments.share_cores};
  const std::string& command = run.plan().command;
  FORETUNE_TRY(
      const cluster::TaskReport report,
      command == "collect"             ? run_as<TrainingArguments>(run, place, invocation)
      : command == "create-validation" ? run_as<ValidationArguments>(run, place, invocation)
      : command == "tune"              ? run_as<TuneArguments>(run, place, invocation)
                          : Result<cluster::TaskReport>(fail(ErrorCode::kUnsupported, "a run of '",
                                                             command, "' is not known here")));
  print(concat(count_of(report.finished, "shard"), " finished, ", report.taken_over,
               " taken over, ", report.lost, " lost, ", report.failed, " failed\n"));
  if (report.failed > 0 && report.finished == 0) {
    return fail(ErrorCode::kUnsupported, report.last_failure);
  }
  return report.was_stopped ? kExitInterrupted : kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_cluster_task(OptionList& list) {
  return prepare_with<ClusterTaskArguments, run_cluster_task>(list);
}

}  // namespace foretune::cli
