// The options of reports about picks: their length, and the files to write beside what is printed.
// Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "foretune/workflow/options.h"

namespace foretune::workflow {

struct ReportArguments {
  std::int64_t top_n_worst = 10;
  std::string json;
  std::string html;
  std::string figures;

  void visit(OptionList& list);
};

}  // namespace foretune::workflow
