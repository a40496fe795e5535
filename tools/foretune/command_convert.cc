// foretune convert and foretune merge: convert a data set to another format, or several into one.
#include <cstddef>
#include <string>

#include "foretune/base/text.h"
#include "foretune/workflow/conversion.h"
#include "tools/foretune/commands.h"
#include "tools/foretune/terminal.h"

namespace foretune::cli {
namespace {

void print_losses(const ImportReport& report) {
  for (const auto& [reason, count] : report.dropped) {
    print(concat("  dropped ", count_text(count), ": ", reason, "\n"));
  }
  for (const auto& [note, count] : report.notes) {
    print(concat("  kept ", count_text(count), ": ", note, "\n"));
  }
}

void print_report(const ImportReport& report) {
  print(concat(count_of(report.rows_read, "row"), " read, ", count_text(report.rows_kept),
               " kept\n"));
  print_losses(report);
}

Result<int> convert(const ConvertArguments& arguments, const Invocation& invocation) {
  bool is_first = true;
  ConvertHooks hooks;
  hooks.on_read = [&](const std::string& path, const ImportReport& report) {
    print(is_first ? std::string() : concat(path, ": "));
    print_report(report);
    is_first = false;
  };
  hooks.on_merged = [](std::size_t repeats) {
    if (repeats > 0) {
      print(concat("merged ", count_of(repeats, "repeat"), " by their median\n"));
    }
  };
  FORETUNE_TRY(const Conversion converted, run_conversion(arguments, invocation, hooks));
  print_losses(converted.written);
  print(concat("wrote ", arguments.output, " (", converted.format, ")\n"));
  return kExitOk;
}

Result<int> merge(const MergeArguments& arguments, const Invocation& invocation) {
  FORETUNE_TRY(const Merged merged, run_merge(arguments, invocation));
  print(concat(count_of(merged.measurements, "measurement"), ", ", count_text(merged.repeats),
               " of them repeats, merged by their median\nwrote ", arguments.output, "\n"));
  return kExitOk;
}

}  // namespace

std::function<int(const Invocation&)> prepare_convert(OptionList& list) {
  return prepare_with<ConvertArguments, convert>(list);
}
std::function<int(const Invocation&)> prepare_merge(OptionList& list) {
  return prepare_with<MergeArguments, merge>(list);
}

}  // namespace foretune::cli
