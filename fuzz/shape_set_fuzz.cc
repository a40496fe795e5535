// Operation shape sets in all their forms: problems or a reason.
#include <string_view>

#include "foretune/dataset/exchange.h"
#include "fuzz/dataset_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foretune::ImportReport report;
  const auto problems = foretune::parse_shape_set(
      std::string_view(reinterpret_cast<const char*>(data), size), &report);
  if (foretune::fuzz::refused(problems)) {
    return 0;
  }
  foretune::fuzz::require(report.rows_kept == problems->size());
  for (const foretune::Problem& problem : *problems) {
    const auto again = foretune::Problem::parse(problem.text());
    foretune::fuzz::require(again.has_value() && *again == problem);
  }
  return 0;
}
