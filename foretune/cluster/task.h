// One task of a run: takes shards under leases, one after another, and does their work, until none
// is left to do or to take over.
//
//   const ShardWork work = [&](const ShardContext& shard) -> Status {
//     return measure(shard.problems, shard.journal, shard.elsewhere, shard.holds);
//   };
//   FORETUNE_TRY(const TaskReport report, run_task(run, options, header, work));
//
// A task that finds nothing to claim stays as long as leases of others may still expire, one and a
// half times lease_s, so that it can take the shards of tasks that died over.
// Thread safety: a task belongs to one thread; `stop` may be set from a signal handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cluster/run_folder.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"

namespace foretune::cluster {

// One shard for its work to be done.
struct ShardContext {
  const Shard& shard;
  JournalWriter& journal;    // of this task, without a lock on the file
  const Dataset* elsewhere;  // measured by earlier holders of the shard; null for the first
  // Returns false once another task may have taken the shard over: nothing may be kept then.
  std::function<bool()> holds;
  const std::atomic<bool>* stop;  // may be null
};

// Measures a shard. Errors: kCancelled when it stopped because of `holds` or `stop`; others count
// as a failure of the shard.
using ShardWork = std::function<Status(const ShardContext&)>;

struct TaskOptions {
  std::string name;  // unique in the run, also after a restart (check_task_name())
  // Locks of the machine that the task holds while it runs (node_locks.h): "core-3", "gpu-0".
  std::vector<std::string> locks;
  std::vector<int> cores;  // for the record
  std::string job;         // the scheduler's name of it, for the record; may be empty
  const std::atomic<bool>* stop = nullptr;
};

struct TaskReport {
  std::uint64_t finished = 0;    // shards
  std::uint64_t taken_over = 0;  // shards whose earlier holder had died
  std::uint64_t lost = 0;        // shards that others took over from this task
  std::uint64_t failed = 0;      // shards that could not be measured
  std::string last_failure;
  bool was_stopped = false;
};

// Works on shards of the run until none is free. Writes tasks/NAME.json and journals/NAME.ftd.
// Errors: kInvalidArgument for a name that the run has already had; kUnsupported when another task
// of this machine holds a lock; kIo.
Result<TaskReport> run_task(const RunFolder& run, const TaskOptions& options,
                            const DatasetHeader& header, const ShardWork& work);

// The record of a task, as tasks/NAME.json has it.
struct TaskRecord {
  std::string name;
  std::string host;
  std::int64_t pid = 0;
  std::string job;
  std::vector<int> cores;
  std::string machine;  // digest of the fingerprint, in hexadecimal
  std::string device;
  std::int64_t start = 0;  // seconds since 1970, by the task's machine
  std::int64_t end = 0;    // 0 while it runs, and for a task that was killed
  std::string exit;        // why it ended; empty while it runs
  TaskReport report{};
};
// Returns the records of all tasks that began, by name. Errors: kIo, kCorrupt.
Result<std::vector<TaskRecord>> read_tasks(const RunFolder& run);

}  // namespace foretune::cluster
