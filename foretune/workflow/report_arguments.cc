#include "foretune/workflow/report_arguments.h"

namespace foretune::workflow {

void ReportArguments::visit(OptionList& list) {
  list.add("top-n-worst", top_n_worst, "N", "number of worst problems to list").at_least(0);
  list.add("json", json, "FILE", "write the figures as JSON").accept({"output"}).short_as('o');
  list.add("html", html, "FILE", "write the report as one self-contained page");
  list.add("figures", figures, "DIR", "write each plot of the page as an SVG file");
}

}  // namespace foretune::workflow
