#include "foretune/autoschedule/search_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "foretune/autoschedule/test_results.h"
#include "foretune/base/text.h"
#include "foretune/environment/cursor_space.h"
#include "foretune/environment/test_evaluators.h"
#include "foretune/loop/computation_text.h"

namespace foretune::autoschedule {
namespace {

using environment::testing_support::by_hash;
using environment::testing_support::FunctionEvaluator;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing_support::typical_results;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (const std::string_view line : split(text, '\n')) {
    out.emplace_back(line);
  }
  return out;
}

std::size_t count_of(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

// Elements closed in order, attributes between quotes. Returns what is wrong, or "".
std::string xml_defect(std::string_view text) {
  std::vector<std::string> open;
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const std::size_t end = text.find('>', at);
    if (end == std::string_view::npos) {
      return "a tag that never ends";
    }
    const std::string_view tag = text.substr(at + 1, end - at - 1);
    if (count_of(tag, "\"") % 2 != 0 || tag.find('<') != std::string_view::npos) {
      return concat("quotes of <", tag, ">");
    }
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) {
        return concat("<", tag, "> closes nothing");
      }
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.emplace_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty() ? "" : concat("<", open.back(), "> is not closed");
}

std::string plot_defect(const std::string& svg) {
  for (const std::string_view word : {"nan", "inf"}) {
    if (svg.find(concat("\"", word)) != std::string::npos ||
        svg.find(concat("\"-", word)) != std::string::npos) {
      return concat("a coordinate is ", word);
    }
  }
  return svg.starts_with("<svg xmlns=") ? xml_defect(svg) : "no image";
}

using Plot = std::string (*)(const SearchResults& results);
constexpr Plot kPlots[] = {bars_svg, violin_svg, gain_svg};

// Two steps: the first is refused.
MethodResult short_search() {
  MethodResult method{.method = "a \"b\"", .schedule = "split m0 4, swap m1", .gflops = 30};
  method.trace.steps = {{.elapsed_s = 0.5},
                        {.config = {}, .gflops = 32, .seconds = 2e-6, .elapsed_s = 0.75}};
  method.trace.best = 1;
  method.trace.elapsed_s = 1;
  method.trace.is_finished = true;
  return method;
}

TEST(ResultsCsv, HasARowPerSearch) {
  SearchResults results{.peak_gflops = 120};
  results.benchmarks.push_back({.benchmark = "small", .computation = "mm m=4", .base_gflops = 10});
  results.benchmarks[0].methods = {short_search()};
  EXPECT_THAT(lines_of(results_csv(results)),
              ElementsAre("benchmark,computation,method,gflops,share_of_peak,speedup_over_base,"
                          "found_gflops,measurements,measurements_to_best,search_s,seconds_to_best,"
                          "finished,schedule",
                          "small,mm m=4,\"a \"\"b\"\"\",30,0.25,3,32,2,2,1,0.75,true,"
                          "\"split m0 4, swap m1\"",
                          ""));
}

TEST(ResultsCsv, CellsOfWhatIsNotKnownAreEmpty) {
  SearchResults results;
  results.benchmarks.push_back({.benchmark = "none", .computation = "mm"});
  MethodResult refused{.method = "base"};
  refused.trace.steps = {{.elapsed_s = 0.5}};
  results.benchmarks[0].methods = {refused, {.method = "idle"}};
  const std::vector<std::string> lines = lines_of(results_csv(results));
  EXPECT_EQ(lines[1], "none,mm,base,0,,,0,1,,0,,false,");
  EXPECT_EQ(lines[2], "none,mm,idle,0,,,0,0,,0,,false,");
}

TEST(MeasurementsCsv, HasARowPerMeasurementWithItsSchedule) {
  const auto space = environment::cursor_space(loop::parse_computation("mm m=16 n=16 k=16").value(),
                                               environment::ActionSet());
  FunctionEvaluator evaluator(by_hash(3));
  BenchmarkResult benchmark{.benchmark = "mm"};
  MethodResult method{.method = "random"};
  method.trace =
      run_search(*space, SearchMethod::parse("random").value(), evaluator, {.measurements = 20}, 1,
                 {.unit = loop::VectorUnit::of(CpuIsa::kAvx2), .now_seconds = [] { return 0.0; }})
          .value();
  benchmark.methods = {method};
  const std::vector<std::string> lines = lines_of(measurements_csv({}, benchmark, *space));
  ASSERT_EQ(lines.size(), 22U);
  EXPECT_EQ(lines[0], "method,measurement,elapsed_s,gflops,best_gflops,run_ns,schedule");
  double best = 0;
  bool has_refused = false;
  for (std::size_t i = 0; i < 20; ++i) {
    const SearchStep& step = method.trace.steps[i];
    best = std::max(best, step.gflops);
    const bool is_refused = !(step.gflops > 0);
    has_refused = has_refused || is_refused;
    EXPECT_TRUE(lines[i + 1].starts_with(
        concat("random,", i + 1, ",0,", step.gflops, ",", best, ",",
               is_refused ? std::string() : concat(1e9 * step.seconds), ",")))
        << lines[i + 1];
    // What is listed leads to what was measured.
    std::string_view schedule = lines[i + 1];
    schedule.remove_prefix(lines[i + 1].find_last_of('"') == std::string::npos
                               ? lines[i + 1].rfind(',') + 1
                               : lines[i + 1].find('"') + 1);
    schedule = schedule.substr(0, schedule.find('"'));
    const auto actions = loop::parse_schedule(space->computation(), schedule);
    ASSERT_TRUE(actions) << actions.error().message;
    const auto nest = loop::apply_all(space->computation(), *actions);
    ASSERT_TRUE(nest) << nest.error().message;
    EXPECT_EQ(space->config({.nest = *nest, .cursor = 0}), step.config);
  }
  EXPECT_TRUE(has_refused);
}

class PlotSizes : public testing::TestWithParam<std::pair<std::size_t, std::size_t>> {};

TEST_P(PlotSizes, AreWellFormedWithAllMethodsAndBenchmarks) {
  const auto [methods, benchmarks] = GetParam();
  const SearchResults results = typical_results(methods, benchmarks);
  for (const Plot plot : kPlots) {
    const std::string svg = plot(results);
    EXPECT_EQ(plot_defect(svg), "");
    EXPECT_EQ(svg, plot(results));
    for (const MethodResult& method : results.benchmarks[0].methods) {
      EXPECT_THAT(svg, HasSubstr(concat(">", method.method, "</text>")));
    }
    for (const BenchmarkResult& benchmark : results.benchmarks) {
      EXPECT_THAT(svg, HasSubstr(benchmark.benchmark));
    }
    EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlotSizes,
                         testing::Values(std::pair(1, 1), std::pair(2, 1), std::pair(4, 3),
                                         std::pair(2, 4), std::pair(13, 1), std::pair(13, 25)));

TEST(Plots, NothingToDrawIsEmpty) {
  SearchResults nothing_runs = typical_results(3, 2);
  for (BenchmarkResult& benchmark : nothing_runs.benchmarks) {
    for (MethodResult& method : benchmark.methods) {
      method.gflops = 0;
    }
  }
  for (const Plot plot : kPlots) {
    EXPECT_EQ(plot({}), "");
    EXPECT_EQ(plot({.benchmarks = {{.benchmark = "a"}}}), "");
    EXPECT_EQ(plot(nothing_runs), "");
  }
}

TEST(Plots, WhatIsMissingIsLeftOut) {
  SearchResults results = typical_results(4, 5);
  results.peak_gflops = 0;
  results.benchmarks[0].base_gflops = 0;
  results.benchmarks[1].methods[2].gflops = 0;
  results.benchmarks[1].methods[2].trace = {};
  results.benchmarks[1].methods[2].gflops_after = {};
  results.benchmarks[2].methods[3].gflops_after[1] = 0;
  for (MethodResult& method : results.benchmarks[3].methods) {
    method.trace.elapsed_s = 0;
  }
  for (const Plot plot : kPlots) {
    const std::string svg = plot(results);
    EXPECT_EQ(plot_defect(svg), "");
    EXPECT_THAT(svg, Not(HasSubstr("of the peak")));
  }
}

TEST(Plots, NamesFromElsewhereMarkUpNothing) {
  SearchResults results = typical_results(2, 2);
  results.benchmarks[0].benchmark = "</text><script>\"'&";
  for (BenchmarkResult& benchmark : results.benchmarks) {
    benchmark.methods[0].method = "<b>&\x01";
  }
  for (const Plot plot : kPlots) {
    const std::string svg = plot(results);
    EXPECT_EQ(plot_defect(svg), "");
    EXPECT_THAT(svg, Not(HasSubstr("<script")));
    EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  }
}

TEST(BarsSvg, SaysWhichMethodIsBestAndByHowMuch) {
  SearchResults results = typical_results(2, 1);
  results.benchmarks[0].base_gflops = 10;
  results.benchmarks[0].methods[0].gflops = 40;
  results.benchmarks[0].methods[1].gflops = 50;
  EXPECT_THAT(bars_svg(results), HasSubstr(">guided finds the fastest schedules, 25 % ahead of "
                                           "base<"));
  EXPECT_THAT(bars_svg(results), HasSubstr(">5.00\u00d7<"));
  EXPECT_THAT(bars_svg(results), HasSubstr(">peak 134<"));
}

TEST(ViolinSvg, FewValuesArePointsAndNoDistribution) {
  EXPECT_EQ(count_of(violin_svg(typical_results(2, 3)), "<polygon"), 0U);
  EXPECT_EQ(count_of(violin_svg(typical_results(2, 3)), "<circle"), 6U);
  EXPECT_EQ(count_of(violin_svg(typical_results(2, 4)), "<polygon"), 2U);
}

TEST(GainSvg, DrawsALinePerMethodAndPanelAndEveryBenchmarkBehind) {
  // Both panels and the legend.
  EXPECT_EQ(count_of(gain_svg(typical_results(3, 1)), "<polyline class=\"mean"), 9U);
  EXPECT_EQ(count_of(gain_svg(typical_results(3, 1)), "<polyline class=\"one"), 0U);
  EXPECT_EQ(count_of(gain_svg(typical_results(3, 5)), "<polyline class=\"one"), 30U);
}

TEST(GainSvg, MeansAreGeometric) {
  SearchResults results = typical_results(1, 2);
  results.peak_gflops = 100;
  for (std::size_t i = 0; i < 2; ++i) {
    MethodResult& method = results.benchmarks[i].methods[0];
    method.gflops = i == 0 ? 20 : 80;
    method.gflops_after = {method.gflops};
  }
  EXPECT_THAT(gain_svg(results), HasSubstr("<title>base: 40.0 % after 0 actions</title>"));
}

}  // namespace
}  // namespace foretune::autoschedule
