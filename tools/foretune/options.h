// Options of a subcommand: one struct whose visit() names every field once. Parser, help, shell
// completion and documentation all come from that list; an unknown option is an error.
//
//   struct PredictOptions {
//     std::string model;
//     std::int64_t top = 5;
//     bool measure = false;
//     std::int64_t rounds = 15;
//     void visit(OptionList& list) {
//       list.add("model", model, "FILE", "model file").require();
//       list.add("top", top, "N", "configs to list");
//       list.add_switch("measure", measure, "time them");
//       list.add("rounds", rounds, "N", "of timing them")
//           .only({"with --measure", [this] { return measure; }});
//     }
//   };
//
// Thread safety: used by one thread at start.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "foretune/base/result.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {

// When an option has an effect: as it is said, "with --active", and as what is asked once all
// options have their values. The default one always holds.
struct Condition {
  std::string phrase;
  std::function<bool()> holds;
};

struct Option {
  using Target =
      std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                   std::optional<std::int64_t>*, std::optional<double>*>;
  std::string name;        // without the dashes
  std::string other_name;  // understood as well; may be empty
  std::string value_name;  // "N", "FILE"; empty for a switch
  std::string help;
  Target target;
  std::string default_text;  // shown in help; empty when there is none
  std::vector<std::string> choices;
  bool required = false;
  bool positional = false;
  bool hidden = false;
  bool one_by_one = false;  // a list of which each value has the option's name before it
  bool given = false;       // by the user
  std::string section;      // heading in the help, with its condition; empty for "Options"
  std::vector<Condition> conditions;  // giving the option where one does not hold is an error
  // Why the option has no effect at all, though other programs' command lines have it; else empty.
  std::string unused_because;
  std::optional<std::int64_t> minimum;
  std::optional<std::int64_t> maximum;

  Option& require() {
    required = true;
    return *this;
  }
  Option& choose(std::vector<std::string> values) {
    choices = std::move(values);
    return *this;
  }
  Option& at_least(std::int64_t value) {
    minimum = value;
    return *this;
  }
  Option& at_most(std::int64_t value) {
    maximum = value;
    return *this;
  }
  Option& also(std::string name_too) {
    other_name = std::move(name_too);
    return *this;
  }
  Option& repeat() {
    one_by_one = true;
    return *this;
  }
  Option& hide() {
    hidden = true;
    return *this;
  }
  Option& only(Condition when) {
    conditions.push_back(std::move(when));
    return *this;
  }
  Option& unused(std::string because) {
    unused_because = std::move(because);
    return *this;
  }
  [[nodiscard]] bool is_switch() const { return std::holds_alternative<bool*>(target); }
};

class OptionList {
 public:
  Option& add(std::string name, Option::Target target, std::string value_name, std::string help);
  Option& add_switch(std::string name, bool& target, std::string help) {
    return add(std::move(name), &target, "", std::move(help));
  }
  Option& add(std::string name, std::int64_t& target, std::string value_name, std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  Option& add(std::string name, double& target, std::string value_name, std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  Option& add(std::string name, std::string& target, std::string value_name, std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  Option& add(std::string name, std::vector<std::string>& target, std::string value_name,
              std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  Option& add(std::string name, std::optional<std::int64_t>& target, std::string value_name,
              std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  Option& add(std::string name, std::optional<double>& target, std::string value_name,
              std::string help) {
    return add(std::move(name), Option::Target(&target), std::move(value_name), std::move(help));
  }
  // A value without a name, in order of declaration; a list takes all that remain.
  template <class T>
  Option& add_positional(std::string name, T& target, std::string help) {
    Option& option = add(std::move(name), target, "", std::move(help));
    option.positional = true;
    return option;
  }
  // The options that follow stand below the title and have an effect only where `condition` holds.
  void section(std::string title, Condition condition = {});

  [[nodiscard]] const std::deque<Option>& options() const { return options_; }
  [[nodiscard]] std::deque<Option>& options() { return options_; }

 private:
  std::deque<Option> options_;
  std::string section_;
  Condition condition_;
};

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
struct Invocation {
  const GlobalOptions* global = nullptr;
  std::vector<std::string> worker_command;  // what starts a worker
  std::string command_line;                 // as typed, for records
};
struct Subcommand {
  std::string_view name;
  std::string_view summary;      // one line
  std::string_view description;  // paragraphs for --help
  std::string_view example;
  bool hidden;
  // Declares options on `list` and returns what runs once they are parsed.
  std::function<int(const Invocation&)> (*prepare)(OptionList& list);
  bool exports = false;  // --format says how
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

// Gives the option called `name` these values, one unless it is a list, as the command line would.
// Errors: kInvalidArgument for an unknown name (with the nearest) and for values without sense.
Status set_option(OptionList& list, std::string_view name, const std::vector<std::string>& values);
// Once all options have their values. Errors: kInvalidArgument for given ones without an effect.
Status check_effects(const OptionList& list);
// The same for what a list cannot know: `names` with their dashes.
tl::unexpected<Error> without_effect(const std::vector<std::string>& names,
                                     std::string_view phrase);

// What parsing led to: something to run, or a text to print.
struct ParsedCommand {
  const Subcommand* subcommand = nullptr;
  std::function<int(const Invocation&)> run{};
  std::string print{};  // help or version: printed to standard output, exit code 0
  std::vector<std::string> warnings{};
};
// Loads the files of --plugin, which make other options, and therefore before these are declared or
// a text of help is made. Errors: those of load_plugin().
Status load_plugins(const std::vector<std::string>& arguments);
// Returns the command of a worker that knows the same plug-ins: program, subcommand, their files.
std::vector<std::string> worker_command(std::string program);
Result<ParsedCommand> parse_command_line(const std::vector<std::string>& arguments,
                                         GlobalOptions& global);

std::string help_text(const Subcommand* subcommand, bool color);
// Completion script for "bash", "zsh" or "fish".
Result<std::string> completion_script(std::string_view shell);
// The Markdown reference of all subcommands, from the same list.
std::string markdown_reference();

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
