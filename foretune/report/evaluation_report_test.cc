#include "foretune/report/evaluation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/evaluate/evaluate.h"
#include "foretune/evaluate/testing/evaluation_samples.h"
#include "foretune/report/internal/figure_text.h"
#include "foretune/report/internal/plots.h"
#include "foretune/report/testing/html.h"

namespace foretune {
namespace {

using report_internal::gain_text;
using report_internal::interval_text;
using report_internal::percent_text;
using report_internal::time_text;
using testing::HasSubstr;

constexpr std::string_view kSource = "Foretune; data set a.ftd 1234";

constexpr std::string_view kHostile = "<script src=\"//x\">alert('&')</script>\x1b[31m";

Evaluation sample_evaluation(std::size_t problems, std::size_t configs, double noise,
                             std::uint64_t seed = 1) {
  Rng rng(seed);
  Dataset dataset = random_dataset(problems, configs, true, rng);
  for (std::uint32_t p = 0; p < problems; p += 2) {
    dataset.add_baseline({p, "blas", 5000});
  }
  const Dataset training = random_dataset(30, configs, true, rng);
  EvaluateOptions options{.bootstrap_samples = 100};
  options.training = &training;
  const auto ranked = rank_with_scores(dataset, noisy_scores(dataset, noise, rng));
  return *evaluate(dataset, ranked, nullptr, options);
}

// Everything from elsewhere that ends up in a report.
Evaluation hostile_evaluation() {
  Evaluation out = sample_evaluation(12, 10, 1);
  out.baselines[0].name = kHostile;
  out.facts.emplace_back(kHostile, kHostile);
  out.warnings.emplace_back(kHostile);
  out.worst[0].problem = kHostile;
  out.worst[0].pick = kHostile;
  out.worst[0].note = kHostile;
  out.map[0].problem = kHostile;
  out.slices[0].value = kHostile;
  out.map_x = kHostile;
  return out;
}

std::string without_colors(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = text.find('m', i);
      continue;
    }
    out += text[i];
  }
  return out;
}

TEST(HtmlChecker, FindsDefects) {
  EXPECT_EQ(html_defect("<!DOCTYPE html><p a=\"x > y\">1 &lt; 2<br/></p>"), "");
  for (const char* bad : {"<!DOCTYPE html><p>", "<!DOCTYPE html><p></b></p>", "<!DOCTYPE html></p>",
                          "<!DOCTYPE html><p a=b></p>", "<!DOCTYPE html><p>a & b</p>",
                          "<!DOCTYPE html><p", "<!DOCTYPE html><p <b></b>></p>"}) {
    EXPECT_NE(html_defect(bad), "") << bad;
  }
}

TEST(NumberText, IsTheSameEverywhere) {
  EXPECT_EQ(percent_text(0.96849), "96.8");
  EXPECT_EQ(percent_text(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(interval_text({0.5, 0.4, 0.6}), "40.0 to 60.0");
  EXPECT_EQ(gain_text(0.115), "+11.5");
  EXPECT_EQ(gain_text(-0.02), "-2.0");
  EXPECT_EQ(time_text(812), "812 ns");
  EXPECT_EQ(time_text(3.5), "3.5 ns");
  EXPECT_EQ(time_text(3520), "3.52 us");
  EXPECT_EQ(time_text(1.24e6), "1.24 ms");
  EXPECT_EQ(time_text(2e9), "2.00 s");
  EXPECT_EQ(time_text(-1), "-");
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(1234567), "1,234,567");
}

TEST(ReportText, FitsAHundredColumns) {
  for (const Evaluation& evaluation :
       {sample_evaluation(1, 1, 0), sample_evaluation(40, 30, 0.6), hostile_evaluation()}) {
    const std::string text = report_text(evaluation, false);
    for (const std::string_view line : split(text, '\n')) {
      EXPECT_LE(line.size(), 100U) << line;
      EXPECT_FALSE(line.ends_with(' ')) << "'" << line << "'";
    }
    EXPECT_EQ(text.find('\033'), std::string::npos);
  }
}

TEST(ReportText, ColoursChangeNothingElse) {
  const Evaluation evaluation = sample_evaluation(20, 10, 0.6);
  const std::string colored = report_text(evaluation, true);
  EXPECT_NE(colored.find("\033[1m"), std::string::npos);
  // Blanks at line ends are cut only where no colour code hides them.
  std::string plain = without_colors(colored);
  std::string out;
  for (const std::string_view line : split(plain, '\n')) {
    out += std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
  }
  out.pop_back();
  EXPECT_EQ(out, report_text(evaluation, false));
}

TEST(ReportText, LetsNoControlCharactersThrough) {
  const std::string text = report_text(hostile_evaluation(), false);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\n' || static_cast<unsigned char>(c) >= 0x20;
  }));
}

TEST(ReportJson, IsTheEnvelopeWithNumbersOnly) {
  const Evaluation evaluation = sample_evaluation(30, 20, 0.5);
  Fingerprint machine;
  machine.device = "device \"x\"";
  const auto json =
      nlohmann::json::parse(report_json(evaluation, "validate-model", "a b", machine));
  EXPECT_EQ(json["name"], "validate-model");
  EXPECT_EQ(json["command"], "a b");
  EXPECT_EQ(json["machine"]["device"], "device \"x\"");
  for (const auto& [name, value] : json["metrics"].items()) {
    EXPECT_TRUE(value.is_number()) << name;
  }
  for (const char* name :
       {"mean_efficiency", "mean_efficiency_low", "p10_efficiency", "min_efficiency",
        "top5_measured_efficiency", "best_single_config_efficiency", "unseen_problems", "top1_hit",
        "rmse_log", "spearman_mean", "random_efficiency", "vendor_blas_efficiency",
        "portfolio_4_efficiency", "nearest_problem_efficiency", "gain_over_best_single_config"}) {
    EXPECT_TRUE(json["metrics"].contains(name)) << name;
  }
  EXPECT_EQ(json["metrics"]["mean_efficiency"].get<double>(),
            evaluation.model.mean_efficiency.value);
  EXPECT_EQ(json["baselines"].size(), evaluation.baselines.size());
  EXPECT_EQ(json["slices"].size(), evaluation.slices.size());
  EXPECT_EQ(json["worst"].size(), evaluation.worst.size());
  EXPECT_EQ(json["warnings"].size(), evaluation.warnings.size());
  EXPECT_EQ(json["problems"].size(), evaluation.map.size());
}

TEST(ReportJson, SurvivesWhatJsonCannotSay) {
  Evaluation evaluation = hostile_evaluation();
  evaluation.spearman_mean = std::numeric_limits<double>::quiet_NaN();
  evaluation.rmse_log = std::numeric_limits<double>::infinity();
  evaluation.worst[0].pick = "not \xff utf-8";
  const auto json = nlohmann::json::parse(report_json(evaluation, "n", "c", {}));
  EXPECT_FALSE(json["metrics"].contains("spearman_mean"));
  EXPECT_FALSE(json["metrics"].contains("rmse_log"));
}

TEST(Reports, HoldTheSameNumbers) {
  const Evaluation evaluation = sample_evaluation(35, 25, 0.4);
  const auto json = nlohmann::json::parse(report_json(evaluation, "n", "c", {}));
  const std::string text = report_text(evaluation, false);
  const std::string html = report_html(evaluation, "title", kSource);
  const auto expect_in_both = [&](const std::string& number) {
    EXPECT_TRUE(text.find(number) != std::string::npos) << number;
    EXPECT_TRUE(html.find(number) != std::string::npos) << number;
  };
  for (const char* name : {"mean_efficiency", "median_efficiency", "p10_efficiency",
                           "min_efficiency", "geomean_efficiency", "top5_measured_efficiency"}) {
    const auto& metrics = json["metrics"];
    expect_in_both(percent_text(metrics[name].get<double>()));
    expect_in_both(interval_text({0, metrics[std::string(name) + "_low"].get<double>(),
                                  metrics[std::string(name) + "_high"].get<double>()}));
  }
  for (const char* name : {"top1_hit", "top3_hit", "top5_hit", "top10_hit"}) {
    expect_in_both(percent_text(json["metrics"][name].get<double>()));
  }
  for (const char* name : {"rmse_log", "spearman_mean", "spearman_median"}) {
    expect_in_both(fixed(json["metrics"][name].get<double>(), 3));
  }
  for (const auto& baseline : json["baselines"]) {
    SCOPED_TRACE(baseline["key"].get<std::string>());
    expect_in_both(percent_text(baseline["mean_efficiency"]["value"].get<double>()));
    expect_in_both(percent_text(baseline["min_efficiency"]["value"].get<double>()));
    expect_in_both(gain_text(baseline["model_gain"]["value"].get<double>()));
    // Pickers that need hindsight are not drawn: nobody could measure them.
    if (!baseline["measured_curve"].empty() &&
        baseline["key"] != "best_single_config_in_hindsight") {
      expect_in_both(percent_text(baseline["measured_curve"][4].get<double>()));
    }
  }
  const auto& judged = json["model"]["top5_judges_itself"];
  ASSERT_GT(judged.get<int>(), 0);
  expect_in_both(concat("On ", judged.get<int>(), " problems"));
  for (const auto& slice : json["slices"]) {
    expect_in_both(percent_text(slice["p10_efficiency"].get<double>()));
  }
  for (const auto& entry : json["worst"]) {
    expect_in_both(percent_text(entry["efficiency"].get<double>()));
    expect_in_both(time_text(entry["best_ns"].get<double>()));
    expect_in_both(entry["problem"].get<std::string>());
  }
}

TEST(Reports, SayNothingOfChoicesThatOtherTimesJudged) {
  Evaluation evaluation = sample_evaluation(35, 25, 0.4);
  evaluation.model.top5_judges_itself = 0;
  EXPECT_EQ(report_text(evaluation, false).find("flatters"), std::string::npos);
  EXPECT_EQ(report_html(evaluation, "title", kSource).find("flatters"), std::string::npos);
}

TEST(ReportHtml, IsWellFormedAndSelfContained) {
  for (const Evaluation& evaluation : {sample_evaluation(1, 1, 0), sample_evaluation(2, 3, 2),
                                       sample_evaluation(60, 40, 0.5), hostile_evaluation()}) {
    const std::string html = report_html(evaluation, std::string(kHostile), kSource);
    EXPECT_EQ(html_defect(html), "");
    for (const char* reference : {"<script", "<link", "<img", "<iframe", "href=", "url(", "@import",
                                  "\x1b", "nan", "inf\""}) {
      EXPECT_EQ(html.find(reference), std::string::npos) << reference;
    }
    // The only address is the text of the hostile name.
    EXPECT_EQ(html.find("src=\""), std::string::npos);
    EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
    EXPECT_THAT(html, HasSubstr("<title>&lt;script src="));
  }
}

TEST(ReportHtml, StaysSmallForManyProblems) {
  const Evaluation evaluation = sample_evaluation(2000, 20, 0.5);
  const std::string html = report_html(evaluation, "many", kSource);
  EXPECT_LT(html.size(), 2'000'000U);
  EXPECT_EQ(html_defect(html), "");
}

TEST(ReportHtml, ShowsHowNetworksWereTrainedWhereTheirModelSaysSo) {
  const std::string heading = "<h3>Losses of the networks over the epochs of their training</h3>";
  Evaluation evaluation = sample_evaluation(12, 10, 1);
  EXPECT_EQ(report_html(evaluation, "trees", kSource).find(heading), std::string::npos);
  evaluation.trained =
      training_curves(concat(R"({"options": {"loss": ")", "<script>",
                             R"("}, "training": {"curves": )", sample_curves_json(), "}}"));
  ASSERT_EQ(evaluation.trained.curves.size(), 2U);
  const std::string html = report_html(evaluation, "networks", kSource);
  EXPECT_EQ(html_defect(html), "");
  EXPECT_THAT(html, HasSubstr(heading));
  EXPECT_THAT(html, HasSubstr("<title>fold 2: 9 epochs, best 4: "));
  EXPECT_THAT(html, HasSubstr("<td>fold 2</td><td>9</td><td>4</td><td>0.02</td><td>0.03</td>"));
  EXPECT_THAT(html, HasSubstr("loss (&lt;script&gt;)"));
}

TEST(ReportHtml, DrawsNothingWhereThereIsNothing) {
  Evaluation evaluation = sample_evaluation(3, 3, 0.5);
  evaluation.map.clear();
  evaluation.points.clear();
  evaluation.slices.clear();
  evaluation.worst.clear();
  evaluation.warnings.clear();
  evaluation.baselines.clear();
  EXPECT_EQ(report_internal::map_plot(evaluation).drawing, "");
  EXPECT_EQ(report_internal::prediction_plot(evaluation).drawing, "");
  EXPECT_EQ(html_defect(report_html(evaluation, "empty", kSource)), "");
  EXPECT_FALSE(report_text(evaluation, false).empty());
}

TEST(ReportFigures, HaveTitleUnitsAndSource) {
  const Evaluation evaluation = sample_evaluation(30, 20, 0.5);
  const std::vector<FigureFile> files = report_figures(evaluation, kSource);
  std::vector<std::string> names;
  for (const FigureFile& file : files) {
    names.push_back(file.name);
    EXPECT_EQ(figure_defect(file.svg, std::string(kSource)), "") << file.name;
  }
  EXPECT_THAT(names, testing::IsSupersetOf(
                         {"picks", "distribution", "curve", "map", "duration", "prediction"}));
  const std::string html = report_html(evaluation, "title", kSource);
  EXPECT_EQ(count_of(html, "<figure>"), files.size());
  EXPECT_EQ(count_of(html, std::string(kSource)), files.size() + 1)
      << "and at the foot of the page";
}

TEST(ReportFigures, ShowIntervalsOfTheMeans) {
  const Evaluation evaluation = sample_evaluation(30, 20, 0.5);
  const std::string svg = report_figures(evaluation, kSource).front().svg;
  EXPECT_THAT(svg, HasSubstr(concat(percent_text(evaluation.model.mean_efficiency.value), " %, ",
                                    interval_text(evaluation.model.mean_efficiency))));
  EXPECT_THAT(svg, HasSubstr("95 % interval"));
}

// Each class of colour has one shape of its own.
TEST(ReportFigures, EfficienciesDifferByShapeToo) {
  Evaluation evaluation = sample_evaluation(5, 5, 0.5);
  std::set<std::string> shapes;
  for (const double efficiency : {1.0, 0.96, 0.92, 0.85, 0.5}) {
    evaluation.map = {{.problem = "p", .x = 2, .y = 2, .best_ns = 10, .efficiency = efficiency}};
    const std::string drawing = report_internal::map_plot(evaluation).drawing;
    std::string mark = drawing.substr(
        drawing.find(concat(" class=\"dot ", report_internal::efficiency_class(efficiency), "\"")));
    mark = mark.substr(0, mark.find('>'));
    shapes.insert(mark.substr(mark.find("\" ")));
  }
  EXPECT_EQ(shapes.size(), 5U);
}

TEST(ReportFigures, NoTwoSeriesHaveColourOrMarkInCommon) {
  std::set<std::string> looks;
  for (std::size_t number = 0; number < 7; ++number) {
    looks.insert(report_internal::series_entry({}, number).glyph);
  }
  EXPECT_EQ(looks.size(), 7U);
  std::set<std::pair<formats::Mark, std::string>> lines;
  for (std::size_t number = 0; number < 35; ++number) {
    const std::string style = report_internal::series_class(number);
    lines.emplace(report_internal::series_mark(number), style.substr(style.find(' ')));
  }
  EXPECT_EQ(lines.size(), 35U) << "marks and strokes alone tell 35 lines apart";
}

TEST(LossSvg, HasTitleUnitsAndSource) {
  const TrainingCurves trained =
      training_curves(concat(R"({"training": {"curves": )", sample_curves_json(), "}}"));
  EXPECT_EQ(figure_defect(loss_svg(trained, "the source"), "the source"), "");
  EXPECT_EQ(loss_svg({}, "the source"), "");
}

}  // namespace
}  // namespace foretune
