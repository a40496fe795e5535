// Tasks of a run as job arrays of Slurm, by its own programs: sbatch, squeue. Nothing of ours
// listens or stays behind; Slurm starts, limits and requeues the tasks.
//
//   const auto launcher = slurm_launcher(run, {.command = {...}, .nodes = 8, .time = "1:00:00"});
//
// One element of the array is one task on one node. By default it has the node for itself
// (--exclusive), or with `cpus` that many cores, because times measured beside other work are
// wrong. Thirty seconds before its time is over, Slurm sends a task SIGTERM; it then gives its
// shard back. Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cluster/launch.h"
#include "foretune/cluster/run_folder.h"

namespace foretune::cluster {

struct SlurmOptions {
  std::vector<std::string> command;  // program and arguments; those of the task follow
  std::int64_t nodes = 1;            // tasks
  std::int64_t gpus = 0;             // of a task
  std::optional<std::int64_t> cpus;  // of a task; the whole node without it
  std::string job_name = "foretune";
  std::string partition;      // the site's default when empty
  std::string time;           // limit, as sbatch takes it: 30, 1:00:00, 1-0
  std::string mail;           // address; a mail at the end and on failure
  std::string template_text;  // the site's lines: #SBATCH lines, then lines of the shell
  bool share_cores = false;
};

// Returns the script of an array of `tasks` tasks. Lines of the template that begin with #SBATCH
// follow ours, so they overrule them; its other lines come before the command. Errors:
// kInvalidArgument for values with line breaks.
Result<std::string> slurm_script(const RunFolder& run, const SlurmOptions& options,
                                 std::size_t tasks);

// Submits arrays, and remembers their numbers in the run's slurm.json, so that the next process
// that attends the run finds the jobs. leave() leaves them running. Errors: those of the file.
Result<std::unique_ptr<Launcher>> slurm_launcher(const RunFolder& run, SlurmOptions options);

// Returns a word quoted for sh.
std::string quoted_for_shell(const std::string& word);

}  // namespace foretune::cluster
