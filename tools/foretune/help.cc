// Help and completion texts, all from the option lists.
#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "foretune/base/text.h"
#include "foretune/version.h"
#include "foretune/workflow/problem_arguments.h"
#include "tools/foretune/command_line.h"
#include "tools/foretune/help_text.h"

namespace foretune::cli {

std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  for (const std::string_view word : split_words(text)) {
    if (column != indent && column + 1 + word.size() > width) {
      out += concat("\n", std::string(indent, ' '));
      column = indent;
    }
    if (column != indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string invocation_of(const Option& option) {
  std::string out = option.positional ? option.name : concat("--", option.name);
  if (option.positional && option.has_flag) {
    out += concat(", --", option.name);
  }
  if (option.letter != '\0') {
    out += concat(", -", option.letter);
  }
  if (!option.other_name.empty()) {
    out += concat(", --", option.other_name);
  }
  return option.positional || option.value_name.empty() ? out : concat(out, " ", option.value_name);
}

namespace {

// Returns the phrases that tell a reader something: not that of the heading, not the option itself,
// and of two that say the same the narrower one ("with --model-type gbdt").
std::vector<std::string> conditions_of(const Option& option, std::string_view heading) {
  std::vector<std::string> out;
  for (const Condition& condition : option.conditions) {
    const std::string& phrase = condition.phrase;
    const bool has_narrower = std::any_of(
        option.conditions.begin(), option.conditions.end(),
        [&](const Condition& other) { return phrase.starts_with(concat(other.phrase, " or ")); });
    if (!heading.ends_with(phrase) && phrase != concat("with --", option.name) && !has_narrower) {
      out.push_back(phrase);
    }
  }
  return out;
}

}  // namespace

std::string details_of(const Option& option, std::string_view heading) {
  std::string out = option.help;
  if (!option.choices.empty()) {
    // One word up to here; what is longer wraps between the choices.
    constexpr std::size_t kLongest = 60;
    const std::string choices = join(option.choices, "|");
    out += choices.size() <= kLongest ? concat(" [", choices, "]")
                                      : concat(": ", join(option.choices, ", "));
  }
  if (option.required) {
    out += " (required)";
  } else if (!option.default_text.empty() && option.unused_because.empty()) {
    out += concat(" (default: ", option.default_text, ")");
  }
  const std::string conditions = join(conditions_of(option, heading), " and ");
  return conditions.empty() ? out : concat(out, " (only ", conditions, ")");
}

std::vector<std::string> sections_of(const OptionList& list) {
  std::vector<std::string> out;
  for (const Option& option : list.options()) {
    const std::string title = section_of(option);
    if (!option.hidden && std::find(out.begin(), out.end(), title) == out.end()) {
      out.push_back(title);
    }
  }
  return out;
}

std::string section_of(const Option& option) {
  return option.section.empty() ? std::string(kNoSection) : option.section;
}

std::string usage_of(const Subcommand& subcommand, const OptionList& list) {
  std::string out = concat("foretune ", subcommand.name, " [options]");
  for (const Option& option : list.options()) {
    if (option.positional) {
      out += concat(" ", option.name);
    }
  }
  return out;
}

std::span<const ExitCode> exit_codes() {
  static constexpr std::array kExitCodes{
      ExitCode{"0", "done"},
      ExitCode{"1", "failed: input/output error or a defect"},
      ExitCode{"2", "the command line makes no sense"},
      ExitCode{"3", "a file is missing, damaged, or does not fit (other family, schema, machine)"},
      ExitCode{"4", "not possible on this machine"},
      ExitCode{"5", "compare: the new model breaks a rule; validate-model: a pass mark is missed"},
      ExitCode{"130", "interrupted; everything measured is kept"}};
  return kExitCodes;
}

std::string_view plugin_example() {
  return R"(# Describes a program with flags, so that Foretune can choose them. Here blur.py, beside this file,
# is run as: ./blur.py --size=1000 --tile=32 --order=rows, and prints its seconds. Then
#
#   foretune --plugin blur.toml tune --family blur blur size=1000 --budget 30s
#
name = "blur"
description = "blurs a picture"

[problem]      # what is given: numbers, or {labels = ["a", "b"]}; `draw` bounds what collect draws
size = {min = 1, max = 100000, draw = [100, 4000], help = "edge of the picture"}

[parameters]   # what is chosen; without `default` the first value is the default
tile = {values = [8, 16, 32, 64, 128], default = 32}
order = ["rows", "columns"]

[run]          # words; no shell reads them, and an empty word disappears
command = ["{source}/blur.py", "--size={size}", "--tile={tile}", "--order={order}"]
time_limit_s = 60

[time]         # where the program says its time; without it, the whole run is timed, start included
from = "stdout"
unit = "s"
)";
}

namespace {

struct Style {
  bool color = false;
  [[nodiscard]] std::string bold(std::string_view text) const {
    return color ? concat("\033[1m", text, "\033[0m") : std::string(text);
  }
};

// Types have some seventy fields together, so the help names them and the manual explains them.
void append_problem_fields(std::string& out, std::size_t column) {
  out += concat(
      "  ",
      wrap("The problem field by field in place of text: --m 128 --n 1536 --k 7168 --dtype bf16. "
           "Each type has its own, which the manual page and docs/reference/problems.md explain.",
           2),
      "\n");
  for (const auto& [type, flags] : workflow::problem_field_options()) {
    std::string left = concat("  ", type);
    left.resize(column, ' ');
    out += concat(left, wrap(flags, column), "\n");
  }
}

void append_options(std::string& out, const OptionList& list, const Style& style) {
  constexpr std::size_t kColumn = 30;
  for (const std::string& title : sections_of(list)) {
    out += concat("\n", style.bold(concat(title, ":")), "\n");
    if (title == workflow::kProblemFieldsSection) {
      append_problem_fields(out, kColumn);
      continue;
    }
    for (const Option& option : list.options()) {
      if (option.hidden || section_of(option) != title) {
        continue;
      }
      std::string left = concat("  ", invocation_of(option));
      left += left.size() + 2 > kColumn ? concat("\n", std::string(kColumn, ' '))
                                        : std::string(kColumn - left.size(), ' ');
      out += concat(left, wrap(details_of(option, title), kColumn), "\n");
    }
  }
}

std::string exit_codes_text() {
  std::string out;
  for (const auto& [code, meaning] : exit_codes()) {
    std::string left = concat("  ", code);
    left.resize(7, ' ');
    out += concat(left, meaning, "\n");
  }
  return out;
}

std::string overview(const Style& style) {
  std::string out =
      concat(style.bold("foretune"), " ", kVersion,
             " - learns which kernel is fastest and picks it before anything runs\n\n",
             "Usage: foretune [global options] <subcommand> [options]\n\n",
             style.bold("Subcommands:"), "\n");
  for (const Subcommand& subcommand : subcommands()) {
    if (!subcommand.hidden) {
      std::string left = concat("  ", subcommand.name);
      left.resize(22, ' ');
      out += concat(left, wrap(subcommand.summary, 22), "\n");
    }
  }
  OptionList list;
  GlobalOptions global;
  global.visit(list);
  append_options(out, list, style);
  out += concat("  --help                      this text, or that of a subcommand\n",
                "  --version                   the version\n\n", style.bold("Exit codes:"), "\n",
                exit_codes_text());
  return out;
}

}  // namespace

std::string help_text(const Subcommand* subcommand, bool color) {
  const Style style{color};
  if (subcommand == nullptr) {
    return overview(style);
  }
  OptionList list;
  static_cast<void>(subcommand->prepare(list));
  std::string out = concat(style.bold(concat("foretune ", subcommand->name)), " - ",
                           subcommand->summary, "\n\nUsage: ", usage_of(*subcommand, list), "\n");
  if (!subcommand->description.empty()) {
    out += concat("\n", wrap(subcommand->description, 0), "\n");
  }
  append_options(out, list, style);
  OptionList global_list;
  GlobalOptions global;
  global.visit(global_list);
  append_options(out, global_list, style);
  if (!subcommand->example.empty()) {
    out += concat("\n", style.bold("Example:"), "\n  ", subcommand->example, "\n");
  }
  return out;
}

namespace {

// Option names with their dashes, per subcommand, global ones included.
std::map<std::string, std::vector<const Option*>, std::less<>> all_options(
    std::deque<OptionList>& storage) {
  std::map<std::string, std::vector<const Option*>, std::less<>> out;
  static GlobalOptions global;
  storage.emplace_back();
  OptionList& global_list = storage.back();
  global.visit(global_list);
  for (const Subcommand& subcommand : subcommands()) {
    if (subcommand.hidden) {
      continue;
    }
    storage.emplace_back();
    OptionList& list = storage.back();
    static_cast<void>(subcommand.prepare(list));
    std::vector<const Option*>& options = out[std::string(subcommand.name)];
    for (const OptionList* source : {&list, &global_list}) {
      for (const Option& option : source->options()) {
        if (!option.hidden && !option.positional) {
          options.push_back(&option);
        }
      }
    }
  }
  return out;
}

std::string flags_of(const std::vector<const Option*>& options) {
  std::string out;
  for (const Option* option : options) {
    out += concat(out.empty() ? "" : " ", "--", option->name);
  }
  return out;
}

std::string bash_completion() {
  std::deque<OptionList> storage;
  std::string names;
  std::string cases;
  std::map<std::string, std::string> choices;
  for (const auto& [name, options] : all_options(storage)) {
    names += concat(names.empty() ? "" : " ", name);
    cases += concat("    ", name, ") words=\"", flags_of(options), "\" ;;\n");
    for (const Option* option : options) {
      if (!option->choices.empty()) {
        choices[concat("--", option->name)] = join(option->choices, " ");
      }
    }
  }
  std::string values;
  for (const auto& [flag, words] : choices) {
    values += concat("    ", flag, ") COMPREPLY=($(compgen -W \"", words,
                     "\" -- \"$current\")); return ;;\n");
  }
  return concat("# bash completion of foretune: source this file\n_foretune() {\n",
                "  local current=\"${COMP_WORDS[COMP_CWORD]}\" "
                "previous=\"${COMP_WORDS[COMP_CWORD-1]}\" words=\"\" word subcommand=\"\"\n",
                "  case \"$previous\" in\n", values, "  esac\n",
                "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case \" ", names,
                " \" in *\" $word \"*) subcommand=\"$word\"; break ;; esac\n  done\n",
                "  case \"$subcommand\" in\n", cases, "    *) words=\"", names,
                " --help --version\" ;;\n  esac\n",
                "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n",
                "  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$current\"))\n",
                "}\ncomplete -o filenames -F _foretune foretune\n");
}

std::string shell_quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return concat("'", out, "'");
}

std::string fish_completion() {
  std::deque<OptionList> storage;
  std::string out =
      "# fish completion of foretune\ncomplete -c foretune -f -n __fish_use_subcommand\n";
  for (const Subcommand& subcommand : subcommands()) {
    if (!subcommand.hidden) {
      out += concat("complete -c foretune -n __fish_use_subcommand -a ", subcommand.name, " -d ",
                    shell_quoted(subcommand.summary), "\n");
    }
  }
  for (const auto& [name, options] : all_options(storage)) {
    for (const Option* option : options) {
      out +=
          concat("complete -c foretune -n '__fish_seen_subcommand_from ", name, "' -l ",
                 option->name, option->is_switch() ? "" : " -r",
                 option->choices.empty() ? std::string()
                                         : concat(" -a ", shell_quoted(join(option->choices, " "))),
                 " -d ", shell_quoted(option->help), "\n");
    }
  }
  return out;
}

std::string zsh_completion() {
  // zsh runs bash completions through its compatibility layer.
  return concat("#compdef foretune\nautoload -U +X bashcompinit && bashcompinit\n",
                bash_completion());
}

}  // namespace

Result<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") {
    return bash_completion();
  }
  if (shell == "zsh") {
    return zsh_completion();
  }
  if (shell == "fish") {
    return fish_completion();
  }
  return fail(ErrorCode::kInvalidArgument, "no completion for shell '", shell,
              "' (bash, zsh, fish)");
}

}  // namespace foretune::cli
