// The reference pages and the manual pages of the command line, from the option lists.
#include "tools/foretune/reference.h"

#include <cctype>

#include "foretune/base/file.h"
#include "foretune/base/text.h"
#include "foretune/version.h"
#include "tools/foretune/command_line.h"
#include "tools/foretune/help_text.h"

namespace foretune::cli {
namespace {

constexpr std::size_t kPageWidth = 120;

std::string sentence(std::string_view text) {
  std::string out(text);
  if (!out.empty()) {
    out.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(out.front())));
  }
  return out.ends_with('.') ? out : concat(out, ".");
}

// In a table's cell, also in code.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c == '|' ? std::string("\\|") : std::string(1, c);
  }
  return out;
}

std::string option_tables(const OptionList& list, std::string_view level) {
  std::string out;
  for (const std::string& title : sections_of(list)) {
    out += concat("\n", level, " ", sentence(title).substr(0, title.size()),
                  "\n\n| option | meaning |\n|---|---|\n");
    for (const Option& option : list.options()) {
      if (!option.hidden && section_of(option) == title) {
        out += concat("| `", cell(invocation_of(option)), "` | ", cell(details_of(option, title)),
                      " |\n");
      }
    }
  }
  return out;
}

ReferencePage markdown_page(const Subcommand& subcommand) {
  OptionList list;
  static_cast<void>(subcommand.prepare(list));
  std::string text =
      concat("# foretune ", subcommand.name, "\n\n", sentence(subcommand.summary), "\n");
  if (!subcommand.description.empty()) {
    text += concat("\n", wrap(subcommand.description, 0, kPageWidth), "\n");
  }
  text += concat("\n```sh\n", usage_of(subcommand, list), "\n```\n");
  if (!subcommand.example.empty()) {
    text += concat("\nFor example:\n\n```sh\n", subcommand.example, "\n```\n");
  }
  text += option_tables(list, "##");
  text += "\n[The index](index.md) has the options that every command takes, and the exit codes.\n";
  return {concat(subcommand.name, ".md"), text};
}

ReferencePage markdown_index() {
  std::string text =
      "# Command line\n\n"
      "`foretune reference --output docs/reference/command-line` writes these pages.\n"
      "`foretune COMMAND --help` and `man foretune-COMMAND` say the same.\n\n"
      "| command | what it does |\n|---|---|\n";
  for (const Subcommand& subcommand : subcommands()) {
    if (!subcommand.hidden) {
      text += concat("| [", subcommand.name, "](", subcommand.name, ".md) | ", subcommand.summary,
                     " |\n");
    }
  }
  OptionList list;
  GlobalOptions global;
  global.visit(list);
  text += option_tables(list, "##");
  text += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const auto& [code, meaning] : exit_codes()) {
    text += concat("| ", code, " | ", meaning, " |\n");
  }
  return {"index.md", text};
}

// Text for troff: nothing in it is a request or an escape.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out.starts_with('.') ? concat("\\&", out) : out;
}

// Names of options in bold, values in italics.
std::string roff_invocation(const Option& option) {
  const std::string text = invocation_of(option);
  const std::size_t names = option.positional || option.value_name.empty()
                                ? text.size()
                                : text.size() - option.value_name.size();
  return concat(
      "\\fB", roff(std::string_view(text).substr(0, names)), "\\fR",
      names == text.size() ? std::string() : concat("\\fI", roff(option.value_name), "\\fR"));
}

std::string roff_options(const OptionList& list) {
  std::string out;
  for (const std::string& title : sections_of(list)) {
    if (title != kNoSection) {  // whose heading is that of the page's section
      out += concat(".SS ", roff(sentence(title).substr(0, title.size())), "\n");
    }
    for (const Option& option : list.options()) {
      if (!option.hidden && section_of(option) == title) {
        out +=
            concat(".TP\n", roff_invocation(option), "\n", roff(details_of(option, title)), "\n");
      }
    }
  }
  return out;
}

std::string roff_head(std::string_view name, std::string_view about) {
  std::string upper(name);
  for (char& c : upper) {
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return concat(".TH ", roff(upper), " 1 \"\" \"foretune ", kVersion, "\" \"Foretune\"\n.SH NAME\n",
                roff(name), " \\- ", roff(about), "\n");
}

ReferencePage manual_page(const Subcommand& subcommand) {
  OptionList list;
  static_cast<void>(subcommand.prepare(list));
  const std::string name = concat("foretune-", subcommand.name);
  std::string text = concat(
      roff_head(name, subcommand.summary), ".SH SYNOPSIS\n.B ", roff(usage_of(subcommand, list)),
      "\n.SH DESCRIPTION\n",
      roff(subcommand.description.empty() ? sentence(subcommand.summary) : subcommand.description),
      "\n.SH OPTIONS\n", roff_options(list));
  if (!subcommand.example.empty()) {
    text += concat(".SH EXAMPLES\n.nf\n", roff(subcommand.example), "\n.fi\n");
  }
  text += ".SH SEE ALSO\n.BR foretune (1)\n";
  return {concat(name, ".1"), text};
}

ReferencePage manual_overview() {
  std::string text = concat(
      roff_head("foretune", "learns which kernel is fastest and picks it before anything runs"),
      ".SH SYNOPSIS\n.B foretune\n[global options] \\fIcommand\\fR [options]\n.SH DESCRIPTION\n"
      "Measures interchangeable kernels on some problems, learns a cost model from the times, and "
      "names the fastest config of a problem that it has never seen.\n"
      "Each command has a page of its own.\n.SH COMMANDS\n");
  for (const Subcommand& subcommand : subcommands()) {
    if (!subcommand.hidden) {
      text += concat(".TP\n.BR foretune\\-", roff(subcommand.name), " (1)\n",
                     roff(sentence(subcommand.summary)), "\n");
    }
  }
  OptionList list;
  GlobalOptions global;
  global.visit(list);
  text += concat(".SH OPTIONS\n", roff_options(list), ".SH EXIT STATUS\n");
  for (const auto& [code, meaning] : exit_codes()) {
    text += concat(".TP\n.B ", code, "\n", roff(sentence(meaning)), "\n");
  }
  return {"foretune.1", text};
}

}  // namespace

std::vector<ReferencePage> markdown_reference() {
  std::vector<ReferencePage> out{markdown_index()};
  for (const Subcommand& subcommand : subcommands()) {
    if (!subcommand.hidden) {
      out.push_back(markdown_page(subcommand));
    }
  }
  return out;
}

std::vector<ReferencePage> manual_pages() {
  std::vector<ReferencePage> out{manual_overview()};
  for (const Subcommand& subcommand : subcommands()) {
    if (!subcommand.hidden) {
      out.push_back(manual_page(subcommand));
    }
  }
  return out;
}

Status write_pages(const std::vector<ReferencePage>& pages, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::kIo, "cannot create ", folder.string(), ": ", error.message());
  }
  for (const ReferencePage& page : pages) {
    FORETUNE_TRY_STATUS(write_text_file_atomically(folder / page.name, page.text));
  }
  return {};
}

}  // namespace foretune::cli
