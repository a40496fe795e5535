#include "foretune/plugin/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): on_exit
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "foretune/base/child_process.h"
#include "foretune/base/descriptor.h"
#include "foretune/base/system_error.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

using Clock = std::chrono::steady_clock;

// Where the child writes its report: a code, 0 for success, and the sentence.
constexpr int kReport = STDERR_FILENO + 1;

[[noreturn]] void work_in_child(int report, const std::function<Status()>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGINT}) {
    static_cast<void>(::signal(signal, SIG_DFL));
  }
  const int nowhere = ::open("/dev/null", O_RDWR);
  const int kept = ::fcntl(report, F_DUPFD, kReport + 2);
  if (nowhere < 0 || kept < 0) {
    ::_exit(EXIT_FAILURE);
  }
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(nowhere, standard);
  }
  ::dup2(kept, kReport);
  // A lock of ours lasts as long as anyone has the file.
  ::close_range(kReport + 1, ~0U, 0);
  // Runs first of all: what the parent does at its end is not to be done here.
  ::on_exit([](int status, void* /*argument*/) { ::_exit(status); }, nullptr);
  const Status status = work();
  std::string text(1, static_cast<char>(status ? 0 : static_cast<int>(status.error().code)));
  text += status ? std::string() : status.error().message;
  static_cast<void>(write_fully(kReport, std::as_bytes(std::span(text)), "report"));
  ::_exit(0);
}

// Reads the pipe until its end; nothing when that does not come in time.
std::optional<std::string> read_all(int pipe, Clock::time_point deadline) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{pipe, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready == 0) {
      return std::nullopt;
    }
    const ssize_t size = ready < 0 ? ready : ::read(pipe, buffer.data(), buffer.size());
    if (size == 0 || (size < 0 && errno != EINTR)) {
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  }
}

// Returns the state of waitpid(), 0 where somebody else has waited for the child.
int reap(pid_t child) {
  int state = 0;
  while (::waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) {
      return 0;
    }
  }
  return state;
}

Status read_report(std::string_view report) {
  const auto code = static_cast<ErrorCode>(report.front());
  return code == ErrorCode{} ? Status() : fail(code, report.substr(1));
}

}  // namespace

Status try_in_child(std::chrono::milliseconds time_limit, const std::function<Status()>& work) {
  const Clock::time_point deadline = Clock::now() + time_limit;
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::kIo, "there is no pipe to a child: ", last_error());
  }
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return fail(ErrorCode::kIo, "there is no child to try it in: ", last_error());
  }
  if (child == 0) {
    work_in_child(writing.get(), work);
  }
  writing.close();
  const std::optional<std::string> report = read_all(reading.get(), deadline);
  if (!report) {
    ::kill(child, SIGKILL);
    reap(child);
    return fail(ErrorCode::kCorrupt, "it takes longer than ",
                fixed(static_cast<double>(time_limit.count()) / 1000, 1), " s");
  }
  const int state = reap(child);
  if (WIFSIGNALED(state)) {
    return fail(ErrorCode::kCorrupt, "it crashes (", signal_name(WTERMSIG(state)), ")");
  }
  if (report->empty()) {
    return fail(ErrorCode::kCorrupt, "it ends the process (exit code ", WEXITSTATUS(state), ")");
  }
  return read_report(*report);
}

}  // namespace foretune
