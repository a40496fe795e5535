// One run of a program, from its start to its end: with limits, in a process group of its own, its
// output kept. There is no shell: words go to execvp as they are.
//
//   FORETUNE_TRY(const ProcessEnd end, run_process({"gcc", "--version"}, folder, {.time_s = 10}));
//   if (!end.is_good()) return concat("gcc ", end.text());
//
// The program gets an empty standard input and none of our other files. When it ends, is too slow
// or writes too much, its whole group is killed; it dies with the thread that started it.
// Internal to the module. Thread safety: a free function; any number of threads at once.
// Cost: one vfork, about half a millisecond beside the program's own start.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "foretune/base/result.h"

namespace foretune::command_internal {

struct ProcessLimits {
  double time_s = 60;
  std::int64_t memory_bytes = 0;  // of address space; 0: as much as there is
  std::int64_t output_bytes = std::int64_t{1} << 20U;
};

struct ProcessEnd {
  enum class Kind : std::uint8_t { kExited, kSignalled, kTimedOut, kTooMuchOutput };
  Kind kind = Kind::kExited;
  int code = 0;        // exit code or signal
  double wall_ns = 0;  // from before its start until it had ended
  std::string output;  // standard output
  std::string errors;  // the beginning of standard error
  ProcessLimits limits;

  [[nodiscard]] bool is_good() const { return kind == Kind::kExited && code == 0; }
  // How it ended, with the first line of standard error: "ended with exit code 3: no such file".
  [[nodiscard]] std::string text() const;
};

// Errors: kNotFound for a program or a folder that is not there, kInvalidArgument for no words,
// kIo.
Result<ProcessEnd> run_process(const std::vector<std::string>& words,
                               const std::filesystem::path& folder, const ProcessLimits& limits);

}  // namespace foretune::command_internal
