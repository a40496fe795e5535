#include "foretune/report/contest_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/families/loop_nest/loop_nest.h"
#include "foretune/loop/computation_text.h"
#include "foretune/loop/schedule_space.h"
#include "foretune/measure/testing/measurers.h"
#include "foretune/report/testing/contest_samples.h"
#include "foretune/report/testing/html.h"

namespace foretune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing_support::HashMeasurer;
using testing_support::typical_results;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (const std::string_view line : split(text, '\n')) {
    out.emplace_back(line);
  }
  return out;
}

std::string plot_defect(const std::string& svg) {
  for (const std::string_view word : {"nan", "inf"}) {
    if (svg.find(concat("\"", word)) != std::string::npos ||
        svg.find(concat("\"-", word)) != std::string::npos) {
      return concat("a coordinate is ", word);
    }
  }
  return svg.starts_with("<svg xmlns=") ? html_defect("<!>" + svg) : "no image";
}

using Plot = std::string (*)(const ContestResults& results, std::string_view source);
constexpr std::string_view kPlotSource = "the source";
constexpr Plot kPlots[] = {bars_svg, violin_svg, gain_svg};

// Two steps: the first is refused.
ContestEntry short_search() {
  ContestEntry method{.name = "a \"b\"", .config_text = "split m0 4, swap m1", .speed = 30};
  method.trace.steps = {{.elapsed_s = 0.5},
                        {.config = {}, .speed = 32, .time_ns = 2000, .elapsed_s = 0.75}};
  method.trace.best = 1;
  method.trace.elapsed_s = 1;
  method.trace.is_finished = true;
  return method;
}

TEST(ContestCsv, HasARowPerSearch) {
  ContestResults results{.peak = 120};
  results.problems.push_back({.name = "small", .problem = "mm m=4", .start_speed = 10});
  results.problems[0].entries = {short_search()};
  EXPECT_THAT(lines_of(contest_csv(results)),
              ElementsAre("name,problem,strategy,speed,unit,share_of_peak,speedup_over_start,"
                          "found_speed,measurements,measurements_to_best,search_s,seconds_to_best,"
                          "finished,config",
                          "small,mm m=4,\"a \"\"b\"\"\",30,GFLOP/s,0.25,3,32,2,2,1,0.75,true,"
                          "\"split m0 4, swap m1\"",
                          ""));
}

TEST(ContestCsv, CellsOfWhatIsNotKnownAreEmpty) {
  ContestResults results;
  results.problems.push_back({.name = "none", .problem = "mm"});
  ContestEntry refused{.name = "base"};
  refused.trace.steps = {{.elapsed_s = 0.5}};
  results.problems[0].entries = {refused, {.name = "idle"}};
  const std::vector<std::string> lines = lines_of(contest_csv(results));
  EXPECT_EQ(lines[1], "none,mm,base,0,GFLOP/s,,,0,1,,0,,false,");
  EXPECT_EQ(lines[2], "none,mm,idle,0,GFLOP/s,,,0,0,,0,,false,");
}

TEST(ContestStepsCsv, HasARowPerMeasurementWithItsSchedule) {
  const loop::Computation product = loop::parse_computation("mm m=16 n=16 k=16").value();
  const NestBench bench =
      make_nest_bench(product, {.actions = loop::ActionSet(), .has_textbook_defaults = false})
          .value();
  const std::unique_ptr<Space> space = bench.family->space(bench.problem).value();
  const auto& schedules = dynamic_cast<const loop::ScheduleSpace&>(*space);
  HashMeasurer measurer(3);
  ContestOptions options;
  options.tune.budget.measurements = 20;
  const ContestResult result = run_contest(*bench.family, measurer, nullptr, bench.problem,
                                           Contestant::parse_list("random").value(), options, {})
                                   .value();
  const ContestEntry& method = result.entries.front();
  const std::vector<std::string> lines = lines_of(contest_steps_csv(result, *space));
  ASSERT_EQ(lines.size(), 22U);
  EXPECT_EQ(lines[0], "strategy,measurement,elapsed_s,speed,best_speed,time_ns,config");
  double best = 0;
  bool has_refused = false;
  for (std::size_t i = 0; i < 20; ++i) {
    const ContestStep& step = method.trace.steps[i];
    best = std::max(best, step.speed);
    const bool is_refused = !(step.speed > 0);
    has_refused = has_refused || is_refused;
    EXPECT_TRUE(
        lines[i + 1].starts_with(concat("random,", i + 1, ",0,", step.speed, ",", best, ",",
                                        is_refused ? std::string() : concat(step.time_ns), ",")))
        << lines[i + 1];
    // The listed schedule leads to what was measured.
    std::string_view schedule = lines[i + 1];
    schedule.remove_prefix(lines[i + 1].find_last_of('"') == std::string::npos
                               ? lines[i + 1].rfind(',') + 1
                               : lines[i + 1].find('"') + 1);
    schedule = schedule.substr(0, schedule.find('"'));
    const auto actions =
        loop::parse_schedule(product, schedule == "the plain nest" ? "" : schedule);
    ASSERT_TRUE(actions) << actions.error().message;
    const auto nest = loop::apply_all(product, *actions);
    ASSERT_TRUE(nest) << nest.error().message;
    EXPECT_EQ(schedules.config({.nest = *nest, .cursor = 0}), step.config);
  }
  EXPECT_TRUE(has_refused);
}

class PlotSizes : public testing::TestWithParam<std::pair<std::size_t, std::size_t>> {};

TEST_P(PlotSizes, AreWellFormedWithAllMethodsAndBenchmarks) {
  const auto [methods, benchmarks] = GetParam();
  const ContestResults results = typical_results(methods, benchmarks);
  for (const Plot plot : kPlots) {
    const std::string svg = plot(results, kPlotSource);
    EXPECT_EQ(plot_defect(svg), "");
    EXPECT_EQ(svg, plot(results, kPlotSource));
    for (const ContestEntry& method : results.problems[0].entries) {
      EXPECT_THAT(svg, HasSubstr(concat(">", method.name)));
    }
    for (const ContestResult& problem : results.problems) {
      // A long name may take two lines.
      EXPECT_THAT(svg, HasSubstr(split_words(problem.name).back()));
    }
    EXPECT_EQ(figure_defect(svg, kPlotSource), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlotSizes,
                         testing::Values(std::pair(1, 1), std::pair(2, 1), std::pair(4, 3),
                                         std::pair(2, 4), std::pair(13, 1), std::pair(13, 25)));

TEST(Plots, NothingToDrawIsEmpty) {
  ContestResults nothing_runs = typical_results(3, 2);
  for (ContestResult& problem : nothing_runs.problems) {
    for (ContestEntry& method : problem.entries) {
      method.speed = 0;
    }
  }
  for (const Plot plot : kPlots) {
    EXPECT_EQ(plot({}, kPlotSource), "");
    EXPECT_EQ(plot({.problems = {{.name = "a"}}}, kPlotSource), "");
    EXPECT_EQ(plot(nothing_runs, kPlotSource), "");
  }
}

TEST(Plots, WhatIsMissingIsLeftOut) {
  ContestResults results = typical_results(4, 5);
  results.peak = 0;
  results.problems[0].start_speed = 0;
  results.problems[1].entries[2].speed = 0;
  results.problems[1].entries[2].trace = {};
  results.problems[1].entries[2].speeds_on_way = {};
  results.problems[2].entries[3].speeds_on_way[1] = 0;
  for (ContestEntry& method : results.problems[3].entries) {
    method.trace.elapsed_s = 0;
  }
  for (const Plot plot : kPlots) {
    const std::string svg = plot(results, kPlotSource);
    EXPECT_EQ(plot_defect(svg), "");
    EXPECT_THAT(svg, Not(HasSubstr("of the peak")));
  }
}

TEST(Plots, NamesFromElsewhereMarkUpNothing) {
  ContestResults results = typical_results(2, 2);
  results.problems[0].name = "</text><script>\"'&";
  for (ContestResult& problem : results.problems) {
    problem.entries[0].name = "<b>&\x01";
  }
  for (const Plot plot : kPlots) {
    const std::string svg = plot(results, kPlotSource);
    EXPECT_EQ(plot_defect(svg), "");
    EXPECT_THAT(svg, Not(HasSubstr("<script")));
    EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  }
}

TEST(BarsSvg, SaysWhichMethodIsBestAndByHowMuch) {
  ContestResults results = typical_results(2, 1);
  results.problems[0].start_speed = 10;
  results.problems[0].entries[0].speed = 40;
  results.problems[0].entries[1].speed = 50;
  EXPECT_THAT(bars_svg(results, kPlotSource),
              HasSubstr(">guided finds the fastest configs, 25 % ahead of "
                        "base<"));
  EXPECT_THAT(bars_svg(results, kPlotSource), HasSubstr(">5.00\u00d7<"));
  EXPECT_THAT(bars_svg(results, kPlotSource), HasSubstr(">peak 134<"));
}

TEST(ViolinSvg, FewValuesArePointsAndNoDistribution) {
  EXPECT_EQ(count_of(violin_svg(typical_results(2, 3), kPlotSource), "<polygon"), 0U);
  EXPECT_EQ(count_of(violin_svg(typical_results(2, 3), kPlotSource), "<circle class=\"end"), 6U);
  EXPECT_EQ(count_of(violin_svg(typical_results(2, 4), kPlotSource), "<polygon"), 2U);
}

TEST(GainSvg, DrawsALinePerMethodAndPanelAndEveryBenchmarkBehind) {
  // Both panels and the legend.
  EXPECT_EQ(count_of(gain_svg(typical_results(3, 1), kPlotSource), "<polyline class=\"series"), 9U);
  EXPECT_EQ(count_of(gain_svg(typical_results(3, 1), kPlotSource), "<polyline class=\"one"), 0U);
  EXPECT_EQ(count_of(gain_svg(typical_results(3, 5), kPlotSource), "<polyline class=\"one"), 30U);
}

TEST(GainSvg, MeansAreGeometric) {
  ContestResults results = typical_results(1, 2);
  results.peak = 100;
  for (std::size_t i = 0; i < 2; ++i) {
    ContestEntry& method = results.problems[i].entries[0];
    method.speed = i == 0 ? 20 : 80;
    method.speeds_on_way = {method.speed};
  }
  EXPECT_THAT(gain_svg(results, kPlotSource),
              HasSubstr("<title>base: 40.0 % after 0 actions</title>"));
}

TEST(Plots, SeveralProblemsHaveIntervals) {
  EXPECT_THAT(bars_svg(typical_results(3, 8), kPlotSource), HasSubstr("95 % interval of the mean"));
  EXPECT_THAT(bars_svg(typical_results(3, 3), kPlotSource), Not(HasSubstr("95 %")));
  EXPECT_THAT(violin_svg(typical_results(3, 8), kPlotSource), HasSubstr(">95 %</text>"));
  EXPECT_THAT(gain_svg(typical_results(3, 8), kPlotSource),
              HasSubstr("95 % intervals in the legend"));
}

}  // namespace
}  // namespace foretune
