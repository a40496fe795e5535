#include "foretune/evaluate/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "foretune/base/text.h"
#include "foretune/report/evaluation_report.h"

namespace foretune {
namespace {

std::vector<PickedProblem> picks(const std::vector<double>& efficiencies,
                                 const std::string& pick = "mr=4") {
  std::vector<PickedProblem> out;
  for (std::size_t i = 0; i < efficiencies.size(); ++i) {
    out.push_back({concat("gemm m=", i + 1), pick, 1000, efficiencies[i]});
  }
  return out;
}

ModelComparison compared(const std::vector<PickedProblem>& before,
                         const std::vector<PickedProblem>& after,
                         const AcceptanceRules& rules = {}) {
  auto out = compare_models(before, after, rules);
  EXPECT_TRUE(out.has_value()) << out.error().message;
  return out ? *std::move(out) : ModelComparison{};
}

TEST(Compare, TheSameModelLosesNothing) {
  const auto same = picks({1.0, 0.9, 0.8, 0.95});
  const ModelComparison comparison = compared(same, same);
  EXPECT_TRUE(comparison.accepted());
  EXPECT_EQ(comparison.same_picks, 4U);
  EXPECT_EQ(comparison.improved + comparison.degraded, 0U);
  EXPECT_EQ(comparison.mean_change.value, 0);
  EXPECT_EQ(comparison.mean_change.low, 0);
  EXPECT_EQ(comparison.mean_change.high, 0);
}

TEST(Compare, CountsWhatChangedByMoreThanATieAndListsTheWorstFirst) {
  const ModelComparison comparison =
      compared(picks({0.9, 0.9, 0.9, 0.9}), picks({0.95, 0.905, 0.893, 0.7}, "mr=8"));
  EXPECT_EQ(comparison.improved, 1U);
  EXPECT_EQ(comparison.degraded, 1U);
  EXPECT_EQ(comparison.same_picks, 0U);
  EXPECT_EQ(comparison.problems.front().problem, "gemm m=4");
  EXPECT_EQ(comparison.problems.back().problem, "gemm m=1");
  EXPECT_NEAR(comparison.mean_change.value, (0.95 + 0.905 + 0.893 + 0.7) / 4 - 0.9, 1e-12);
  EXPECT_LT(comparison.mean_change.low, comparison.mean_change.value);
  EXPECT_GT(comparison.mean_change.high, comparison.mean_change.value);
}

// Breaks one rule at a time. Losses are shares of the old value.
TEST(Compare, EachRuleIsJudgedByItself) {
  const std::vector<double> ones(100, 1.0);
  const auto broken = [&](const std::vector<double>& after) {
    std::vector<std::string> names;
    const ModelComparison comparison = compared(picks(ones), picks(after));
    for (const RuleVerdict& rule : comparison.rules) {
      if (!rule.kept()) {
        names.push_back(rule.rule);
      }
    }
    EXPECT_EQ(comparison.accepted(), names.empty());
    return names;
  };
  std::vector<double> one_bad = ones;
  one_bad[7] = 0.85;
  EXPECT_EQ(broken(one_bad), (std::vector<std::string>{"any single problem"}));
  std::vector<double> tail = ones;
  std::fill(tail.begin(), tail.begin() + 12, 0.97);
  EXPECT_EQ(broken(tail), (std::vector<std::string>{"P10 efficiency"}));
  std::vector<double> many = ones;
  std::fill(many.begin(), many.begin() + 60, 0.993);
  EXPECT_EQ(broken(many), (std::vector<std::string>{"median efficiency"}));
  std::vector<double> few = ones;
  std::fill(few.begin(), few.begin() + 9, 0.92);
  EXPECT_EQ(broken(few), (std::vector<std::string>{"mean efficiency"}));
  EXPECT_TRUE(broken(ones).empty());
  EXPECT_TRUE(broken(std::vector<double>(100, 0.9951)).empty());
}

TEST(Compare, LimitsAreTheCallers) {
  const auto before = picks({1.0, 1.0});
  const auto after = picks({0.8, 1.0});
  EXPECT_FALSE(compared(before, after).accepted());
  EXPECT_TRUE(
      compared(before, after, {.mean = 0.2, .median = 0.2, .p10 = 0.2, .problem = 0.2}).accepted());
}

TEST(Compare, AFailedPickIsATotalLossAndAFormerFailureNone) {
  const ModelComparison lost = compared(picks({0.9, 0.9}), picks({0.9, 0.0}));
  EXPECT_EQ(lost.rules.back().loss, 1);
  EXPECT_EQ(lost.rules.back().where, "gemm m=2");
  const ModelComparison won = compared(picks({0.9, 0.0}), picks({0.9, 0.9}));
  EXPECT_TRUE(won.accepted());
}

TEST(Compare, OnlyCommonProblemsCountAndTheOthersAreCounted) {
  auto before = picks({0.9, 0.8, 0.7});
  auto after = picks({0.9, 0.8});
  after.push_back({"gemm m=99", "mr=4", 1000, 0.1});
  after[1].best_ns = 900;
  const ModelComparison comparison = compared(before, after);
  EXPECT_EQ(comparison.problems.size(), 2U);
  EXPECT_EQ(comparison.only_old, 1U);
  EXPECT_EQ(comparison.only_new, 1U);
  EXPECT_EQ(comparison.other_best, 1U);
}

TEST(Compare, RefusesNothingInCommonAndProblemsGivenTwice) {
  EXPECT_FALSE(compare_models({}, {}, {}).has_value());
  EXPECT_FALSE(compare_models(picks({0.9}), {}, {}).has_value());
  auto twice = picks({0.9});
  twice.push_back(twice.front());
  EXPECT_FALSE(compare_models(picks({0.9}), twice, {}).has_value());
  EXPECT_FALSE(compare_models(twice, picks({0.9}), {}).has_value());
}

// Compare reads the reports that validate-model writes.
TEST(Compare, ReadsThePicksOfAReport) {
  Evaluation evaluation;
  evaluation.picks = picks({0.5, 1.0, 0.0});
  evaluation.picks[2].pick.clear();
  const auto read = parse_picks(report_json(evaluation, "validate-model", "", Fingerprint{}));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ((*read)[1].problem, "gemm m=2");
  EXPECT_EQ((*read)[1].pick, "mr=4");
  EXPECT_EQ((*read)[0].efficiency, 0.5);
  EXPECT_EQ((*read)[2].pick, "");
}

TEST(Compare, ReadsThePicksOfATable) {
  std::vector<PickedProblem> written = picks({0.5, 1.0, 0.0});
  written[0].pick = "3,16,\"a\"";
  written[2].pick.clear();
  const std::string text = picks_csv(written);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  const auto read = parse_picks(text);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 3U);
  for (std::size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ((*read)[i].problem, written[i].problem);
    EXPECT_EQ((*read)[i].pick, written[i].pick);
    EXPECT_EQ((*read)[i].best_ns, written[i].best_ns);
    EXPECT_EQ((*read)[i].efficiency, written[i].efficiency);
  }
  const std::string head = "problem,best_ns,pick_ns,efficiency,pick\n";
  EXPECT_TRUE(parse_picks(head)->empty());
  for (const char* const line : {"a,1", "a,x,1,1,b", "a,1,1,2,b", "a,0,1,1,b", "a,1,1,1,b,c"}) {
    EXPECT_FALSE(parse_picks(head + line)) << line;
  }
}

TEST(Compare, RefusesReportsThatAreNone) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"problems": 3})", R"({"problems": [{}]})",
        R"({"problems": [{"problem": "a", "pick": "b", "best_ns": 0, "efficiency": 1}]})",
        R"({"problems": [{"problem": "a", "pick": "b", "best_ns": 9, "efficiency": 1.5}]})",
        R"({"problems": [{"problem": "a", "pick": 3, "best_ns": 9, "efficiency": 1}]})"}) {
    EXPECT_FALSE(parse_picks(text).has_value()) << text;
  }
}

TEST(Compare, TheTextSaysWhichRuleIsBrokenAndWhere) {
  const ModelComparison comparison =
      compared(picks({0.9, 0.9, 0.9}), picks({0.95, 0.9, 0.5}, "mr=8"));
  const std::string text = comparison_text(comparison, 5, false);
  EXPECT_NE(text.find("3 problems: mean efficiency 90.0 -> 78.3 %"), std::string::npos) << text;
  EXPECT_NE(text.find("BROKEN any single problem: loses 44.4 %, may lose 10.0 % (gemm m=3)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("lost most"), std::string::npos);
  EXPECT_NE(text.find("won most"), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(comparison_text(comparison, 5, true).find('\033'), std::string::npos);
  EXPECT_EQ(comparison_text(comparison, 0, false).find("won most"), std::string::npos);
}

// Problems and picks may come from foreign files.
TEST(Compare, NoControlCharacterReachesTheTerminal) {
  auto after = picks({0.1}, "mr=8\033[2J");
  auto before = picks({0.9});
  after[0].problem += "\a";
  before[0].problem += "\a";
  const std::string text = comparison_text(compared(before, after), 5, false);
  EXPECT_EQ(text.find_first_of("\033\a"), std::string::npos) << text;
  EXPECT_NE(text.find("mr=8 [2J"), std::string::npos) << text;
}

}  // namespace
}  // namespace foretune
