// The plots of the page as inline SVG, drawn with the classes of style.cc. Each has a
// viewBox and no size of its own; every mark has a tooltip. Internal to the module. Thread safety:
// free functions without state.
#pragma once

#include <string>
#include <string_view>

#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/training_curves.h"
#include "foretune/report/internal/drawing.h"

namespace foretune::report_internal {

// Classes of the plots, also of one that is a file of its own, behind the palette.
std::string plot_style();
// The style sheet of the page, plots included.
std::string page_style();

// One size for all, so that they stand side by side; letters stay readable on a narrow screen.
inline constexpr double kPlotWidth = 480;
inline constexpr double kPlotHeight = 330;

// Class of an efficiency, "e0" (worst) to "e4"; the legend explains them.
std::string_view efficiency_class(double efficiency);
std::string efficiency_legend();

// Class of a picker's line, "c0" for the model; empty when it has none.
std::string_view series_class(std::string_view key);

// Empty strings where there is nothing to draw.
std::string distribution_plot(const Evaluation& evaluation);  // sorted efficiencies
std::string curve_plot(const Evaluation& evaluation);         // first few measured
std::string portfolio_plot(const Evaluation& evaluation);     // mean and P10 by configs
std::string map_plot(const Evaluation& evaluation);           // problems by two sizes
std::string duration_plot(const Evaluation& evaluation);      // efficiency by time of the best
std::string prediction_plot(const Evaluation& evaluation);    // predicted and measured times
std::string loss_plot(const TrainingCurves& trained);         // losses over epochs

}  // namespace foretune::report_internal
