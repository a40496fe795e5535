// A run: work shared out among tasks on several machines, as a folder on a file system that all of
// them see. There is no server, no open port and no shared secret; tasks speak by renaming files.
//
//   plan.json             the command, its options, its seed, and the shards (lists of problems)
//   todo/SHARD            shards that nobody works on
//   leased/SHARD.TASK     shards that a task works on (lease.h)
//   done/SHARD.TASK       finished shards, by the task that finished them
//   failed/SHARD.TASK     shards that failed in several tasks
//   journals/TASK.ftd     the measurements of a task, its only writer
//   tasks/TASK.json       host, cores, machine, start and end of a task
//   tasks/TASK.log        its output
//
//   FORETUNE_TRY(const RunFolder run, RunFolder::create("matmul.run", plan));
//   FORETUNE_TRY(const RunFolder same, RunFolder::open("matmul.run"));
//
// A file of a shard holds one line for each task that had it, with > before the name when it took
// the shard over from a task that had died; a line that begins with ! tells why the shard failed
// there. Every change of state is one rename(2), which NFS does atomically. No
// file of the folder is ever locked.
// Thread safety: const members may be called from several threads and machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/dataset/dataset.h"
#include "foretune/dataset/journal.h"

namespace foretune::cluster {

// A shard's name and its problems, as text.
struct Shard {
  std::string name;
  std::vector<std::string> problems;
  bool operator==(const Shard&) const = default;
};

struct RunPlan {
  std::string command;  // "collect", "create-validation", "tune"
  std::string command_line;
  std::uint64_t seed = 42;
  // The options that the user gave, with their values as text.
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  std::vector<std::string> plugins;
  double lease_s = 60;  // a lease that its task did not renew for so long is free
  std::vector<Shard> shards;

  // Makes shards of `per_shard` problems each, in order.
  void share_out(const std::vector<std::string>& problems, std::size_t per_shard);
  // Returns true when both runs measure the same: command, seed, options and problems.
  [[nodiscard]] bool is_same_work(const RunPlan& other) const;
  [[nodiscard]] std::string json() const;
  // Errors: kCorrupt for another format, kUnsupported for a later version.
  static Result<RunPlan> parse(std::string_view text);
};

// Counts of shards by state.
struct RunCounts {
  std::size_t todo = 0;
  std::size_t leased = 0;
  std::size_t done = 0;
  std::size_t failed = 0;
  [[nodiscard]] std::size_t open() const { return todo + leased; }
};

class RunFolder {
 public:
  // Makes the folder with all shards to do. It appears as a whole, by one rename. Errors:
  // kInvalidArgument when a folder of the name has files; kIo.
  static Result<RunFolder> create(const std::filesystem::path& path, const RunPlan& plan);
  // Errors: kNotFound when it is not a run; those of RunPlan::parse().
  static Result<RunFolder> open(const std::filesystem::path& path);
  static bool exists(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const RunPlan& plan() const { return plan_; }
  [[nodiscard]] std::filesystem::path journal(const std::string& task) const;
  [[nodiscard]] std::filesystem::path task_file(const std::string& task) const;
  [[nodiscard]] std::filesystem::path task_log(const std::string& task) const;
  // Errors: kIo.
  [[nodiscard]] Result<RunCounts> counts() const;
  // Returns the names in a folder of the run ("todo", "leased", "done", "failed", "journals"), in
  // order. Errors: kIo.
  [[nodiscard]] Result<std::vector<std::string>> names(const std::string& state) const;
  // Returns the measurements of a task, or nothing where it was killed before it began its file.
  // `report` may be null. Errors: those of read_dataset() but kNotFound.
  [[nodiscard]] Result<std::optional<Dataset>> read_journal(const std::string& task,
                                                            ReadReport* report = nullptr) const;
  // Returns nullptr for a name that the plan lacks.
  [[nodiscard]] const Shard* find(const std::string& shard) const;

 private:
  RunFolder(std::filesystem::path path, RunPlan plan)
      : path_(std::move(path)), plan_(std::move(plan)) {}
  std::filesystem::path path_;
  RunPlan plan_;
};

// Checks a task's name: letters, digits, - and _ only, at most 100. Errors: kInvalidArgument.
Status check_task_name(const std::string& name);

// Splits "SHARD.TASK". Without a dot the task is empty.
std::pair<std::string, std::string> split_lease(const std::string& name);

}  // namespace foretune::cluster
