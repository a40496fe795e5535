// Plots of a network that was tuned to compute less, as inline SVG by the classes of style.cc.
// Internal to the module. Thread safety: free functions without state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "foretune/report/approx_report.h"

namespace foretune::report_internal {

// Returns the position of the fastest chosen network that keeps a budget, if there is one.
std::optional<std::size_t> fastest_within(const approx::ApproxResult& result, double budget);

// Every measured network by its speed-up and its loss, with the budgets.
std::string loss_by_speedup_plot(const ApproxReport& report);
std::string loss_by_speedup_legend(const ApproxReport& report);
// Predicted against measured losses and times, of the networks that the models recommended.
std::string predicted_loss_plot(const ApproxReport& report);
std::string predicted_time_plot(const ApproxReport& report);
// Losses on the tuning and on the test images, of the chosen networks; empty without test images.
std::string test_loss_plot(const ApproxReport& report);
// Every knob of every layer alone, by the time that it saves and the loss.
std::string sensitivity_plot(const ApproxReport& report);
// The types that it has.
std::string sensitivity_legend(const ApproxReport& report);

}  // namespace foretune::report_internal
