// The command line: parses, dispatches, and turns an error into one sentence and an exit code.
#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "foretune/base/text.h"
#include "tools/foretune/command_line.h"
#include "tools/foretune/terminal.h"

namespace {

std::string own_path(const char* argv0) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(argv0) : path.string();
}

std::string quoted_command(const std::vector<std::string>& arguments) {
  std::string out = "foretune";
  for (const std::string& argument : arguments) {
    const bool plain =
        !argument.empty() && argument.find_first_of(" '\"\\$|&;<>()") == std::string::npos;
    out += plain ? foretune::concat(" ", argument) : foretune::concat(" '", argument, "'");
  }
  return out;
}

int run(const std::vector<std::string>& arguments, const char* argv0) {
  const foretune::Status loaded = foretune::cli::load_plugins(arguments);
  if (!loaded) {
    return foretune::cli::report_error(loaded.error());
  }
  foretune::cli::GlobalOptions global;
  const auto parsed = foretune::cli::parse_command_line(arguments, global);
  foretune::cli::configure_terminal({.quiet = global.quiet, .color = !global.no_color});
  if (!parsed) {
    return foretune::cli::report_error(parsed.error());
  }
  if (!parsed->print.empty()) {
    const bool color = foretune::cli::output_has_color();
    foretune::cli::print(color || parsed->print.find('\033') == std::string::npos
                             ? parsed->print
                             : foretune::cli::help_text(parsed->subcommand, false));
    return foretune::cli::kExitOk;
  }
  for (const std::string& warning : parsed->warnings) {
    foretune::cli::warn(warning);
  }
  foretune::cli::install_signal_handlers();
  const foretune::workflow::Invocation invocation{
      .seed = static_cast<std::uint64_t>(global.seed),
      .format = global.format,
      .worker_command = foretune::cli::worker_command(own_path(argv0)),
      .command_line = quoted_command(arguments),
      .on_remark = &foretune::cli::remark,
      .on_warning = &foretune::cli::warn};
  return parsed->run(invocation);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc), argv[0]);
  } catch (const std::exception& error) {
    // Our code does not throw; this is memory running out, or a defect in a library.
    return foretune::cli::report_error(
        {foretune::ErrorCode::kInternal, foretune::concat("unexpected failure: ", error.what())});
  }
}
