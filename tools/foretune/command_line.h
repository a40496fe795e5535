// The command line: subcommands with their options (foretune/workflow/options.h), parsing, help.
// Thread safety: used by one thread at start.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/result.h"
#include "foretune/workflow/invocation.h"
#include "foretune/workflow/options.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {

// The commands put the use cases of this namespace on the command line.
using namespace workflow;  // NOLINT(google-build-using-namespace)

// Options that every subcommand understands, before or after its name.
struct GlobalOptions {
  std::int64_t seed = 42;
  std::string format = "foretune";
  bool quiet = false;
  bool no_color = false;
  std::vector<std::string> plugins;               // load_plugins() has loaded them
  const struct Subcommand* subcommand = nullptr;  // once it is known
  void visit(OptionList& list);
};

// One subcommand.
struct Subcommand {
  std::string_view name;
  std::string_view summary;      // one line
  std::string_view description;  // paragraphs for --help
  std::string_view example;
  bool hidden;
  // Declares options on `list` and returns what runs once they are parsed.
  std::function<int(const Invocation&)> (*prepare)(OptionList& list);
  bool exports = false;  // writes the format of --format
};
std::span<const Subcommand> subcommands();

// Makes prepare() from an options struct and a function of it and the invocation, which returns the
// exit code or the error to report.
template <class Options, auto run>
std::function<int(const Invocation&)> prepare_with(OptionList& list) {
  auto options = std::make_shared<Options>();
  options->visit(list);
  return [options](const Invocation& invocation) {
    const Result<int> result = run(*options, invocation);
    return result ? *result : report_error(result.error());
  };
}

// The result of parsing: a command to run, or a text to print.
struct ParsedCommand {
  const Subcommand* subcommand = nullptr;
  std::function<int(const Invocation&)> run{};
  std::string print{};  // help or version: printed to standard output, exit code 0
  std::vector<std::string> warnings{};
};
// Loads the files of --plugin. They add options, so this comes before options are declared or help
// is printed. Errors: those of load_plugin().
Status load_plugins(const std::vector<std::string>& arguments);
// Returns the command of a worker that knows the same plug-ins: program, subcommand, their files.
std::vector<std::string> worker_command(std::string program);
Result<ParsedCommand> parse_command_line(const std::vector<std::string>& arguments,
                                         GlobalOptions& global);

std::string help_text(const Subcommand* subcommand, bool color);
// Returns a TOML file that describes a program with flags, with comments: `foretune help plugin`.
std::string_view plugin_example();
// Returns the completion script for "bash", "zsh" or "fish".
Result<std::string> completion_script(std::string_view shell);

// Exit codes, also printed by --help.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadInput = 3;
inline constexpr int kExitUnsupported = 4;
inline constexpr int kExitRejected = 5;
inline constexpr int kExitInterrupted = 130;
int exit_code(const Error& error);

}  // namespace foretune::cli
