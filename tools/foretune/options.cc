#include "tools/foretune/options.h"

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

std::string default_of(const Option::Target& target) {
  struct Visitor {
    std::string operator()(const bool* /*value*/) const { return {}; }
    std::string operator()(const std::int64_t* value) const { return concat(*value); }
    std::string operator()(const double* value) const { return concat(*value); }
    std::string operator()(const std::string* value) const { return *value; }
    std::string operator()(const std::vector<std::string>* value) const {
      return join(*value, " ");
    }
    std::string operator()(const std::optional<std::int64_t>* value) const {
      return *value ? concat(**value) : std::string();
    }
    std::string operator()(const std::optional<double>* value) const {
      return *value ? concat(**value) : std::string();
    }
  };
  return std::visit(Visitor{}, target);
}

// "1e9" and "1000000000" are both welcome where a whole number is wanted.
std::optional<std::int64_t> whole_number(const std::string& text) {
  if (const auto value = parse_int(text)) {
    return value;
  }
  const auto value = parse_double(text);
  // Within the bounds first: nothing else may be made an integer.
  if (value && *value > -9e15 && *value < 9e15 &&
      *value == static_cast<double>(static_cast<std::int64_t>(*value))) {
    return static_cast<std::int64_t>(*value);
  }
  return std::nullopt;
}

class Assign {
 public:
  Assign(const Option& option, const std::vector<std::string>& values)
      : option_(option), values_(values) {}

  Status operator()(bool* target) const {
    *target = true;
    return {};
  }
  Status operator()(std::int64_t* target) const {
    FORETUNE_TRY(*target, integer());
    return {};
  }
  Status operator()(std::optional<std::int64_t>* target) const {
    FORETUNE_TRY(*target, integer());
    return {};
  }
  Status operator()(double* target) const {
    FORETUNE_TRY(*target, number());
    return {};
  }
  Status operator()(std::optional<double>* target) const {
    FORETUNE_TRY(*target, number());
    return {};
  }
  Status operator()(std::string* target) const {
    *target = values_.back();
    return {};
  }
  Status operator()(std::vector<std::string>* target) const {
    *target = values_;
    return {};
  }

 private:
  Result<std::int64_t> integer() const {
    const auto value = whole_number(values_.back());
    if (!value) {
      return fail(ErrorCode::kInvalidArgument, "--", option_.name, ": '", values_.back(),
                  "' is not a whole number");
    }
    return in_range(*value);
  }
  Result<double> number() const {
    const auto value = parse_double(values_.back());
    if (!value || !(*value >= -1e300 && *value <= 1e300)) {
      return fail(ErrorCode::kInvalidArgument, "--", option_.name, ": '", values_.back(),
                  "' is not a number");
    }
    return in_range(*value);
  }
  template <class Number>
  Result<Number> in_range(Number value) const {
    if (option_.minimum && value < static_cast<Number>(*option_.minimum)) {
      return fail(ErrorCode::kInvalidArgument, "--", option_.name, " is ", value,
                  "; it must be at least ", *option_.minimum);
    }
    if (option_.maximum && value > static_cast<Number>(*option_.maximum)) {
      return fail(ErrorCode::kInvalidArgument, "--", option_.name, " is ", value,
                  "; it must be at most ", *option_.maximum);
    }
    return value;
  }

  const Option& option_;
  const std::vector<std::string>& values_;
};

Status assign(const Option& option, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (!option.choices.empty() &&
        std::find(option.choices.begin(), option.choices.end(), value) == option.choices.end()) {
      return fail(ErrorCode::kInvalidArgument, "--", option.name, ": '", value, "' is not one of ",
                  join(option.choices, ", "));
    }
  }
  return std::visit(Assign(option, values), option.target);
}

using Collected = std::vector<std::pair<Option*, CLI::Option*>>;

// "--eval_size" is "--eval-size", as the scripts have it that people come from.
std::string with_underscores(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void declare(CLI::App& app, OptionList& list, Collected& collected) {
  for (Option& option : list.options()) {
    std::string flag = option.positional ? option.name : concat("--", option.name);
    if (!option.other_name.empty()) {
      flag += concat(",--", option.other_name);
    }
    if (!option.positional && option.name.find('-') != std::string::npos) {
      flag += concat(",--", with_underscores(option.name));
    }
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

// The nearest known option, for a mistyped one. The dashes, which all have, bring none nearer.
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

void OptionList::section(std::string title, Condition condition) {
  section_ = std::move(title);
  if (!condition.phrase.empty()) {
    section_ += concat(", only ", condition.phrase);
  }
  condition_ = std::move(condition);
}

Option& OptionList::add(std::string name, Option::Target target, std::string value_name,
                        std::string help) {
  Option option{};
  option.name = std::move(name);
  option.value_name = std::move(value_name);
  option.help = std::move(help);
  option.target = target;
  option.default_text = default_of(target);
  option.section = section_;
  if (!condition_.phrase.empty()) {
    option.conditions.push_back(condition_);
  }
  options_.push_back(std::move(option));
  return options_.back();
}

tl::unexpected<Error> without_effect(const std::vector<std::string>& names,
                                     std::string_view phrase) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    list += concat(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", names[i]);
  }
  return fail(ErrorCode::kInvalidArgument, list, names.size() == 1 ? " has" : " have",
              " an effect only ", phrase);
}

Status check_effects(const OptionList& list) {
  std::vector<std::string> names;
  std::string_view phrase;
  for (const Option& option : list.options()) {
    const auto broken = std::find_if(option.conditions.begin(), option.conditions.end(),
                                     [](const Condition& condition) { return !condition.holds(); });
    if (option.given && broken != option.conditions.end() &&
        (names.empty() || broken->phrase == phrase)) {
      phrase = broken->phrase;
      names.push_back(concat("--", option.name));
    }
  }
  return names.empty() ? Status() : without_effect(names, phrase);
}

Status set_option(OptionList& list, std::string_view name, const std::vector<std::string>& values) {
  std::vector<std::string> names;
  for (Option& option : list.options()) {
    if (option.name == name) {
      option.given = true;
      return values.empty() && !std::holds_alternative<std::vector<std::string>*>(option.target)
                 ? Status(fail(ErrorCode::kInvalidArgument, "--", name, " needs a value"))
                 : assign(option, values);
    }
    names.push_back(option.name);
  }
  const std::string near = nearest_word(name, names);
  return fail(ErrorCode::kInvalidArgument, "there is no option '", name, "'",
              near.empty() ? std::string() : concat("; did you mean '", near, "'?"));
}

void GlobalOptions::visit(OptionList& list) {
  list.section("Global options");
  list.add("seed", seed, "N", "seed of every random choice");
  list.add("format", format, "FORMAT", "also write the data set in this format beside the journal")
      .choose({"foretune", "csv", "json", "msgpack"})
      .only({"with collect and create-validation",
             [this] { return subcommand == nullptr || subcommand->exports; }});
  list.add_switch("quiet", quiet, "print results and problems only");
  list.add_switch("no-color", no_color, "no colours (also when NO_COLOR is set)");
  list.add("plugin", plugins, "FILE",
           "load problem types, families, features and strategies of others; may be repeated")
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
    // The fields of a plug-in's problem type become options, and may be called like others.
    return fail(loaded_plugins().empty() ? ErrorCode::kInternal : ErrorCode::kMismatch,
                "two options of ", subcommand == nullptr ? "foretune" : subcommand->name,
                " have one name: ", error.what());
  }
  // CLI11 takes the arguments last first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
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
      FORETUNE_TRY_STATUS(assign(*option, declared->results()));
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
