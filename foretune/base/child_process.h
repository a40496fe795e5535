// Runs a child program, such as a worker, with one two-way channel (its standard input and output);
// the tail of its standard error is kept. The child is started by posix_spawn, never forked from a
// process with state. It has a process group of its own, so that Ctrl-C in a terminal reaches only
// us. It inherits no other file descriptor, so that it can never hold somebody's lock.
// Thread safety: one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretune/base/result.h"

namespace foretune {

class ChildProcess {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  enum class Read : std::uint8_t { kData, kEnded, kTimedOut };

  // Errors: kInvalidArgument for an empty command, kNotFound when it cannot be started.
  static Result<std::unique_ptr<ChildProcess>> start(const std::vector<std::string>& command);
  // Closes the channel, gives the child a moment to end, then kills it.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Returns true when all bytes went out before the deadline, false when the child is gone or
  // stuck.
  bool send(std::span<const std::byte> bytes, Deadline deadline);
  // Waits for bytes from the child and appends them to `buffer`.
  Read receive(std::vector<std::byte>& buffer, Deadline deadline);

  // Kills the child with its process group and waits for it. Does nothing when it is gone.
  void kill();
  // Waits for a child that closed its channel (killing it if it stays), then says how it ended:
  // "was ended by SIGSEGV: last words".
  std::string obituary();

 private:
  ChildProcess(pid_t pid, int channel, int errors)
      : pid_(pid), channel_(channel), errors_(errors) {}
  // Reads the standard error that is available, keeping the tail.
  void drain_errors();
  bool reap(bool wait);

  pid_t pid_;
  int channel_;
  int errors_;
  bool reaped_ = false;
  bool killed_ = false;
  int status_ = 0;
  std::string error_tail_;
};

// Returns "SIGSEGV" for 11, "signal 77" for a signal without a name here.
std::string signal_name(int signal);

}  // namespace foretune
