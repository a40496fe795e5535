// Operation shape sets in all their forms: problems or a reason.
#include <string>
#include <string_view>

#include "fuzz/dataset_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using foretune::fuzz::require;
  foretune::ImportReport report;
  const auto problems = foretune::parse_shape_set(
      std::string_view(reinterpret_cast<const char*>(data), size), &report);
  if (foretune::fuzz::refused(problems)) {
    return 0;
  }
  foretune::fuzz::require_accounted(report);
  require(report.rows_kept == problems->size() && !problems->empty());
  // Their text form is a shape set, too.
  std::string text;
  for (const foretune::Problem& problem : *problems) {
    text += problem.text() + "\n";
  }
  const auto again = foretune::parse_shape_set(text);
  require(again.has_value() && *again == *problems);
  return 0;
}
