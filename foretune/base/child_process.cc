#include "foretune/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigset_t, SIGRTMAX
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "foretune/base/text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every libc's headers

namespace foretune {
namespace {

constexpr std::size_t kTailBytes = 4096;
constexpr std::size_t kReasonBytes = 300;
constexpr std::chrono::milliseconds kFarewell{1000};
constexpr std::chrono::milliseconds kStep{1};

std::string system_error(int number) { return std::system_category().message(number); }

void close_if_open(int& descriptor) {
  if (descriptor >= 0) {
    ::close(descriptor);
    descriptor = -1;
  }
}

int milliseconds_until(ChildProcess::Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000));
}

// Owns file actions and attributes.
struct SpawnPlan {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
};

int spawn(const std::vector<std::string>& command, int channel, int errors, pid_t& pid) {
  SpawnPlan plan;
  posix_spawn_file_actions_adddup2(&plan.actions, channel, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&plan.actions, channel, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&plan.actions, errors, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&plan.actions, STDERR_FILENO + 1);
  sigset_t none;
  sigemptyset(&none);
  sigset_t defaults;
  sigfillset(&defaults);
  sigdelset(&defaults, SIGKILL);
  sigdelset(&defaults, SIGSTOP);
  posix_spawnattr_setsigmask(&plan.attributes, &none);
  posix_spawnattr_setsigdefault(&plan.attributes, &defaults);
  posix_spawnattr_setpgroup(&plan.attributes, 0);
  posix_spawnattr_setflags(&plan.attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // posix_spawn does not write
  }
  arguments.push_back(nullptr);
  return ::posix_spawnp(&pid, arguments[0], &plan.actions, &plan.attributes, arguments.data(),
                        environ);
}

}  // namespace

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? concat("SIG", std::string_view(name)) : concat("signal ", signal);
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::vector<std::string>& command) {
  if (command.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no command was given for the worker");
  }
  std::array<int, 2> channel{-1, -1};
  std::array<int, 2> errors{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel.data()) != 0) {
    return fail(ErrorCode::kIo, "no channel to a worker: ", system_error(errno));
  }
  if (::pipe2(errors.data(), O_CLOEXEC) != 0) {
    const int number = errno;
    close_if_open(channel[0]);
    close_if_open(channel[1]);
    return fail(ErrorCode::kIo, "no channel to a worker: ", system_error(number));
  }
  pid_t pid = -1;
  const int problem = spawn(command, channel[1], errors[1], pid);
  close_if_open(channel[1]);
  close_if_open(errors[1]);
  if (problem != 0) {
    close_if_open(channel[0]);
    close_if_open(errors[0]);
    return fail(ErrorCode::kNotFound, command[0],
                " cannot be started as a worker: ", system_error(problem));
  }
  ::fcntl(errors[0], F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, channel[0], errors[0]));
}

ChildProcess::~ChildProcess() {
  close_if_open(channel_);
  const auto deadline = std::chrono::steady_clock::now() + kFarewell;
  while (!reap(false) && std::chrono::steady_clock::now() < deadline) {
    drain_errors();  // a full pipe would keep it from ending
    std::this_thread::sleep_for(kStep);
  }
  kill();
  close_if_open(errors_);
}

bool ChildProcess::send(std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(channel_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd wait{channel_, POLLOUT, 0};
      if (::poll(&wait, 1, milliseconds_until(deadline)) == 0) {
        return false;
      }
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

ChildProcess::Read ChildProcess::receive(std::vector<std::byte>& buffer, Deadline deadline) {
  std::array<std::byte, 16384> chunk;
  for (;;) {
    std::array<pollfd, 2> wait{pollfd{channel_, POLLIN, 0}, pollfd{errors_, POLLIN, 0}};
    const int ready = ::poll(wait.data(), wait.size(), milliseconds_until(deadline));
    if (ready == 0) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return Read::kTimedOut;
      }
      continue;
    }
    if (ready < 0) {
      if (errno != EINTR) {
        return Read::kEnded;
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        return Read::kTimedOut;
      }
      continue;
    }
    if (wait[1].revents != 0) {
      drain_errors();
    }
    if (wait[0].revents != 0) {
      const ssize_t count = ::recv(channel_, chunk.data(), chunk.size(), MSG_DONTWAIT);
      if (count > 0) {
        buffer.insert(buffer.end(), chunk.begin(), chunk.begin() + count);
        return Read::kData;
      }
      if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        return Read::kEnded;
      }
    } else if (std::chrono::steady_clock::now() >= deadline) {
      return Read::kTimedOut;  // chatter on standard error is no sign of life
    }
  }
}

void ChildProcess::drain_errors() {
  std::array<char, 4096> chunk;
  while (errors_ >= 0) {
    const ssize_t count = ::read(errors_, chunk.data(), chunk.size());
    if (count > 0) {
      error_tail_.append(chunk.data(), static_cast<std::size_t>(count));
      if (error_tail_.size() > kTailBytes) {
        error_tail_.erase(0, error_tail_.size() - kTailBytes);
      }
    } else if (count == 0) {
      close_if_open(errors_);
    } else if (errno != EINTR) {
      return;
    }
  }
}

bool ChildProcess::reap(bool wait) {
  while (!reaped_) {
    const pid_t done = ::waitpid(pid_, &status_, wait ? 0 : WNOHANG);
    if (done == 0) {
      return false;
    }
    // ECHILD: somebody ignores SIGCHLD, and the status is lost.
    if (done == pid_ || (done < 0 && errno != EINTR)) {
      reaped_ = true;
    }
  }
  return true;
}

void ChildProcess::kill() {
  if (reap(false)) {
    return;
  }
  killed_ = true;
  ::kill(-pid_, SIGKILL);  // with all processes that it has started
  ::kill(pid_, SIGKILL);
  reap(true);
}

std::string ChildProcess::obituary() {
  const auto deadline = std::chrono::steady_clock::now() + kFarewell;
  while (!reap(false) && std::chrono::steady_clock::now() < deadline) {
    drain_errors();
    std::this_thread::sleep_for(kStep);
  }
  kill();
  drain_errors();
  std::string text;
  if (killed_) {
    text = "stopped answering";
  } else if (WIFSIGNALED(status_)) {
    text = concat("was ended by ", signal_name(WTERMSIG(status_)));
  } else {
    text = concat("ended with exit code ", WEXITSTATUS(status_));
  }
  std::string_view words = trim(error_tail_);
  if (words.size() > kReasonBytes) {
    words.remove_prefix(words.size() - kReasonBytes);
  }
  if (!words.empty()) {
    text += concat(": ", words);
    std::replace(text.begin(), text.end(), '\n', ' ');
  }
  return text;
}

}  // namespace foretune
