// The plots of evaluations, drawn with the classes of style.cc; every mark has a tooltip. Internal
// to the module. Thread safety: free functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/training_curves.h"
#include "foretune/report/internal/figure.h"

namespace foretune::report_internal {

// The palette and the classes of all plots, for a figure that is a file of its own.
std::string plot_style();
// The style sheet of a page, plots included.
std::string page_style();

// One size for all, so that they stand side by side; letters stay readable on a narrow screen.
inline constexpr double kPlotWidth = 480;
inline constexpr double kPlotHeight = 330;

// Returns a figure of that size.
Figure plot_figure(std::string name, std::string title, std::string note, Svg svg,
                   std::vector<LegendEntry> legend);

// Class of an efficiency, "e0" (worst) to "e4"; the legend explains them.
std::string_view efficiency_class(double efficiency);

// Figures without a drawing where there is nothing to draw.
Figure picks_plot(const Evaluation& evaluation);         // beside other ways of picking
Figure distribution_plot(const Evaluation& evaluation);  // sorted efficiencies
Figure curve_plot(const Evaluation& evaluation);         // first few measured
Figure portfolio_plot(const Evaluation& evaluation);     // mean and P10 by configs
Figure map_plot(const Evaluation& evaluation);           // problems by two sizes
Figure duration_plot(const Evaluation& evaluation);      // efficiency by time of the best
Figure prediction_plot(const Evaluation& evaluation);    // predicted and measured times
// Losses over epochs.
Figure loss_plot(const TrainingCurves& trained, double width = kPlotWidth,
                 double height = kPlotHeight);

}  // namespace foretune::report_internal
