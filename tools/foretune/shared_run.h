// A command whose work tasks of this machine or of Slurm share: begins the run or goes on with it,
// shows its progress, and writes the merged data set.
// Thread safety: used by the main thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cluster/arguments.h"
#include "foretune/cluster/work.h"
#include "foretune/workflow/family_arguments.h"
#include "tools/foretune/command_line.h"

namespace foretune::cli {

// The options of a command, with those that share its work out.
template <class Work>
struct SharedOut {
  Work work;
  cluster::ClusterArguments cluster;

  void visit(OptionList& options) {
    work.visit(options);
    cluster.visit(options);
  }
};

// The parts of a shared run that differ from command to command.
struct SharedRun {
  std::string command;
  std::string output;
  // The options that the user changed (cluster::changed_options()), but --output.
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  bool is_simulated = false;  // its tasks do not disturb each other
  std::vector<std::string> problems;
  std::function<void(const Dataset&)> on_merged{};  // prints more of the result; may be empty
};

// Returns the parts of a run of these arguments. Errors: those of the files, families and names
// that the arguments name; kInvalidArgument for options that forbid it.
template <class Work>
Result<SharedRun> shared_run(const std::string& command, const Work& arguments,
                             const Invocation& invocation) {
  FORETUNE_TRY_STATUS(cluster::check_shareable(arguments));
  SharedRun shared{.command = command, .output = arguments.output, .options = {}, .problems = {}};
  Work changed = arguments;
  Work defaults;
  changed.output = defaults.output;
  OptionList list;
  OptionList default_list;
  changed.visit(list);
  defaults.visit(default_list);
  shared.options = cluster::changed_options(list, default_list);
  FORETUNE_TRY(const LiveFamily live, open_family_of(arguments.family, Fingerprint()));
  shared.is_simulated = live.family->info().simulated;
  FORETUNE_TRY(const std::vector<Problem> problems, cluster::run_problems(arguments, invocation));
  for (const Problem& problem : problems) {
    shared.problems.push_back(problem.text());
  }
  return shared;
}

// Returns the exit code: 0 once the data set is written, 130 when Ctrl-C ended it before.
Result<int> share_out(const SharedRun& shared, const cluster::ClusterArguments& arguments,
                      const Invocation& invocation);

}  // namespace foretune::cli
