// Plots of a network that was tuned to compute less, drawn with the classes of style.cc. Internal
// to the module. Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <optional>

#include "foretune/report/approx_report.h"
#include "foretune/report/internal/figure.h"

namespace foretune::report_internal {

// Returns the position of the fastest chosen network that keeps a budget, if there is one.
std::optional<std::size_t> fastest_within(const approx::ApproxResult& result, double budget);

// Every measured network by its speed-up and its loss, with the budgets.
Figure loss_by_speedup_plot(const ApproxReport& report);
// Predicted against measured losses and times, of the networks that the models recommended.
Figure predicted_loss_plot(const ApproxReport& report);
Figure predicted_time_plot(const ApproxReport& report);
// Losses on the tuning and on the test images, of the chosen networks; empty without test images.
Figure test_loss_plot(const ApproxReport& report);
// Every knob of every layer alone, by the time that it saves and the loss.
Figure sensitivity_plot(const ApproxReport& report);

}  // namespace foretune::report_internal
