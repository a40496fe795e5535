#include "foretune/report/search_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "foretune/evaluate/testing/evaluation_samples.h"

namespace foretune {
namespace {

SearchReport sample_report(bool is_absolute) {
  SearchReport report{.problem = sample_problem(100, 200, 300),
                      .schema = sample_schema(),
                      .strategy = "de",
                      .is_absolute = is_absolute,
                      .found = {},
                      .measured = {},
                      .machine = {}};
  for (std::int32_t c = 0; c < 3; ++c) {
    report.found.ranked.push_back({sample_config(c), std::log(1000.0) + 0.1 * c});
  }
  report.found.scored = 40;
  report.found.legal_configs = 1234;
  return report;
}

Measurement timed(std::int32_t c, double time_ns, Outcome outcome = Outcome::kOk) {
  Dataset dataset(sample_header());
  add_sample(dataset, sample_problem(100, 200, 300), sample_config(c), time_ns,
             {.outcome = outcome});
  return dataset.measurement(0);
}

TEST(SearchReport, ListsPredictionsOnlyWhereNothingWasMeasured) {
  const SearchReport report = sample_report(false);
  const std::string text = search_text(report, false);
  EXPECT_NE(text.find("scored 40 of 1,234 legal configs (de)"), std::string::npos);
  EXPECT_NE(text.find("+10.5 %  c=1 d=0"), std::string::npos) << text;
  EXPECT_NE(text.find("ratios within a problem"), std::string::npos);
  EXPECT_EQ(text.find("measured"), std::string::npos);
  const auto json = nlohmann::json::parse(search_json(report, "foretune search"));
  EXPECT_EQ(json["metrics"]["scored"], 40);
  EXPECT_FALSE(json["metrics"].contains("efficiency"));
  EXPECT_TRUE(json["ranking"][0]["time_ns"].is_null());
  EXPECT_TRUE(json["ranking"][0]["measured_ns"].is_null());
  EXPECT_TRUE(json["default"].is_null());
}

TEST(SearchReport, SaysHowFarTheSearchStaysBehindScoringEverything) {
  SearchReport report = sample_report(true);
  report.found.best_score = std::log(900.0);
  report.found.efficiency = 0.9;
  report.found.better = 7;
  EXPECT_NE(search_text(report, false).find("reach 90.0 % of the best of all; 7 score better"),
            std::string::npos);
  auto json = nlohmann::json::parse(search_json(report, ""));
  EXPECT_DOUBLE_EQ(json["metrics"]["efficiency"], 0.9);
  EXPECT_EQ(json["metrics"]["better"], 7);
  EXPECT_NEAR(json["ranking"][0]["time_ns"].get<double>(), 1000, 1e-6);
  EXPECT_NEAR(json["ranking"][0]["tflops"].get<double>(), 2.0 * 100 * 200 * 300 / 1e6, 1e-9);
  report.found.better = 0;
  EXPECT_NE(search_text(report, false).find("none of all legal configs scores better"),
            std::string::npos);
}

TEST(SearchReport, PutsMeasuredTimesAndFailuresBesidePredictions) {
  SearchReport report = sample_report(false);
  report.measured = {timed(0, 2000), timed(1, 0, Outcome::kCrashed), timed(2, 1000),
                     timed(9, 4000)};
  const std::string text = search_text(report, false);
  EXPECT_NE(text.find("+100.0 %  c=0 d=0"), std::string::npos) << text;
  EXPECT_NE(text.find("crashed  c=1 d=0"), std::string::npos) << text;
  EXPECT_NE(text.find("+0.0 %  c=2 d=0"), std::string::npos) << text;
  EXPECT_NE(text.find("default"), std::string::npos);
  const auto json = nlohmann::json::parse(search_json(report, ""));
  EXPECT_EQ(json["metrics"]["best_measured_ns"], 1000);
  EXPECT_TRUE(json["ranking"][1]["measured_ns"].is_null());
  EXPECT_EQ(json["default"]["measured_ns"], 4000);
}

}  // namespace
}  // namespace foretune
