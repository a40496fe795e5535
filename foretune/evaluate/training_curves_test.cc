#include "foretune/evaluate/training_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "foretune/base/text.h"
#include "foretune/evaluate/testing/evaluation_samples.h"
#include "foretune/report/evaluation_report.h"
#include "foretune/report/internal/plots.h"

namespace foretune {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

Json sample_curve() { return Json::parse(sample_curves_json())[0]; }

std::string card_of(const Json& curves) {
  Json card;
  card["kind"] = "network";
  card["networks"] = 1;
  card["options"]["loss"] = "mse";
  card["training"]["curves"] = curves;
  return card.dump();
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t out = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++out;
  }
  return out;
}

TEST(TrainingCurves, AreReadFromCardsOfNetworksAndOfEnsembles) {
  const Json card = Json::parse(card_of(Json::parse(sample_curves_json())));
  for (const std::string& text : {card.dump(), Json{{"networks", card}}.dump()}) {
    const TrainingCurves trained = training_curves(text);
    EXPECT_EQ(trained.loss, "mse");
    ASSERT_EQ(trained.curves.size(), 2U);
    const TrainingCurve& fold = trained.curves[0];
    EXPECT_EQ(fold.name, "fold 2");
    EXPECT_FALSE(fold.is_whole);
    EXPECT_EQ(fold.epochs, 9U);
    EXPECT_EQ(fold.best, (TrainingCurve::Point{4, 0.02, 0.03}));
    ASSERT_EQ(fold.points.size(), 3U);
    EXPECT_EQ(fold.points[2], (TrainingCurve::Point{9, 0.01, 0.05}));
    EXPECT_EQ(trained.curves[1].name, "all data");
    EXPECT_TRUE(trained.curves[1].is_whole);
    EXPECT_EQ(training_text(fold), "9 epochs, best 4: training loss 0.02, stopping loss 0.03");
  }
}

TEST(TrainingCurves, AreToldApartWhereThereAreSeveralNetworks) {
  Json first = sample_curve();
  Json second = first;
  second["network"] = 2;
  const TrainingCurves trained = training_curves(card_of(Json::array({first, second})));
  ASSERT_EQ(trained.curves.size(), 2U);
  EXPECT_EQ(trained.curves[0].name, "fold 2, network 1");
  EXPECT_EQ(trained.curves[1].name, "fold 2, network 2");
}

TEST(TrainingCurves, NeedNoStoppingProblems) {
  Json curve = sample_curve();
  curve.erase("stop_loss");
  const TrainingCurves trained = training_curves(card_of(Json::array({curve})));
  ASSERT_EQ(trained.curves.size(), 1U);
  EXPECT_TRUE(std::isnan(trained.curves[0].best.stop_loss));
  EXPECT_EQ(training_text(trained.curves[0]), "9 epochs, best 4: training loss 0.02");
  const std::string svg = loss_svg(trained, "source");
  EXPECT_EQ(count(svg, "<polyline class=\"series c0"), 0U);
  EXPECT_THAT(svg, Not(HasSubstr("stopping loss")));
  EXPECT_EQ(count(svg, " class=\"mark c1\""), 2U);  // the best, and in the legend
}

TEST(TrainingCurves, ThatDoNotHoldTogetherAreLeftOut) {
  for (const char* card : {"", "{", "[]", "null", "{\"training\": 3}",
                           "{\"training\": {\"curves\": 3}}", "{\"training\": {\"curves\": [3]}}",
                           "{\"networks\": {}, \"training\": {\"curves\": {}}}"}) {
    EXPECT_TRUE(training_curves(card).curves.empty()) << card;
    EXPECT_EQ(card_without_curves(card), card);
  }
  const auto is_read = [](const char* key, const Json& value) {
    Json curve = sample_curve();
    curve[key] = value;
    return !training_curves(card_of(Json::array({curve}))).curves.empty();
  };
  EXPECT_TRUE(is_read("epochs", 9));
  EXPECT_FALSE(is_read("epochs", 8));
  EXPECT_FALSE(is_read("epochs", -1));
  EXPECT_FALSE(is_read("epochs", "9"));
  EXPECT_FALSE(is_read("best_epoch", 5));
  EXPECT_FALSE(is_read("best_epoch", 0));
  EXPECT_FALSE(is_read("epoch", {1, 4}));
  EXPECT_FALSE(is_read("epoch", {4, 1, 9}));
  EXPECT_FALSE(is_read("epoch", {1, 4, 1e300}));
  EXPECT_FALSE(is_read("epoch", {0, 4, 9}));
  EXPECT_FALSE(is_read("epoch", 4));
  EXPECT_FALSE(is_read("train_loss", {1, 2}));
  EXPECT_FALSE(is_read("train_loss", {1, nullptr, 2}));
  EXPECT_FALSE(is_read("stop_loss", {1, "NaN", 2}));
  EXPECT_FALSE(is_read("train_loss", {1, 1e200, 2}));
}

TEST(TrainingCurves, ACardWithoutThemIsTheRestInItsOrder) {
  const Json curves = Json::parse(sample_curves_json());
  EXPECT_EQ(Json::parse(card_without_curves(card_of(curves))).dump(),
            R"({"kind":"network","networks":1,"options":{"loss":"mse"}})");
  const std::string ensemble =
      Json{{"kind", "ensemble"}, {"networks", Json::parse(card_of(curves))}}.dump();
  EXPECT_THAT(card_without_curves(ensemble), Not(HasSubstr("curves")));
  EXPECT_THAT(card_without_curves(ensemble), HasSubstr("ensemble"));
}

TEST(LossPlot, HasTwoLinesAndTheBestEpochOfEveryTraining) {
  const TrainingCurves trained = training_curves(card_of(Json::parse(sample_curves_json())));
  const std::string svg = loss_svg(trained, "source");
  EXPECT_THAT(svg, HasSubstr("xmlns="));
  EXPECT_THAT(svg, HasSubstr("<style>"));
  for (const char* style : {"c1 s1 thin", "c0 s0 thin"}) {
    EXPECT_EQ(count(svg, concat("<polyline class=\"series ", style, "\"")), 1U) << style;
  }
  for (const char* style : {"c1 s1 whole", "c0 s0 whole"}) {  // once in the legend
    EXPECT_EQ(count(svg, concat("<polyline class=\"series ", style, "\"")), 2U) << style;
  }
  EXPECT_EQ(count(svg, "<circle class=\"mark c0\""), 3U);
  EXPECT_EQ(
      count(svg, "<title>fold 2: 9 epochs, best 4: training loss 0.02, stopping loss 0.03</title>"),
      3U);
  for (const char* text : {">epoch<", ">loss (mse)<", ">training<", ">stopping problems<",
                           ">best epoch<", ">folds<", ">all data<", ">0.01<", ">1<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

// The place of the first mark, against that of its value on the axis.
TEST(LossPlot, IsLogarithmicOverMoreThanADecadeOfPositiveLosses) {
  const auto height_of_middle = [](double low, double middle, double high) {
    Json curve = sample_curve();
    curve["train_loss"] = {high, middle, low};
    curve["stop_loss"] = {high, middle, low};
    const std::string svg = loss_svg(training_curves(card_of(Json::array({curve}))), "source");
    // The y of the three epochs, in "points="x,y x,y x,y".
    constexpr std::string_view kPoints = "points=\"";
    std::array<double, 3> y{};
    std::size_t at = svg.find(kPoints);
    EXPECT_NE(at, std::string::npos);
    for (double& value : y) {
      at = svg.find(',', at) + 1;
      value = std::stod(svg.substr(at));
    }
    return (y[1] - y[2]) / (y[0] - y[2]);
  };
  EXPECT_NEAR(height_of_middle(0.01, 0.1, 1), 0.5, 0.01);
  EXPECT_NEAR(height_of_middle(0.2, 0.6, 1), 0.5, 0.01);
  EXPECT_NEAR(height_of_middle(-1, 0, 1), 0.5, 0.01);
  EXPECT_NEAR(height_of_middle(0, 0.5, 1), 0.5, 0.01);
}

TEST(LossPlot, OfOneEpochOrEqualLossesHasAPlaceForThem) {
  const Json curve = Json::parse(
      R"({"network": 1, "epochs": 1, "best_epoch": 1, "epoch": [1], "train_loss": [0.5],
          "stop_loss": [0.5]})");
  const TrainingCurves trained = training_curves(card_of(Json::array({curve})));
  ASSERT_EQ(trained.curves.size(), 1U);
  const std::string svg = loss_svg(trained, "source");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(svg, Not(HasSubstr(">folds<")));
  EXPECT_THAT(svg, HasSubstr("1 epoch, best 1"));
  EXPECT_THAT(svg, HasSubstr(">0.50<"));
}

TEST(LossPlot, IsNothingWithoutCurves) {
  EXPECT_EQ(loss_svg({}, "source"), "");
  EXPECT_EQ(report_internal::loss_plot({}).drawing, "");
}

}  // namespace
}  // namespace foretune
