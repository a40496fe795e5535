#include "foretune/report/tune_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "foretune/evaluate/testing/evaluation_samples.h"
#include "foretune/report/internal/tune_analysis.h"
#include "foretune/report/internal/tune_plots.h"
#include "foretune/report/testing/html.h"

namespace foretune {
namespace {

using report_internal::analyse_tuning;
using report_internal::metric_gain_text;
using report_internal::TuneAnalysis;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::vector<MetricInfo>& infos() {
  static const std::vector<MetricInfo> known{
      metric_info(kPackNs), {.name = "accuracy", .unit = "%", .direction = Direction::kMaximise}};
  return known;
}

struct Point {
  double time_ns;
  double pack_ns;
  double accuracy;
};

TunedConfig tuned(const Judge& judge, std::int32_t config, const Point& point, double spread) {
  TunedConfig out{.config = sample_config(config), .time_ns = point.time_ns, .spread = spread};
  out.values = {
      {kTimeNs, point.time_ns, spread, 15}, {kPackNs, point.pack_ns}, {"accuracy", point.accuracy}};
  out.judgement = judge.judge(out.values);
  return out;
}

// All points measured, those of `finalists` compared again, the last of all the default.
TuneResult result_of(const std::string& objective, const std::vector<Point>& points,
                     const std::vector<std::size_t>& finalists, bool has_default = true) {
  TuneResult out;
  const Point& last = points.back();
  if (has_default) {
    out.baseline = {{kTimeNs, last.time_ns}, {kPackNs, last.pack_ns}, {"accuracy", last.accuracy}};
  }
  const auto parsed = Objective::parse(objective);
  EXPECT_TRUE(parsed) << parsed.error().message;
  const auto judge = Judge::create(*parsed, infos(), out.baseline);
  EXPECT_TRUE(judge) << judge.error().message;
  out.judge = *judge;
  for (std::size_t i = 0; i < points.size(); ++i) {
    out.measured.push_back(tuned(*judge, static_cast<std::int32_t>(i), points[i], 0));
    out.steps.push_back({.config = out.measured.back().config, .time_ns = points[i].time_ns});
  }
  for (const std::size_t i : finalists) {
    out.finalists.push_back(tuned(*judge, static_cast<std::int32_t>(i), points[i], 0.02));
  }
  if (has_default) {
    out.by_default = tuned(*judge, static_cast<std::int32_t>(points.size()) - 1, last, 0.01);
  }
  out.progress.measured = points.size() + finalists.size();
  out.progress.elapsed_s = 3;
  out.legal_configs = 1234;
  return out;
}

const std::vector<Point>& points() {
  static const std::vector<Point> all{{1000, 8000, 97}, {2000, 1000, 96}, {4000, 0, 95},
                                      {4100, 900, 94},  {9000, 20, 90},   {3000, 6000, 95}};
  return all;
}

std::string text_of(const TuneResult& result) {
  return tune_text(sample_problem(100), result, sample_schema());
}

TEST(PackingTest, PaysWhereItMakesRunsFaster) {
  const TuneResult result = result_of("pareto time_ns pack_ns", points(), {0, 1, 2, 3});
  const auto text = [&](std::size_t i) {
    return report_internal::packing_text(report_internal::packing_of(result, result.finalists[i]));
  };
  EXPECT_EQ(text(0), "3 runs");
  EXPECT_EQ(text(1), "1 run");
  EXPECT_EQ(text(2), "-") << "packs nothing";
  EXPECT_EQ(text(3), "never");
  EXPECT_THAT(
      tune_json({}, std::vector<TunedProblem>{{sample_problem(100), result}}, sample_schema()),
      HasSubstr("\"packing_pays_after_runs\""));
  const TuneResult all_packed =
      result_of("minimise time_ns", {{1000, 10, 1}, {900, 20, 1}}, {0, 1});
  EXPECT_FALSE(report_internal::packing_of(all_packed, all_packed.finalists[0]));
}

TEST(TuneText, NamesAMultipleWhereAConfigIsFarSlower) {
  const std::string text = text_of(
      result_of("minimise time_ns", {{1000, 0, 1}, {1125, 0, 1}, {24400, 0, 1}}, {0, 1, 2}));
  EXPECT_THAT(text, HasSubstr("  12.5 %  "));
  EXPECT_THAT(text, HasSubstr("  24.4 x  "));
}

TEST(TuneText, OfTheTimeAloneIsAListOfTimes) {
  const TuneResult result = result_of("minimise time_ns", points(), {0, 1});
  EXPECT_EQ(text_of(result),
            "gemm op=mm m=100 n=64 k=64 batch=1 dtype=f32 layout=rrr\n"
            "measured 8 times; 1,234 legal configs, 1,228 of them not tried, 3 s\n"
            "best: c=0 d=0\n"
            "      1.00 us  819.2 GFLOP/s  3.00 times as fast as the default config\n"
            "      packing takes 8.00 us, pays after: 3 runs\n"
            "  rank      time  spread  slower  config\n"
            "     1   1.00 us   2.0 %       -  c=0 d=0\n"
            "     2   2.00 us   2.0 % 100.0 %  c=1 d=0\n"
            "default  3.00 us   1.0 % 200.0 %  c=5 d=0\n");
}

TEST(TuneText, SaysHowMuchOfTheSpaceWasTried) {
  TuneResult result = result_of("minimise time_ns", points(), {0});
  result.progress.measured = 1;
  result.exhausted = true;
  EXPECT_THAT(text_of(result),
              HasSubstr("measured 1 time; 1,234 legal configs, all of them tried, "));
  result.exhausted = false;
  result.legal_configs = result.steps.size();
  EXPECT_THAT(text_of(result), HasSubstr("measured 1 time; 6 legal configs, 3 s\n"));
  result.legal_configs.reset();
  EXPECT_THAT(text_of(result), HasSubstr("measured 1 time, 3 s\n"));
}

TEST(TuneText, SaysTheBoundsAndHowManyMetThem) {
  const TuneResult result =
      result_of("minimise time_ns subject to pack_ns <= 0.5 * baseline and accuracy >= 95 keep 94",
                points(), {1, 2});
  EXPECT_EQ(
      text_of(result),
      "gemm op=mm m=100 n=64 k=64 batch=1 dtype=f32 layout=rrr\n"
      "measured 8 times; 1,234 legal configs, 1,228 of them not tried, 3 s\n"
      "objective: minimise time_ns subject to pack_ns <= 0.5 * baseline and accuracy >= 95 "
      "keep 94\n"
      "bound: pack_ns <= 3.00 us (0.5 * baseline); the baseline has 6.00 us\n"
      "bound: accuracy >= 95 %, kept down to 94 %\n"
      "2 configs meet the bounds, 1 more is kept, 3 miss one\n"
      "best: c=1 d=0\n"
      "     rank  time_ns  spread   gain  pack_ns   gain  accuracy  gain  pays after  config\n"
      "        1  2.00 us   2.0 %  1.50x  1.00 us  6.00x      96 %    +1       1 run  c=1 d=0\n"
      "        2  4.00 us   2.0 %  0.75x     0 ns      -      95 %    +0           -  c=2 d=0\n"
      "  default  3.00 us   1.0 %         6.00 us             95 %            6 runs  c=5 d=0\n");
}

TEST(TuneText, OfSeveralTargetsIsAFrontWithItsKnee) {
  const TuneResult result = result_of("pareto time_ns pack_ns", points(), {0, 1, 2}, false);
  const std::string text = text_of(result);
  EXPECT_THAT(text, HasSubstr("front: 3 of 6 configs, 3 dominated; 3 remain after the final "
                              "comparison\n"));
  // 7000 * 7000 and 5000 * 1000 of the box from 1000 to 9000 and from 0 to 8000.
  EXPECT_THAT(text, HasSubstr("hypervolume: 84.4 % of the box from the best of each target to the "
                              "worst (time_ns 9.00 us, pack_ns\n    8.00 us)\n"));
  EXPECT_THAT(text, HasSubstr("\n  knee 2  2.00 us   2.0 %  1.00 us       1 run  c=1 d=0\n"));
  EXPECT_THAT(text, Not(HasSubstr("gain")));
}

TEST(TuneText, LongConfigsHaveLinesOfTheirOwn) {
  const TuneResult result = result_of("pareto time_ns pack_ns", points(), {0, 1, 2});
  ConfigSchema schema = sample_schema();
  schema.parameters[0].name = std::string(60, 'p');
  const std::string text = tune_text(sample_problem(100), result, schema);
  for (std::size_t i = 0, end = 0; end != std::string::npos; i = end + 1) {
    end = text.find('\n', i);
    EXPECT_LE(std::min(end, text.size()) - i, 100U) << text;
  }
  EXPECT_THAT(text, HasSubstr("\n        " + std::string(60, 'p') + "=1 d=0\n"));
}

TEST(TuneText, SaysWhenNothingMetABoundInTheEnd) {
  TuneResult result = result_of("maximise accuracy subject to time_ns <= 1.5 us", points(), {0});
  result.finalists.front() = tuned(*result.judge, 0, {1501, 0, 97}, 0);
  EXPECT_THAT(text_of(result), HasSubstr("In the final comparison 1 config misses a bound"));
}

TEST(TuneAnalysis, OnePointHasNoHypervolume) {
  const TuneResult result = result_of("pareto time_ns pack_ns", {{1000, 0, 90}}, {0}, false);
  const TuneAnalysis analysis = analyse_tuning(result);
  EXPECT_THAT(analysis.front, ElementsAre(0));
  EXPECT_FALSE(analysis.knee);
  EXPECT_EQ(report_internal::chosen_finalist(result, analysis), 0U);
  EXPECT_THAT(text_of(result), HasSubstr("hypervolume: none, for a target has the same value"));
}

TEST(TuneAnalysis, DoublesOfTheFrontAreNotDominated) {
  const TuneResult result =
      result_of("pareto time_ns accuracy", {{1, 0, 90}, {1, 0, 90}, {2, 0, 95}, {2, 0, 94}}, {0});
  const TuneAnalysis analysis = analyse_tuning(result);
  EXPECT_THAT(analysis.front, ElementsAre(0, 2));
  EXPECT_EQ(analysis.dominated, 1U);
  EXPECT_THAT(analysis.best, ElementsAre(1, 95));
  EXPECT_THAT(analysis.worst, ElementsAre(2, 90));
}

TEST(MetricText, HasAUnitThatFits) {
  EXPECT_EQ(metric_text(3524, "ns"), "3.52 us");
  EXPECT_EQ(metric_text(1.5, "ms"), "1.50 ms");
  EXPECT_EQ(metric_text(1536, "B"), "1.5 KiB");
  EXPECT_EQ(metric_text(97.2512, "%"), "97.25 %");
  EXPECT_EQ(metric_text(0.12345, ""), "0.1235");
  EXPECT_EQ(metric_text(std::nan(""), "ns"), "-");
}

TEST(MetricGainText, IsAFactorOrADifferenceAndMoreIsBetter) {
  const Judge judge = *Judge::create(*Objective::parse("pareto time_ns accuracy"), infos(), {});
  const MetricInfo& time = judge.metrics()[0];
  const MetricInfo& accuracy = judge.metrics()[1];
  EXPECT_EQ(metric_gain_text(judge, time, 100, 150), "1.50x");
  EXPECT_EQ(metric_gain_text(judge, time, 100, 0), "0.00x");
  EXPECT_EQ(metric_gain_text(judge, time, 0, 150), "-");
  EXPECT_EQ(metric_gain_text(judge, time, 0, 0), "1.00x");
  EXPECT_EQ(metric_gain_text(judge, accuracy, 97.5, 96), "+1.5");
  EXPECT_EQ(metric_gain_text(judge, accuracy, 95, 96), "-1");
  EXPECT_EQ(metric_gain_text(judge, accuracy, std::nan(""), 96), "-");
}

TEST(TuneJson, KeepsTheFiguresAndAddsAllResults) {
  Figures figures{.name = "tune", .metrics = {}, .machine = {{"device", "x"}}, .command = "tune"};
  figures.add("measurements", 9);
  const std::vector<TunedProblem> problems{
      {sample_problem(100),
       result_of("pareto time_ns pack_ns subject to accuracy >= baseline - 1 keep baseline - 2",
                 points(), {0, 1, 2})}};
  const auto json = nlohmann::json::parse(tune_json(figures, problems, sample_schema()));
  EXPECT_EQ(json["name"], "tune");
  EXPECT_EQ(json["metrics"]["measurements"], 9);
  EXPECT_EQ(json["machine"]["device"], "x");
  const auto& result = json["results"][0];
  EXPECT_EQ(result["problem"], sample_problem(100).text());
  EXPECT_EQ(result["metrics"][2]["direction"], "maximise");
  EXPECT_EQ(result["limits"][0]["limit"], 94);
  EXPECT_EQ(result["limits"][0]["keep"], 93);
  EXPECT_EQ(result["baseline"]["accuracy"], 95);
  EXPECT_EQ(result["configs"]["met"], 5);
  EXPECT_EQ(result["configs"]["missed"], 1);
  EXPECT_EQ(result["finalists"].size(), 3U);
  EXPECT_EQ(result["finalists"][1]["values"]["pack_ns"], 1000);
  EXPECT_EQ(result["finalists"][1]["spreads"]["time_ns"], 0.02);
  EXPECT_EQ(result["measured"].size(), 6U);
  EXPECT_EQ(result["measured"][4]["feasible"], false);
  EXPECT_EQ(result["default"]["config"], "c=5 d=0");
  EXPECT_EQ(result["front"], (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(result["knee"], 1);
  EXPECT_EQ(result["hypervolume"]["reference"]["time_ns"], 4100);
  EXPECT_GT(result["hypervolume"]["share"], 0.5);
}

std::string page_of(std::vector<TuneResult> results, std::string problem_name = "x") {
  TuneReport report{.problems = {},
                    .refused = {},
                    .schema = sample_schema(),
                    .facts = {{"command", std::move(problem_name)}}};
  std::int64_t size = 100;
  for (TuneResult& result : results) {
    report.problems.push_back({sample_problem(size++), std::move(result)});
  }
  return tune_html(report, "Tuning");
}

TEST(TuneHtml, IsWellFormedForEveryKindOfObjective) {
  for (const char* objective :
       {"minimise time_ns", "maximise accuracy", "minimise time_ns subject to time_ns <= 5 us",
        "minimise time_ns subject to accuracy >= 95 keep 94 and pack_ns <= 9 us",
        "pareto time_ns pack_ns", "pareto time_ns pack_ns subject to accuracy >= 95",
        "pareto accuracy time_ns pack_ns", "pareto pack_ns accuracy subject to pack_ns <= 0"}) {
    for (const bool has_default : {false, true}) {
      const std::string page = page_of({result_of(objective, points(), {2, 1}, has_default)});
      EXPECT_EQ(html_defect(page), "") << objective;
      EXPECT_THAT(page, HasSubstr("<svg")) << objective;
      EXPECT_THAT(page, Not(HasSubstr("nan"))) << objective;
      EXPECT_EQ(page.find("http"), std::string::npos) << objective;
    }
  }
}

TEST(TuneHtml, MarksZeroWhereAnAxisIsLogarithmic) {
  const std::string page = page_of({result_of("pareto time_ns pack_ns", points(), {0, 1, 2})});
  EXPECT_THAT(page, HasSubstr("class=\"break\""));
  EXPECT_THAT(page, HasSubstr(">0</text>"));
  EXPECT_THAT(page, HasSubstr(">knee</text>"));
  EXPECT_THAT(page, HasSubstr(">default</text>"));
  EXPECT_THAT(page, HasSubstr("class=\"step\""));
}

TEST(TuneHtml, ShadesTheForbiddenSideOfABound) {
  const std::string page = page_of(
      {result_of("minimise time_ns subject to accuracy >= 95 keep 94", points(), {0, 1, 2})});
  EXPECT_THAT(page, HasSubstr("class=\"forbidden\""));
  EXPECT_THAT(page, HasSubstr("class=\"forbidden loose\""));
  EXPECT_THAT(page, HasSubstr("&gt;= 95 %</text>"));
  EXPECT_THAT(page, HasSubstr("class=\"trial kept\""));
  EXPECT_THAT(page, HasSubstr("class=\"trial missed\""));
}

TEST(TuneHtml, ThreeTargetsHaveAPlotForEachPair) {
  const std::string page =
      page_of({result_of("pareto time_ns pack_ns accuracy", points(), {0, 1, 2})});
  EXPECT_EQ(count_of(page, "viewBox=\"0 0 480 330\""), 3U);
}

TEST(TuneHtml, SeveralProblemsHaveASummaryAndSections) {
  const TuneResult result = result_of("minimise time_ns", points(), {0, 1});
  const std::string page = page_of({result, result, result});
  EXPECT_EQ(html_defect(page), "");
  EXPECT_THAT(page, HasSubstr("All problems"));
  EXPECT_THAT(page, HasSubstr("<a href=\"#p3\">"));
  EXPECT_EQ(count_of(page, "<section id=\"p"), 3U);
  EXPECT_THAT(page, HasSubstr("3.00 times as fast as the default config"));
}

TEST(TuneHtml, ManyPointsAreClouds) {
  std::vector<Point> many;
  for (int i = 0; i < 1000; ++i) {
    many.push_back({1000.0 + i, 2000.0 - i, 90});
  }
  const std::string page = page_of({result_of("pareto time_ns accuracy", many, {0})});
  EXPECT_THAT(page, HasSubstr("class=\"cloud met\""));
  EXPECT_LT(page.size(), 60000U);
}

TEST(TuneHtml, EscapesWhatComesFromElsewhere) {
  const std::string hostile = "<script>alert('&')</script>";
  TuneReport report{.problems = {},
                    .refused = {{hostile, hostile}},
                    .schema = sample_schema(),
                    .facts = {{hostile, hostile}}};
  report.problems.push_back(
      {sample_problem(100), result_of("pareto time_ns pack_ns", points(), {0, 1, 2})});
  const std::string page = tune_html(report, hostile);
  EXPECT_EQ(html_defect(page), "");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(TuneFigures, HaveTitleUnitsAndSource) {
  TuneReport report{.problems = {},
                    .refused = {},
                    .schema = sample_schema(),
                    .facts = {},
                    .source = "the source"};
  for (const char* objective : {"minimise time_ns", "pareto time_ns pack_ns accuracy"}) {
    report.problems.push_back({sample_problem(100), result_of(objective, points(), {0, 1, 2})});
  }
  const std::vector<FigureFile> files = tune_figures(report);
  std::vector<std::string> names;
  for (const FigureFile& file : files) {
    names.push_back(file.name);
    EXPECT_EQ(figure_defect(file.svg, report.source), "") << file.name;
    EXPECT_THAT(file.svg, HasSubstr(sample_problem(100).text().substr(0, 10)));
  }
  EXPECT_THAT(names, ElementsAre("1-time_ns", "2-time_ns-pack_ns", "2-time_ns-accuracy",
                                 "2-pack_ns-accuracy"));
}

TEST(TuneFigures, KindsOfMarksDifferByShape) {
  const TuneResult result =
      result_of("minimise time_ns subject to accuracy >= 95 keep 94", points(), {0, 1, 2});
  const auto figure =
      report_internal::tune_plots(result, analyse_tuning(result), sample_schema()).front();
  std::set<std::string> glyphs;
  for (const report_internal::LegendEntry& entry : figure.legend) {
    std::string glyph = entry.glyph;
    // Without the class, which has the colour.
    for (std::size_t at = glyph.find("class=\""); at != std::string::npos;
         at = glyph.find("class=\"", at)) {
      glyph.erase(at, glyph.find('"', at + 7) - at + 1);
    }
    EXPECT_TRUE(glyphs.insert(glyph).second) << entry.text;
  }
}

}  // namespace
}  // namespace foretune
