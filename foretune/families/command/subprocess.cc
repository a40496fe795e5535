#include "foretune/families/command/subprocess.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigset_t
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "foretune/base/child_process.h"
#include "foretune/base/descriptor.h"
#include "foretune/base/system_error.h"
#include "foretune/base/text.h"

namespace foretune::command_internal {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kErrorBytes = 4096;
constexpr std::size_t kReasonBytes = 300;
// How long is waited for output between two looks at the process itself.
constexpr int kTickMs = 10;
// Who writes to standard error for ever must not keep us from looking at the clock.
constexpr int kMaxChunks = 16;

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::kIo, "no pipe to a command: ", last_error());
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// All that the child needs, made before it exists: between vfork and exec it may not allocate.
struct Launch {
  std::vector<char*> arguments;
  std::string folder;
  int input = -1;
  int output = -1;
  int errors = -1;
  int failure =
      -1;  // a pipe that takes the error of a start that failed, and closes with a good one
  rlim_t memory_bytes = 0;
};

[[noreturn]] void become_command(const Launch& launch) {
  ::setpgid(0, 0);
  // Nobody would end it if we were killed.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct sigaction plain{};
  plain.sa_handler = SIG_DFL;
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    ::sigaction(signal, &plain, nullptr);  // refuses SIGKILL and SIGSTOP, which have no handler
  }
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  if (launch.memory_bytes > 0) {
    const rlimit limit{launch.memory_bytes, launch.memory_bytes};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  if (::dup2(launch.input, STDIN_FILENO) >= 0 && ::dup2(launch.output, STDOUT_FILENO) >= 0 &&
      ::dup2(launch.errors, STDERR_FILENO) >= 0 && ::chdir(launch.folder.c_str()) == 0) {
    // Ours are marked already; those of libraries may not be.
    ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    ::execvp(launch.arguments[0], launch.arguments.data());
  }
  const int error = errno;
  static_cast<void>(::write(launch.failure, &error, sizeof error) == sizeof error);
  ::_exit(127);
}

// A child by vfork shares our memory until it is the command: a limit of memory must be in force
// before its first instruction, which posix_spawn cannot do, and a fork would copy our page tables
// within the time that is measured.
pid_t start(const Launch& launch) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of ours may run in the child
  // NOLINTNEXTLINE(bugprone-unsafe-functions,clang-analyzer-security.insecureAPI.vfork)
  const pid_t pid = ::vfork();
  if (pid == 0) {
    become_command(launch);  // NOLINT(clang-analyzer-unix.Vfork): it only makes system calls
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pid;
}

// Reads what is there. Returns false at the end of the pipe.
bool drain(Descriptor& pipe, std::string& text, std::size_t limit, bool& is_over) {
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t count = ::read(pipe.get(), chunk.data(), chunk.size());
    if (count > 0) {
      const std::size_t room = limit - std::min(limit, text.size());
      const auto size = static_cast<std::size_t>(count);
      text.append(chunk.data(), std::min(room, size));
      is_over = is_over || size > room;
      if (is_over) {
        return true;  // who writes for ever would keep us here
      }
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      pipe.close();
      return false;
    } else if (errno == EAGAIN) {
      return true;
    }
  }
}

// A command on its way. Its end is noticed without reaping it, so that its number still names its
// group, and nobody else's, when that is killed.
class RunningProcess {
 public:
  RunningProcess(pid_t pid, Descriptor output, Descriptor errors, const ProcessLimits& limits,
                 Clock::time_point begin)
      : pid_(pid), output_(std::move(output)), errors_(std::move(errors)), begin_(begin) {
    end_.limits = limits;
    for (const Descriptor* pipe : {&output_, &errors_}) {
      ::fcntl(pipe->get(), F_SETFL, O_NONBLOCK);
    }
  }

  ProcessEnd finish() {
    const auto limit = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(std::min(end_.limits.time_s, 1e8)));
    const Clock::time_point deadline = begin_ + limit;
    bool is_late = false;
    while (!has_ended() && !is_late && !is_too_much_) {
      wait_for_output(deadline);
      is_late = Clock::now() >= deadline;
    }
    end_.wall_ns = std::chrono::duration<double, std::nano>(Clock::now() - begin_).count();
    ::kill(-pid_, SIGKILL);  // with whatever it has started
    reap();
    if (is_late && !has_ended_) {
      end_.kind = ProcessEnd::Kind::kTimedOut;
    }
    read_all();
    if (is_too_much_) {
      end_.kind = ProcessEnd::Kind::kTooMuchOutput;
    }
    return std::move(end_);
  }

 private:
  bool has_ended() {
    siginfo_t info{};
    const int result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    // An error: somebody ignores SIGCHLD, and the status is lost.
    has_ended_ = (result == 0 && info.si_pid == pid_) || (result != 0 && errno != EINTR);
    return has_ended_;
  }

  void read_all() {
    bool is_dropped = false;
    if (output_.ok()) {
      drain(output_, end_.output, static_cast<std::size_t>(end_.limits.output_bytes), is_too_much_);
    }
    // Only its beginning is kept, but all of it is read.
    for (int chunk = 0; chunk < kMaxChunks && errors_.ok(); ++chunk) {
      is_dropped = false;
      drain(errors_, end_.errors, kErrorBytes, is_dropped);
      if (!is_dropped) {
        break;
      }
    }
  }

  void wait_for_output(Clock::time_point deadline) {
    if (!output_.ok() && !errors_.ok()) {
      // It closed both, which nearly always means that it is ending right now.
      const bool is_new = closed_polls_++ < 20;
      std::this_thread::sleep_for(std::chrono::microseconds(is_new ? 20 : 500));
      return;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    std::array<pollfd, 2> wait{pollfd{output_.get(), POLLIN, 0}, pollfd{errors_.get(), POLLIN, 0}};
    ::poll(wait.data(), wait.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, kTickMs)));
    read_all();
  }

  void reap() {
    int status = 0;
    pid_t done = 0;
    do {
      done = ::waitpid(pid_, &status, 0);
    } while (done < 0 && errno == EINTR);
    if (done == pid_ && WIFSIGNALED(status)) {
      end_.kind = ProcessEnd::Kind::kSignalled;
      end_.code = WTERMSIG(status);
    } else {
      end_.code = done == pid_ ? WEXITSTATUS(status) : 0;
    }
  }

  pid_t pid_;
  Descriptor output_;
  Descriptor errors_;
  Clock::time_point begin_;
  ProcessEnd end_;
  int closed_polls_ = 0;
  bool has_ended_ = false;
  bool is_too_much_ = false;
};

std::string first_line(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (!line.empty()) {
      std::string out(line.substr(0, kReasonBytes));
      std::replace_if(
          out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
      return out;
    }
  }
  return {};
}

}  // namespace

std::string ProcessEnd::text() const {
  std::string out;
  switch (kind) {
    case Kind::kExited:
      out = concat("ended with exit code ", code);
      break;
    case Kind::kSignalled:
      out = concat("was ended by ", signal_name(code));
      break;
    case Kind::kTimedOut:
      out = concat("took longer than ", limits.time_s, " s");
      break;
    case Kind::kTooMuchOutput:
      out = concat("wrote more than ", limits.output_bytes, " bytes");
      break;
  }
  const std::string words = first_line(errors);
  return words.empty() ? out : concat(out, ": ", words);
}

Result<ProcessEnd> run_process(const std::vector<std::string>& words,
                               const std::filesystem::path& folder, const ProcessLimits& limits) {
  if (words.empty() || words[0].empty()) {
    return fail(ErrorCode::kInvalidArgument, "a command has no word that names its program");
  }
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  FORETUNE_TRY(Pipe output, make_pipe());
  FORETUNE_TRY(Pipe errors, make_pipe());
  Launch launch;
  for (const std::string& word : words) {
    launch.arguments.push_back(const_cast<char*>(word.c_str()));  // execvp does not write
  }
  launch.arguments.push_back(nullptr);
  launch.folder = folder.string();
  launch.input = nothing.get();
  launch.output = output.write.get();
  launch.errors = errors.write.get();
  FORETUNE_TRY(Pipe failure, make_pipe());
  launch.failure = failure.write.get();
  launch.memory_bytes = static_cast<rlim_t>(limits.memory_bytes);
  const Clock::time_point begin = Clock::now();
  const pid_t pid = start(launch);
  if (pid < 0) {
    return fail(ErrorCode::kIo, words[0], " cannot be started: ", last_error());
  }
  output.write.close();
  errors.write.close();
  failure.write.close();
  int error = 0;
  ssize_t size = 0;
  do {
    size = ::read(failure.read.get(), &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  if (size == sizeof error) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return fail(ErrorCode::kNotFound, words[0],
                " cannot be started: ", std::generic_category().message(error));
  }
  return RunningProcess(pid, std::move(output.read), std::move(errors.read), limits, begin)
      .finish();
}

}  // namespace foretune::command_internal
