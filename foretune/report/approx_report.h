// The page of a network that was tuned to compute less: its loss against its speed-up, the models
// beside what was measured, tuning beside test images, and what each knob does to each layer.
//
//   write(approx_html({.network = "resnet20", .budgets = {0.5, 1}, .result = result}));
//
// Thread safety: free functions without state.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretune/approx/tuner.h"
#include "foretune/report/figure_file.h"

namespace foretune {

struct ApproxReport {
  std::string network;          // its name
  std::vector<double> budgets;  // losses that were asked for
  approx::ApproxResult result;
  std::string unit = "points";  // of quality and losses
  // Named facts for the foot of the page: task, device, command.
  std::vector<std::pair<std::string, std::string>> facts;
  std::string source;  // one line below figures: program, device, date
};

// Returns a sentence that names the budgets that no chosen network keeps, empty for none.
std::string missed_budgets_text(const approx::ApproxResult& result,
                                std::span<const double> budgets);

// One page without any file beside it.
std::string approx_html(const ApproxReport& report);
// The plots of the page.
std::vector<FigureFile> approx_figures(const ApproxReport& report);

}  // namespace foretune
