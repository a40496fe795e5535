// The options of a report: its length, and the files to write beside what is printed.
// Thread safety: used by the main thread.
#pragma once

#include <cstdint>
#include <string>

#include "foretune/base/result.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/workflow/judge.h"
#include "tools/foretune/command_line.h"

namespace foretune::cli {

struct ReportArguments {
  std::int64_t top_n_worst = 10;
  std::string json;
  std::string html;
  void visit(OptionList& list);
  // Prints the text and writes the given files; `json_text` is the content of --json.
  [[nodiscard]] Status show(const Evaluation& evaluation, const std::string& json_text,
                            const std::string& title) const;
};

}  // namespace foretune::cli
