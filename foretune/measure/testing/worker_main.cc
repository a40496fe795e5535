// A worker for tests: the null family behind run_worker, and several kinds of broken workers.
//   measure_test_worker null | exit | garbage | chatty | open-files | pid-file PATH
//   measure_test_worker parent PATH    measures a hanging config through a worker "pid-file PATH"
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/families/null/null.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

Result<std::unique_ptr<Family>> null_only(std::string_view name, const FamilyOptions& options) {
  if (name != "null") {
    return fail(ErrorCode::kNotFound, "there is no family '", name, "' here");
  }
  return make_null(options);
}

Result<std::unique_ptr<Family>> chatty_null(std::string_view name, const FamilyOptions& options) {
  std::puts("libraries say the strangest things");
  std::fflush(stdout);
  return null_only(name, options);
}

Result<std::unique_ptr<Family>> count_open_files(std::string_view /*name*/,
                                                 const FamilyOptions& /*options*/) {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return fail(ErrorCode::kUnsupported, "open files: ", std::distance(begin(files), end(files)));
}

int measure_a_hang(const std::string& self, const std::string& pid_file) {
  const WorkerSetup setup{.worker_command = {self, "pid-file", pid_file},
                          .family = "null",
                          .family_options = {.parameters = {{"hang", "1"}}}};
  Protocol protocol;
  protocol.time_limit_s = 60;
  auto measurer = make_worker_measurer(setup, protocol, {});
  auto family = make_null(setup.family_options);
  if (!measurer || !family) {
    return 1;
  }
  const Problem problem = GemmProblem::create({.m = 64, .n = 64, .k = 64})->to_problem();
  auto space = (*family)->space(problem);
  (*measurer)->measure({.problem = problem, .config = (*space)->enumerable()->unrank(0)});
  return 0;
}

int run_mode(const std::vector<std::string>& arguments) {
  const std::string mode = arguments.size() > 1 ? arguments[1] : std::string("null");
  const std::string path = arguments.size() > 2 ? arguments[2] : std::string();
  if (mode == "exit") {
    std::fputs("the library libmissing.so was not found\n", stderr);
    return 7;
  }
  if (mode == "garbage") {
    std::puts("Hello, this is an interactive program. What is your name?");
    return 0;
  }
  if (mode == "parent") {
    return measure_a_hang(arguments[0], path);
  }
  if (mode == "pid-file") {
    std::ofstream(path + ".new") << ::getpid() << ' ' << ::getpgrp() << '\n';
    std::filesystem::rename(path + ".new", path);
  }
  return run_worker(STDIN_FILENO, STDOUT_FILENO,
                    mode == "chatty"       ? chatty_null
                    : mode == "open-files" ? count_open_files
                                           : null_only);
}

}  // namespace
}  // namespace foretune

int main(int argc, char** argv) {
  return foretune::run_mode(std::vector<std::string>(argv, argv + argc));
}
