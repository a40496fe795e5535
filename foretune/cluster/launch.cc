#include "foretune/cluster/launch.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill(), sigset_t
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

#include "foretune/base/child_process.h"
#include "foretune/base/clock.h"
#include "foretune/base/file.h"
#include "foretune/base/quantities.h"
#include "foretune/base/system_error.h"
#include "foretune/base/text.h"
#include "foretune/cluster/lease.h"
#include "foretune/cluster/node_locks.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every libc's headers

namespace foretune::cluster {
namespace {

// Starts a process with its output in `log`, in a group of its own: Ctrl-C does not reach it.
Result<pid_t> spawn_into(const std::vector<std::string>& command, const std::string& log) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // posix_spawn does not write
  }
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int problem =
      ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (problem != 0) {
    errno = problem;
    return fail(ErrorCode::kNotFound, "cannot start ", command.front(), ": ", last_error());
  }
  return pid;
}

constexpr double kShortestLifeS = 1;
constexpr double kFarewellS = 5;

std::string last_line(const std::filesystem::path& log) {
  const Result<std::string> text = read_text_file(log);
  if (!text) {
    return {};
  }
  const std::string_view words = trim(*text);
  const std::size_t line = words.rfind('\n');
  return std::string(line == std::string_view::npos ? words : words.substr(line + 1));
}

class LocalLauncher final : public Launcher {
 public:
  LocalLauncher(const RunFolder& run, LocalOptions options)
      : run_(run), options_(std::move(options)), cores_(own_cores()) {
    places_.resize(options_.tasks, -1);
    logs_.resize(options_.tasks);
    started_s_.resize(options_.tasks);
  }

  // Tasks that find nothing left to do end by themselves within seconds.
  ~LocalLauncher() override {
    const double until_s = monotonic_s() + kFarewellS;
    for (const pid_t pid : places_) {
      while (pid > 0 && ::waitpid(pid, nullptr, WNOHANG) == 0 && monotonic_s() < until_s) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
  }

  Status launch(std::size_t shards) override {
    for (std::size_t i = 0; i < std::min(places_.size(), shards); ++i) {
      if (places_[i] < 0) {
        FORETUNE_TRY_STATUS(start(i));
      }
    }
    return {};
  }

  Result<LiveTasks> live() override {
    LiveTasks live;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] < 0) {
        continue;
      }
      int status = 0;
      if (::waitpid(places_[i], &status, WNOHANG) == 0) {
        ++live.running;
        continue;
      }
      places_[i] = -1;
      if (WIFSIGNALED(status)) {
        last_words_ = concat("a task was ended by ", signal_name(WTERMSIG(status)));
        // The others need not do its share. One that dies as it starts would do so again.
        if (monotonic_s() - started_s_[i] > kShortestLifeS) {
          FORETUNE_TRY_STATUS(start(i));
          ++live.running;
        }
      } else if (WEXITSTATUS(status) != 0) {
        last_words_ = last_line(logs_[i]);
      }
    }
    return live;
  }

  void leave() override {
    for (const pid_t pid : places_) {
      if (pid > 0) {
        ::kill(pid, SIGTERM);
      }
    }
    for (pid_t& pid : places_) {
      while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      pid = -1;
    }
  }

  [[nodiscard]] double interval_s() const override { return 0.1; }
  [[nodiscard]] std::string last_words() const override {
    return last_words_.empty() ? concat("see ", (run_.path() / "tasks").string()) : last_words_;
  }

 private:
  Status start(std::size_t place) {
    const std::string name = concat("local-", static_cast<std::int64_t>(std::time(nullptr)), "-",
                                    ::getpid(), "-", started_++);
    std::vector<std::string> command = options_.command;
    command.insert(command.end(), {run_.path().string(), "--name", name});
    // Cores of its own, unless there are too few: the tasks then refuse each other.
    const std::size_t share = cores_.size() / places_.size();
    if (share > 0) {
      const auto first = cores_.begin() + static_cast<std::ptrdiff_t>(place * share);
      command.insert(command.end(),
                     {"--cores", cores_text({first, first + static_cast<std::ptrdiff_t>(share)})});
    }
    if (options_.share_cores) {
      command.emplace_back("--share-cores");
    }
    logs_[place] = run_.task_log(name);
    started_s_[place] = monotonic_s();
    FORETUNE_TRY(places_[place], spawn_into(command, logs_[place].string()));
    return {};
  }

  const RunFolder& run_;
  LocalOptions options_;
  std::vector<int> cores_;
  std::vector<pid_t> places_;  // -1: none
  std::vector<std::filesystem::path> logs_;
  std::vector<double> started_s_;
  std::size_t started_ = 0;
  std::string last_words_;
};

}  // namespace

std::unique_ptr<Launcher> local_launcher(const RunFolder& run, LocalOptions options) {
  return std::make_unique<LocalLauncher>(run, std::move(options));
}

Result<Attendance> attend(const RunFolder& run, Launcher& launcher, const AttendHooks& hooks) {
  Attendance out;
  std::optional<std::size_t> done_at_launch;
  const auto wants_stop = [&] { return hooks.stop != nullptr && hooks.stop->load(); };
  for (;;) {
    FORETUNE_TRY(out.counts, run.counts());
    if (out.counts.open() == 0) {
      return out;
    }
    const Result<LiveTasks> live = launcher.live();
    if (live) {
      if (hooks.on_look) {
        hooks.on_look(out.counts, *live);
      }
      if (live->all() == 0) {
        const std::size_t settled = out.counts.done + out.counts.failed;
        if (done_at_launch && *done_at_launch == settled) {
          return fail(ErrorCode::kUnsupported,
                      "the tasks ended without finishing a shard: ", launcher.last_words());
        }
        done_at_launch = settled;
        FORETUNE_TRY_STATUS(launcher.launch(out.counts.open()));
        ++out.launches;
      }
    } else if (hooks.on_trouble) {
      hooks.on_trouble(live.error().message);
    }
    const double until_s = monotonic_s() + launcher.interval_s();
    while (monotonic_s() < until_s && !wants_stop()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (wants_stop()) {
      launcher.leave();
      FORETUNE_TRY(out.counts, run.counts());
      out.was_stopped = out.counts.open() > 0;
      return out;
    }
  }
}

Result<RunSummary> summarise(const RunFolder& run, const RunCounts& counts, const LiveTasks& live) {
  RunSummary out{.counts = counts, .live = live};
  for (const char* const state : {"todo", "leased", "done", "failed"}) {
    FORETUNE_TRY(const std::vector<std::string> names, run.names(state));
    for (const std::string& name : names) {
      const Result<ShardHistory> history = read_history(run.path() / state / name);
      out.takeovers += history ? history->takeovers : 0;
    }
  }
  return out;
}

std::string progress_line(const RunFolder& run, const RunCounts& counts, const LiveTasks& live,
                          double elapsed_s, std::size_t done_before) {
  std::string out = concat("shards ", counts.done, "/", run.plan().shards.size(), " done, ",
                           counts.leased, " in work");
  if (counts.failed > 0) {
    out += concat(", ", counts.failed, " failed");
  }
  out += concat("; tasks ", live.running, " running");
  if (live.waiting > 0) {
    out += concat(", ", live.waiting, " waiting");
  }
  if (counts.done > done_before && elapsed_s > 0) {
    const double each_s = elapsed_s / static_cast<double>(counts.done - done_before);
    out += concat("  ETA ", fixed(each_s * static_cast<double>(counts.open()), 0), " s");
  }
  return out;
}

}  // namespace foretune::cluster
