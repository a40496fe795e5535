// Help, completion and reference texts, all from the option lists.
#include <algorithm>
#include <map>
#include <span>

#include "foretune/base/text.h"
#include "foretune/version.h"
#include "tools/foretune/command_line.h"

namespace foretune::cli {
namespace {

constexpr std::size_t kWidth = 96;

std::string wrap(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (const std::string_view word : split_words(text)) {
    if (column != indent && column + 1 + word.size() > kWidth) {
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

// Returns the help with the condition of the option's effect, unless `heading` states it.
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
  for (const Condition& condition : option.conditions) {
    if (!heading.ends_with(condition.phrase)) {
      out += concat(" (only ", condition.phrase, ")");
    }
  }
  return out;
}

struct Style {
  bool color = false;
  [[nodiscard]] std::string bold(std::string_view text) const {
    return color ? concat("\033[1m", text, "\033[0m") : std::string(text);
  }
};

void append_options(std::string& out, const OptionList& list, const Style& style) {
  std::vector<std::string> sections;
  for (const Option& option : list.options()) {
    const std::string title = option.section.empty() ? "Options" : option.section;
    if (!option.hidden && std::find(sections.begin(), sections.end(), title) == sections.end()) {
      sections.push_back(title);
    }
  }
  constexpr std::size_t kColumn = 30;
  for (const std::string& title : sections) {
    out += concat("\n", style.bold(concat(title, ":")), "\n");
    for (const Option& option : list.options()) {
      if (option.hidden || (option.section.empty() ? "Options" : option.section) != title) {
        continue;
      }
      std::string left = concat("  ", invocation_of(option));
      left += left.size() + 2 > kColumn ? concat("\n", std::string(kColumn, ' '))
                                        : std::string(kColumn - left.size(), ' ');
      out += concat(left, wrap(details_of(option, title), kColumn), "\n");
    }
  }
}

constexpr std::string_view kExitCodes =
    "  0    done\n"
    "  1    failed: input/output error or a defect\n"
    "  2    the command line makes no sense\n"
    "  3    a file is missing, damaged, or does not fit (other family, schema, machine)\n"
    "  4    not possible on this machine\n"
    "  5    compare: the new model breaks a rule; validate-model: a pass mark is missed\n"
    "  130  interrupted; everything measured is kept\n";

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
                kExitCodes);
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
  std::string usage = concat("foretune ", subcommand->name, " [options]");
  for (const Option& option : list.options()) {
    if (option.positional) {
      usage += concat(" ", option.name);
    }
  }
  std::string out = concat(style.bold(concat("foretune ", subcommand->name)), " - ",
                           subcommand->summary, "\n\nUsage: ", usage, "\n");
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

std::string markdown_reference() {
  std::string out =
      "# Command line\n\nWritten by `foretune reference`; a test keeps it up to date.\n";
  for (const Subcommand& subcommand : subcommands()) {
    if (subcommand.hidden) {
      continue;
    }
    OptionList list;
    static_cast<void>(subcommand.prepare(list));
    out += concat("\n## ", subcommand.name, "\n\n", subcommand.summary, ".\n\n",
                  subcommand.description.empty() ? std::string()
                                                 : concat(wrap(subcommand.description, 0), "\n\n"),
                  "| option | meaning |\n| --- | --- |\n");
    for (const Option& option : list.options()) {
      if (!option.hidden) {
        std::string details = details_of(option, "");
        std::string escaped;
        for (const char c : details) {
          escaped += c == '|' ? std::string("\\|") : std::string(1, c);
        }
        out += concat("| `", invocation_of(option), "` | ", escaped, " |\n");
      }
    }
    if (!subcommand.example.empty()) {
      out += concat("\nExample: `", subcommand.example, "`\n");
    }
  }
  out += concat("\n## Exit codes\n\n```\n", kExitCodes, "```\n");
  return out;
}

}  // namespace foretune::cli
