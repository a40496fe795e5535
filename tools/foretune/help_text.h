// The texts of options and exit codes that the help, the reference pages and the manual pages
// share. Thread safety: used by one thread at start.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/workflow/options.h"
#include "tools/foretune/command_line.h"

namespace foretune::cli {

inline constexpr std::size_t kHelpWidth = 96;

// Returns the words of the text in lines of at most `width` columns, all but the first indented.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width = kHelpWidth);
// Returns the option with its other names and its value: "--output FILE".
std::string invocation_of(const Option& option);
// Returns the help with the condition of the option's effect, unless `heading` states it.
std::string details_of(const Option& option, std::string_view heading);
// Returns the heading that the option stands under, for one without a section this.
inline constexpr std::string_view kNoSection = "Options";
std::string section_of(const Option& option);
// Returns the headings of the options that help lists, each once, in their order.
std::vector<std::string> sections_of(const OptionList& list);
// Returns the command with its positional arguments: "foretune export [options] model".
std::string usage_of(const Subcommand& subcommand, const OptionList& list);

struct ExitCode {
  std::string_view code;
  std::string_view meaning;
};
std::span<const ExitCode> exit_codes();

}  // namespace foretune::cli
