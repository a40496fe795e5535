#include "tools/foretune/command_line.h"

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "foretune/base/text.h"
#include "foretune/plugin/loader/plugin_loader.h"
#include "foretune/version.h"

namespace foretune::cli {
namespace {

using Collected = std::vector<std::pair<Option*, CLI::Option*>>;

// Returns the flags of a name: also "--eval_size" for "--eval-size", since users' older scripts
// write it.
std::string flags_named(std::string name) {
  std::string flags = concat(",--", name);
  if (name.find('-') != std::string::npos) {
    std::replace(name.begin(), name.end(), '-', '_');
    flags += concat(",--", name);
  }
  return flags;
}

std::string names_of(const Option& option) {
  std::string names = option.positional ? concat(",", option.name) : std::string();
  if (!option.positional || option.has_flag) {
    names += flags_named(option.name);
  }
  if (option.letter != '\0') {
    names += concat(",-", option.letter);
  }
  if (!option.other_name.empty()) {
    names += flags_named(option.other_name);
  }
  for (const std::string& name : option.accepted_names) {
    names += name.starts_with('-') ? std::string() : flags_named(name);
  }
  return names.substr(1);
}

void declare(CLI::App& app, OptionList& list, Collected& collected) {
  for (Option& option : list.options()) {
    const std::string flag = names_of(option);
    CLI::Option* declared = nullptr;
    if (option.is_switch()) {
      declared = app.add_flag(flag, option.help);
    } else {
      declared = app.add_option(flag, option.help);
      const bool many = std::holds_alternative<std::vector<std::string>*>(option.target);
      const bool at_once = many && !option.one_by_one;
      declared->expected(1, at_once ? CLI::detail::expected_max_vector_size : 1);
      declared->allow_extra_args(at_once);
      declared->multi_option_policy(many ? CLI::MultiOptionPolicy::TakeAll
                                         : CLI::MultiOptionPolicy::Throw);
    }
    collected.emplace_back(&option, declared);
  }
}

// Returns the nearest known option for a mistyped one. Dashes, which all options have, do not
// count.
std::string unknown_option(const std::string& argument, const OptionList& global,
                           const OptionList* local) {
  const std::string_view word = std::string_view(argument).substr(2);
  std::vector<std::string> names;
  for (const OptionList* list : {&global, local}) {
    for (const Option& option : list == nullptr ? std::deque<Option>() : list->options()) {
      if (!option.positional) {
        names.push_back(option.name);
      } else if (word == option.name) {
        return concat("unknown option '", argument, "': it is given without this name (",
                      option.help, ")");
      }
    }
  }
  const std::string near = nearest_word(word, names);
  return concat("unknown option '", argument, "'",
                near.empty() ? std::string() : concat("; did you mean '--", near, "'?"));
}

}  // namespace

void GlobalOptions::visit(OptionList& list) {
  list.section("Global options");
  list.add("seed", seed, "N", "seed of all random choices");
  list.add("format", format, "FORMAT", "also write the data set in this format beside the journal")
      .choose({"foretune", "csv", "json", "msgpack"})
      .only({"with collect and create-validation",
             [this] { return subcommand == nullptr || subcommand->exports; }});
  list.add_switch("quiet", quiet, "print results and problems only");
  list.add_switch("no-color", no_color, "print without colours (also when NO_COLOR is set)");
  list.add("plugin", plugins, "FILE",
           "load a plug-in: a shared library with families, problem types, feature tables or "
           "strategies, or a TOML file that describes a program with knobs (`foretune help plugin` "
           "prints one); may be repeated")
      .repeat();
}

int exit_code(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      return kExitUsage;
    case ErrorCode::kNotFound:
    case ErrorCode::kCorrupt:
    case ErrorCode::kMismatch:
      return kExitBadInput;
    case ErrorCode::kUnsupported:
      return kExitUnsupported;
    case ErrorCode::kCancelled:
      return kExitInterrupted;
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      return kExitFailure;
  }
  return kExitFailure;
}

namespace {

const Subcommand* find_subcommand(std::string_view name) {
  for (const Subcommand& subcommand : subcommands()) {
    if (subcommand.name == name) {
      return &subcommand;
    }
  }
  return nullptr;
}

// The subcommand is the first argument that is neither a global option nor its value.
Result<const Subcommand*> locate_subcommand(const std::vector<std::string>& arguments,
                                            const OptionList& global_list) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.rfind("--", 0) != 0) {
      const Subcommand* subcommand = find_subcommand(argument);
      if (subcommand != nullptr) {
        return subcommand;
      }
      std::vector<std::string> names;
      for (const Subcommand& known : subcommands()) {
        names.emplace_back(known.name);
      }
      const std::string near = nearest_word(argument, names);
      return fail(ErrorCode::kInvalidArgument, "unknown subcommand '", argument, "'",
                  near.empty() ? std::string() : concat("; did you mean '", near, "'?"));
    }
    bool known = false;
    for (const Option& option : global_list.options()) {
      const std::string flag = concat("--", option.name);
      known = known || argument == flag || argument.rfind(flag + "=", 0) == 0;
      if (argument == flag && !option.is_switch()) {
        ++i;
      }
    }
    if (!known) {
      return fail(ErrorCode::kInvalidArgument, unknown_option(argument, global_list, nullptr));
    }
  }
  return nullptr;
}

// Returns "--gpus=2" for "-ng=2": CLI11 knows no short names of two letters.
std::string with_long_name(const std::string& argument, const OptionList* list) {
  if (list == nullptr || !argument.starts_with('-') || argument.starts_with("--")) {
    return argument;
  }
  const std::size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  for (const Option& option : list->options()) {
    const auto& names = option.accepted_names;
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return concat("--", option.name,
                    equals == std::string::npos ? std::string() : argument.substr(equals));
    }
  }
  return argument;
}

Status parse_with_cli11(const std::vector<std::string>& arguments, OptionList& global_list,
                        OptionList* local_list, const Subcommand* subcommand) {
  CLI::App app("foretune");
  app.set_help_flag();
  app.fallthrough();
  Collected collected;
  try {
    declare(app, global_list, collected);
    if (subcommand != nullptr) {
      CLI::App* child = app.add_subcommand(std::string(subcommand->name));
      child->set_help_flag();
      declare(*child, *local_list, collected);
      for (const Option& option : global_list.options()) {
        if (child->get_option_no_throw(concat("--", option.name)) != nullptr) {
          throw CLI::OptionAlreadyAdded(option.name);
        }
      }
    }
  } catch (const CLI::ConstructionError& error) {
    // The fields of a plug-in's problem type become options, whose names may collide with others.
    return fail(loaded_plugins().empty() ? ErrorCode::kInternal : ErrorCode::kMismatch,
                "two options of ", subcommand == nullptr ? "foretune" : subcommand->name,
                " have one name: ", error.what());
  }
  // CLI11 takes the arguments last first.
  std::vector<std::string> reversed;
  for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument) {
    reversed.push_back(with_long_name(*argument, local_list));
  }
  try {
    app.parse(reversed);
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> left = app.remaining(true);
    const std::string first = left.empty() ? std::string("?") : left.front();
    if (first.rfind("--", 0) == 0) {
      return fail(ErrorCode::kInvalidArgument, unknown_option(first, global_list, local_list));
    }
    return fail(ErrorCode::kInvalidArgument, "unexpected argument '", first, "'");
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::kInvalidArgument, error.what());
  }
  for (const auto& [option, declared] : collected) {
    option->given = declared->count() > 0;
    if (option->given) {
      FORETUNE_TRY_STATUS(assign_option(*option, declared->results()));
    } else if (option->required) {
      return fail(ErrorCode::kInvalidArgument, option->positional ? "" : "--", option->name,
                  " is required");
    }
  }
  for (const OptionList* list : {&global_list, local_list}) {
    if (list != nullptr) {
      FORETUNE_TRY_STATUS(check_effects(*list));
    }
  }
  return {};
}

std::vector<std::string> unused_options(const OptionList& list) {
  std::vector<std::string> warnings;
  for (const Option& option : list.options()) {
    if (option.given && !option.unused_because.empty()) {
      warnings.push_back(concat("--", option.name, " has no effect: ", option.unused_because));
    }
  }
  return warnings;
}

}  // namespace

Status load_plugins(const std::vector<std::string>& arguments) {
  constexpr std::string_view kWithValue = "--plugin=";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(kWithValue)) {
      FORETUNE_TRY_STATUS(load_plugin(arguments[i].substr(kWithValue.size())));
    } else if (arguments[i] == "--plugin" && i + 1 < arguments.size()) {
      FORETUNE_TRY_STATUS(load_plugin(arguments[++i]));
    }
  }
  return {};
}

std::vector<std::string> worker_command(std::string program) {
  std::vector<std::string> command{std::move(program), "worker"};
  for (const LoadedPlugin& plugin : loaded_plugins()) {
    command.insert(command.end(), {"--plugin", plugin.path.string()});
  }
  return command;
}

Result<ParsedCommand> parse_command_line(const std::vector<std::string>& arguments,
                                         GlobalOptions& global) {
  OptionList global_list;
  global.visit(global_list);
  bool wants_help = arguments.empty();
  for (const std::string& argument : arguments) {
    if (argument == "--version") {
      return ParsedCommand{.print = concat("foretune ", kVersion, "\n")};
    }
    wants_help = wants_help || argument == "--help" || argument == "-h" || argument == "help";
    if (argument == "--no-color") {
      global.no_color = true;
    }
  }
  if (wants_help) {
    if (!arguments.empty() && arguments.back() == "plugin") {
      return ParsedCommand{.print = std::string(plugin_example())};
    }
    const Subcommand* about = nullptr;
    for (const std::string& argument : arguments) {
      about = about == nullptr ? find_subcommand(argument) : about;
    }
    return ParsedCommand{.subcommand = about, .print = help_text(about, !global.no_color)};
  }
  FORETUNE_TRY(const Subcommand* const subcommand, locate_subcommand(arguments, global_list));
  if (subcommand == nullptr) {
    FORETUNE_TRY_STATUS(parse_with_cli11(arguments, global_list, nullptr, nullptr));
    return fail(ErrorCode::kInvalidArgument, "no subcommand given; see foretune --help");
  }
  global.subcommand = subcommand;
  OptionList local_list;
  ParsedCommand parsed{.subcommand = subcommand, .run = subcommand->prepare(local_list)};
  auto status = parse_with_cli11(arguments, global_list, &local_list, subcommand);
  if (!status) {
    return fail(status.error().code, status.error().message, " (see foretune ", subcommand->name,
                " --help)");
  }
  parsed.warnings = unused_options(local_list);
  return parsed;
}

}  // namespace foretune::cli
