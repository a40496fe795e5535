#include "foretune/report/approx_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/report/internal/approx_plots.h"
#include "foretune/report/testing/html.h"

namespace foretune {
namespace {

using approx::ApproxConfig;
using testing::HasSubstr;
using testing::Not;

ApproxConfig network(int knob, double speedup, double loss, double budget) {
  ApproxConfig each{.config = {.schema = 1, .words = {knob, 0}}, .text = {}};
  each.budget = budget;
  each.time_ns = 4e6 / speedup;
  each.speedup = speedup;
  each.predicted_ns = 1.02 * each.time_ns;
  each.predicted_loss = loss + 0.1;
  each.tune_loss = loss;
  each.loss_high = loss + 0.3;
  return each;
}

// Two networks that keep a budget and are chosen, one that keeps a budget and is slower, and one
// that keeps none. The names are hostile.
ApproxReport sample() {
  ApproxReport report;
  report.network = "net<1>";
  report.budgets = {0.5, 1};
  approx::ApproxResult& result = report.result;
  result.exact = network(0, 1, 0, 0.5);
  result.exact.text = "exact";
  result.exact.test_quality = 91.25;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  result.networks = {network(1, 2.5, 0.6, 1), network(2, 1.5, 0.1, 0.5), network(3, 1.2, 0.1, 0.5),
                     network(4, 3.5, 7.0, kNone)};
  result.chosen = {result.networks[0], result.networks[1]};
  result.chosen[0].text = "a&b=i8 last=bf16";
  result.chosen[0].test_loss = 1.31;  // above its budget
  result.chosen[1].text = "last=i8";
  result.chosen[1].test_loss = 0.12;
  result.measured = 5;
  result.judgement.networks = 7;
  result.layers = {
      {.layer = "a&b",
       .op = "conv",
       .knobs = {{.knob = "f32", .loss = 0, .ns = 3e6}, {.knob = "i8", .loss = 0.07, .ns = 1e6}}},
      {.layer = "last", .op = "linear", .knobs = {{.knob = "f32", .loss = 0, .ns = 1e6}}}};
  report.facts = {{"command", "foretune approx \"a<b\""}};
  return report;
}

TEST(ApproxReport, HasItsPartsAndEscapesNames) {
  const std::string html = approx_html(sample());
  EXPECT_EQ(html_defect(html), "");
  for (const std::string_view part :
       {"<title>How net&lt;1&gt; computes less</title>", "Speed-up and loss",
        "Predicted and measured", "Tuning and test images", "Chosen networks", "Layers alone",
        "How it was measured", "a&amp;b=i8 last=bf16", "a&lt;b", "<dd>0.5, 1 points</dd>",
        "budget 0.5", "91.25 points", "7 random networks", "<td>a&amp;b</td>", "<td>0.07</td>"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, Not(HasSubstr("net<1>")));
  EXPECT_THAT(html, Not(HasSubstr("a&b")));
  // The test loss above its budget stands out, in both tables.
  EXPECT_EQ(count_of(html, "<td style=\"color:var(--e0)\">1.31</td>"), 2U);
  EXPECT_THAT(html, HasSubstr("Within a loss of 1 point, the network is <b>2.50\u00d7</b> as fast "
                              "as computed exactly"));
}

TEST(ApproxReport, DrawsEveryMeasuredNetworkOnce) {
  const std::string plot = report_internal::loss_by_speedup_plot(sample()).drawing;
  EXPECT_EQ(count_of(plot, "\"trial met\""), 1U);
  EXPECT_EQ(count_of(plot, "\"trial missed\""), 1U);
  EXPECT_EQ(count_of(plot, "\"mark c1\""), 2U) << "both are the fastest of a budget";
  EXPECT_EQ(count_of(plot, "\"mark c3\""), 1U);
  EXPECT_EQ(count_of(report_internal::predicted_loss_plot(sample()).drawing, "<circle"), 4U);
  EXPECT_EQ(count_of(report_internal::predicted_time_plot(sample()).drawing, "<circle"), 4U);
  EXPECT_EQ(count_of(report_internal::test_loss_plot(sample()).drawing, "<circle"), 2U);
  EXPECT_EQ(count_of(report_internal::sensitivity_plot(sample()).drawing, "\"mark c2\""), 1U);
  const auto legend = report_internal::sensitivity_plot(sample()).legend;
  ASSERT_EQ(legend.size(), 1U);
  EXPECT_EQ(legend[0].text, "i8");
}

TEST(ApproxReport, FindsTheFastestOfABudget) {
  const ApproxReport report = sample();
  EXPECT_EQ(report_internal::fastest_within(report.result, 0.5), 1U);
  EXPECT_EQ(report_internal::fastest_within(report.result, 1), 0U);
  EXPECT_FALSE(report_internal::fastest_within(report.result, 0.2));
}

TEST(ApproxReport, NamesTheBudgetsThatNoFasterNetworkKeeps) {
  const ApproxReport report = sample();
  const auto missed = [&](const std::vector<double>& budgets) {
    return missed_budgets_text(report.result, budgets);
  };
  EXPECT_EQ(missed(report.budgets), "");
  EXPECT_EQ(missed({0.2, 0.5}), "No faster network keeps the budget 0.2.");
  EXPECT_EQ(missed({0.1, 0.2, 1}), "No faster network keeps the budgets 0.1, 0.2.");
}

TEST(ApproxReport, LeavesOutWhatIsNotThere) {
  ApproxReport report = sample();
  report.result = {};
  report.result.exact = network(0, 1, 0, 0.5);
  const std::string html = approx_html(report);
  EXPECT_EQ(html_defect(html), "");
  EXPECT_THAT(html, HasSubstr("No faster network keeps the budgets."));
  for (const std::string_view part :
       {"Predicted and measured", "Tuning and test images", "Chosen networks", "Layers alone"}) {
    EXPECT_THAT(html, Not(HasSubstr(part)));
  }
}

TEST(ApproxReport, FiguresHaveTitleUnitsAndSource) {
  ApproxReport report = sample();
  report.source = "the source";
  const std::vector<FigureFile> files = approx_figures(report);
  EXPECT_EQ(files.size(), 5U);
  for (const FigureFile& file : files) {
    EXPECT_EQ(figure_defect(file.svg, report.source), "") << file.name;
  }
  EXPECT_EQ(count_of(approx_html(report), ">the source<"), 6U) << "and at the foot of the page";
}

}  // namespace
}  // namespace foretune
