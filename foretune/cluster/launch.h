// Starts the tasks of a run, as processes of this machine or as a job array of Slurm, and attends
// the run until all its shards are done.
//
//   const auto launcher = local_launcher(run, {.command = {...}, .tasks = 2});
//   FORETUNE_TRY(const Attendance attendance, attend(run, *launcher, hooks));
//
// Attending only reads the folder and starts tasks where none is left, so it may be ended at any
// moment and begun again, also on another machine.
// Thread safety: used by one thread at a time; `stop` may be set from a signal handler.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/cluster/run_folder.h"

namespace foretune::cluster {

// Counts of tasks that have not ended.
struct LiveTasks {
  std::size_t waiting = 0;  // for the scheduler
  std::size_t running = 0;
  [[nodiscard]] std::size_t all() const { return waiting + running; }
};

class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;
  // Starts as many tasks as it was made for, at most `shards`. Errors: those of the scheduler or of
  // the system.
  virtual Status launch(std::size_t shards) = 0;
  // Errors: kIo when the scheduler does not answer.
  virtual Result<LiveTasks> live() = 0;
  // Called when attending ends on request, before the run is done.
  virtual void leave() = 0;
  // Seconds between two looks at the run.
  [[nodiscard]] virtual double interval_s() const = 0;
  // Where the tasks' last words are, and those words when they are here.
  [[nodiscard]] virtual std::string last_words() const = 0;
};

struct LocalOptions {
  std::vector<std::string> command;  // program and arguments; those of the task follow
  std::size_t tasks = 1;
  bool share_cores = false;
};
// Each task gets cores of its own. leave() asks them to end and waits until they did. Tasks that
// are killed are started again while the others go on.
std::unique_ptr<Launcher> local_launcher(const RunFolder& run, LocalOptions options);

struct AttendHooks {
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const RunCounts&, const LiveTasks&)> on_look;
  std::function<void(const std::string&)> on_trouble;  // the scheduler did not answer
};

struct Attendance {
  RunCounts counts;
  std::uint64_t launches = 0;
  bool was_stopped = false;
};
// Errors: kUnsupported when tasks end without finishing any shard; those of the launcher.
Result<Attendance> attend(const RunFolder& run, Launcher& launcher, const AttendHooks& hooks);

// Figures of a run, for a person's line or a machine.
struct RunSummary {
  RunCounts counts;
  LiveTasks live;
  std::uint64_t takeovers = 0;  // of leases of tasks that had died
};
Result<RunSummary> summarise(const RunFolder& run, const RunCounts& counts, const LiveTasks& live);
std::string progress_line(const RunFolder& run, const RunCounts& counts, const LiveTasks& live,
                          double elapsed_s, std::size_t done_before);

}  // namespace foretune::cluster
