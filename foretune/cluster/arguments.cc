#include "foretune/cluster/arguments.h"

#include <algorithm>
#include <utility>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/cluster/slurm.h"

namespace foretune::cluster {
namespace {

constexpr std::int64_t kMaxTasks = 10000;
constexpr std::size_t kShardsPerTask = 8;

}  // namespace

void ClusterArguments::visit(workflow::OptionList& list) {
  list.section("Several tasks");
  list.add("local", local, "N", "share the problems out among N processes of this machine")
      .at_least(1)
      .at_most(kMaxTasks)
      .only({"without --slurm", [this] { return !slurm; }});
  list.add_switch("slurm", slurm, "share the problems out among the tasks of a Slurm job array");
  const workflow::Condition is_shared{"with --local or --slurm",
                                      [this] { return is_shared_out(); }};
  list.add("run", run, "FOLDER",
           "folder of the run, on a file system that all tasks see (default: the data set's name "
           "with .run); the same command goes on with an existing run")
      .only(is_shared);
  list.add("shard-size", shard_size, "N",
           "number of problems that a task takes at once (default: an eighth of its share)")
      .at_least(1)
      .only(is_shared);
  list.add("lease", lease, "SECONDS",
           "give the shard of a task to another one after this many seconds without a sign of life "
           "(default: 60)")
      .at_least(1)
      .only(is_shared);
  list.add_switch("share-cores", share_cores, "measure beside other tasks on the same cores or GPU")
      .only(is_shared);
  list.add("summary", summary, "FILE", "write the progress and the result of the run as JSON")
      .only(is_shared);
  list.section("Slurm", {"with --slurm", [this] { return slurm; }});
  list.add("partition", partition, "NAME", "partition of the jobs");
  list.add("time", time, "LIMIT", "time limit of a task, as for sbatch: 30, 1:00:00");
  list.add("nodes", nodes, "N", "number of tasks, each on a node of its own (default: 1)")
      .at_least(1)
      .at_most(kMaxTasks)
      .accept({"num-nodes", "-n"});
  list.add("gpus", gpus, "N", "number of GPUs of a task").at_least(0).accept({"-ng"});
  list.add("cpus", cpus, "N", "number of cores of a task (default: its whole node)")
      .at_least(1)
      .accept({"-nc"});
  list.add("mail", mail, "ADDRESS", "send a mail when the jobs end or fail");
  list.add("template", template_file, "FILE",
           "the site's lines for the job script: #SBATCH lines, then lines of the shell");
  list.add("job-name", job_name, "NAME", "name of the jobs").accept({"-j"});
  list.add("app", app, "FILE", "accepted and ignored: the jobs run foretune itself")
      .unused("the jobs run foretune itself")
      .hide();
}

std::size_t ClusterArguments::tasks() const {
  return static_cast<std::size_t>(slurm ? nodes.value_or(1) : local.value_or(1));
}

std::filesystem::path ClusterArguments::folder(const std::filesystem::path& output) const {
  if (!run.empty()) {
    return run;
  }
  std::filesystem::path folder = output;
  return folder.replace_extension(".run");
}

std::size_t ClusterArguments::problems_per_shard(std::size_t problems) const {
  return shard_size ? static_cast<std::size_t>(*shard_size)
                    : std::max<std::size_t>(1, problems / (kShardsPerTask * tasks()));
}

Result<std::unique_ptr<Launcher>> ClusterArguments::launcher(
    const RunFolder& folder, std::vector<std::string> command) const {
  if (!slurm) {
    return local_launcher(
        folder, {.command = std::move(command), .tasks = tasks(), .share_cores = share_cores});
  }
  SlurmOptions options{.command = std::move(command),
                       .nodes = nodes.value_or(1),
                       .gpus = gpus,
                       .cpus = cpus,
                       .job_name = job_name,
                       .partition = partition,
                       .time = time,
                       .mail = mail,
                       .template_text = {},
                       .share_cores = share_cores};
  if (!template_file.empty()) {
    FORETUNE_TRY(options.template_text, read_text_file(template_file));
  }
  return slurm_launcher(folder, std::move(options));
}

}  // namespace foretune::cluster
