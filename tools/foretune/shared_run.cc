#include "tools/foretune/shared_run.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "foretune/base/clock.h"
#include "foretune/base/figures.h"
#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/cluster/launch.h"
#include "foretune/cluster/lease.h"
#include "foretune/cluster/merge.h"
#include "foretune/cluster/node_locks.h"
#include "foretune/dataset/journal.h"
#include "foretune/interop/tables/exchange.h"
#include "foretune/plugin/loader/plugin_loader.h"
#include "foretune/workflow/output.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

cluster::RunPlan plan_of(const SharedRun& shared, const cluster::ClusterArguments& arguments,
                         const Invocation& invocation) {
  cluster::RunPlan plan{.command = shared.command,
                        .command_line = invocation.command_line,
                        .seed = invocation.seed,
                        .options = shared.options,
                        .plugins = {},
                        .shards = {}};
  plan.lease_s = arguments.lease.value_or(plan.lease_s);
  for (const LoadedPlugin& plugin : loaded_plugins()) {
    plan.plugins.push_back(std::filesystem::absolute(plugin.path).string());
  }
  plan.share_out(shared.problems, arguments.problems_per_shard(shared.problems.size()));
  return plan;
}

// Opens the run of this command when there is one, or else begins it.
Result<cluster::RunFolder> open_run(const SharedRun& shared,
                                    const cluster::ClusterArguments& arguments,
                                    const std::filesystem::path& journal,
                                    const Invocation& invocation) {
  const std::filesystem::path folder = arguments.folder(journal);
  cluster::RunPlan plan = plan_of(shared, arguments, invocation);
  if (!cluster::RunFolder::exists(folder)) {
    if (std::filesystem::exists(journal)) {
      return fail(ErrorCode::kInvalidArgument, journal.string(),
                  " exists, and it is not of a run in ", folder.string(),
                  ": give another --output, and merge the two afterwards");
    }
    return cluster::RunFolder::create(folder, plan);
  }
  FORETUNE_TRY(cluster::RunFolder run, cluster::RunFolder::open(folder));
  // A run keeps the shards that it began with.
  plan.shards = run.plan().shards;
  std::vector<std::string> problems;
  for (const cluster::Shard& shard : plan.shards) {
    problems.insert(problems.end(), shard.problems.begin(), shard.problems.end());
  }
  if (!run.plan().is_same_work(plan) || problems != shared.problems) {
    return fail(ErrorCode::kMismatch, folder.string(), " is a run of another command (",
                run.plan().command_line, "): repeat that one, or give another --run");
  }
  remark(concat("going on with the run in ", folder.string()));
  return run;
}

Status write_summary(const std::string& path, const cluster::RunFolder& run,
                     const cluster::RunCounts& counts, const cluster::LiveTasks& live,
                     const cluster::MergedRun* merged, const Invocation& invocation) {
  if (path.empty()) {
    return {};
  }
  FORETUNE_TRY(const cluster::RunSummary summary, cluster::summarise(run, counts, live));
  Figures figures{.name = "run", .metrics = {}, .machine = {}, .command = invocation.command_line};
  const auto add = [&](const char* name, std::uint64_t value) {
    figures.add(name, static_cast<double>(value));
  };
  add("shards", run.plan().shards.size());
  add("todo", counts.todo);
  add("leased", counts.leased);
  add("done", counts.done);
  add("failed", counts.failed);
  add("tasks_running", live.running);
  add("tasks_waiting", live.waiting);
  add("taken_over", summary.takeovers);
  add("finished", merged == nullptr ? 0 : 1);
  if (merged != nullptr) {
    add("measurements", merged->dataset.size());
    add("duplicated", merged->duplicates);
    add("conflicts", merged->conflicts.size());
    add("contexts", merged->rows_by_context.size());
    add("journals", merged->journals);
    add("torn_journals", merged->torn);
  }
  return write_text_file_atomically(path, figures.json());
}

Status report_failures(const cluster::RunFolder& run, const cluster::RunCounts& counts) {
  if (counts.failed == 0) {
    return {};
  }
  FORETUNE_TRY(const std::vector<std::string> names, run.names("failed"));
  FORETUNE_TRY(const cluster::ShardHistory history,
               cluster::read_history(run.path() / "failed" / names.front()));
  warn(concat(counts.failed, " of ", count_of(run.plan().shards.size(), "shard"),
              " could not be measured; the last reason: ", history.last_failure));
  return {};
}

Status write_merged(const cluster::RunFolder& run, const cluster::MergedRun& merged,
                    const OutputPaths& paths) {
  if (paths.journal.has_parent_path()) {
    std::error_code ignored;
    std::filesystem::create_directories(paths.journal.parent_path(), ignored);
  }
  FORETUNE_TRY_STATUS(write_dataset(merged.dataset, paths.journal));
  if (paths.exported) {
    FORETUNE_TRY_STATUS(export_dataset(merged.dataset, *paths.exported, paths.format));
  }
  FORETUNE_TRY(const std::vector<cluster::TaskRecord> tasks, cluster::read_tasks(run));
  std::set<std::string> hosts;
  for (const cluster::TaskRecord& task : tasks) {
    hosts.insert(task.host);
  }
  print(concat(count_of(merged.dataset.size(), "measurement"), " of ",
               count_of(merged.dataset.problems().size(), "problem"), " by ",
               count_of(merged.journals, "task"), " on ", count_of(hosts.size(), "machine"), "\n"));
  if (merged.rows_by_context.size() > 1) {
    for (const auto& [context, rows] : merged.rows_by_context) {
      print(concat(count_text(rows), " of them: ", context, "\n"));
    }
  }
  if (merged.duplicates > 0) {
    warn(concat(count_of(merged.duplicates, "measurement"),
                word_for(merged.duplicates, " was", " were"),
                " made twice; the first of each counts"));
  }
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(kShown, merged.conflicts.size()); ++i) {
    warn(concat("conflict: ", merged.conflicts[i]));
  }
  print(concat("data set: ", paths.journal.string(),
               paths.exported ? concat(" (also ", paths.exported->string(), ")") : std::string(),
               "\n"));
  return {};
}

}  // namespace

Result<int> share_out(const SharedRun& shared, const cluster::ClusterArguments& arguments,
                      const Invocation& invocation) {
  const std::size_t cores = cluster::own_cores().size();
  if (arguments.local && !shared.is_simulated && !arguments.share_cores &&
      arguments.tasks() > cores) {
    return fail(ErrorCode::kInvalidArgument, "--local ", arguments.tasks(), " is more than the ",
                cores,
                " cores here, and tasks on one core disturb each other (--share-cores measures all "
                "the same)");
  }
  FORETUNE_TRY(const OutputPaths paths, output_paths(shared.output, invocation));
  FORETUNE_TRY(const cluster::RunFolder run,
               open_run(shared, arguments, paths.journal, invocation));
  std::vector<std::string> command{invocation.worker_command.front(), "cluster-task"};
  for (const std::string& plugin : run.plan().plugins) {
    command.insert(command.end(), {"--plugin", plugin});
  }
  FORETUNE_TRY(const auto launcher, arguments.launcher(run, std::move(command)));
  FORETUNE_TRY(const cluster::RunCounts before, run.counts());
  const double begin_s = monotonic_s();
  ProgressLine line;
  cluster::LiveTasks live;
  Status summarised;
  double written_s = -1e9;
  cluster::AttendHooks hooks;
  hooks.stop = &stop_flag();
  hooks.on_trouble = [&](const std::string& trouble) {
    line.clear();
    warn(trouble);
  };
  hooks.on_look = [&](const cluster::RunCounts& counts, const cluster::LiveTasks& tasks) {
    live = tasks;
    if (line.due()) {
      line.show(cluster::progress_line(run, counts, tasks, monotonic_s() - begin_s, before.done));
    }
    if (summarised && monotonic_s() - written_s > 2) {
      written_s = monotonic_s();
      summarised = write_summary(arguments.summary, run, counts, tasks, nullptr, invocation);
    }
  };
  FORETUNE_TRY(const cluster::Attendance attendance, cluster::attend(run, *launcher, hooks));
  line.clear();
  FORETUNE_TRY_STATUS(summarised);
  if (attendance.was_stopped) {
    FORETUNE_TRY_STATUS(write_summary(arguments.summary, run, attendance.counts,
                                      arguments.slurm ? live : cluster::LiveTasks(), nullptr,
                                      invocation));
    remark(arguments.slurm
               ? "the jobs go on; the same command shows their progress again and "
                 "writes the data set (scancel ends them)"
               : "interrupted; everything measured is kept, the same command continues");
    return kExitInterrupted;
  }
  FORETUNE_TRY_STATUS(report_failures(run, attendance.counts));
  FORETUNE_TRY(const cluster::MergedRun merged, cluster::merge_run(run));
  if (shared.on_merged) {
    shared.on_merged(merged.dataset);
  }
  FORETUNE_TRY_STATUS(write_merged(run, merged, paths));
  FORETUNE_TRY_STATUS(write_summary(arguments.summary, run, attendance.counts, cluster::LiveTasks(),
                                    &merged, invocation));
  return kExitOk;
}

}  // namespace foretune::cli
