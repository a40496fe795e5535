#include "bench/pick_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretune::bench {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kTop = 3;

Config config_of(int word) { return {.schema = 1, .words = {word}}; }
const Config kLibrary = config_of(0);

MeasuredConfig in_turns(double time_ns) {
  return {.outcome = Outcome::kOk, .once_ns = time_ns, .in_turns_ns = time_ns};
}
MeasuredConfig once(double time_ns) { return {.outcome = Outcome::kOk, .once_ns = time_ns}; }
MeasuredConfig failed(Outcome outcome) { return {.outcome = outcome}; }

// Configs 1, 2, ... as the model ranks them: each is expected to gain 0.10, 0.09, ... over the
// library's choice.
ModelAnswer answer_of(std::size_t configs) {
  ModelAnswer answer;
  answer.library_score = 0;
  for (std::size_t i = 0; i < configs; ++i) {
    answer.ranking.push_back(
        {config_of(static_cast<int>(i) + 1), -0.10 + 0.01 * static_cast<double>(i)});
  }
  return answer;
}

TEST(PickVerdict, APickIsAsFastAsItsTurnsSay) {
  const MeasuredConfigs measured{
      {kLibrary, in_turns(100)}, {config_of(1), in_turns(80)}, {config_of(2), in_turns(50)}};
  const Judgement judgement = judge(answer_of(2), measured, kLibrary, kTop);
  ASSERT_TRUE(judgement.verdict);
  EXPECT_DOUBLE_EQ(judgement.verdict->pick, 1.25);
  EXPECT_DOUBLE_EQ(judgement.verdict->best_of_top, 2);
  EXPECT_DOUBLE_EQ(judgement.verdict->oracle, 2);
  EXPECT_DOUBLE_EQ(*judgement.verdict->own_efficiency, 0.625);
  EXPECT_TRUE(judgement.verdict->is_in_turns);
}

TEST(PickVerdict, BelowTheMarginTheLibrarysChoiceRuns) {
  const MeasuredConfigs measured{{kLibrary, in_turns(100)}, {config_of(1), in_turns(200)}};
  const Verdict verdict = *judge(answer_of(1), measured, kLibrary, kTop).verdict;
  EXPECT_DOUBLE_EQ(verdict.with_margin(0), 0.5);
  EXPECT_DOUBLE_EQ(verdict.with_margin(0.09), 0.5);
  EXPECT_DOUBLE_EQ(verdict.with_margin(0.11), 1);
  EXPECT_TRUE(verdict.is_below(0.11));
}

TEST(PickVerdict, OutsideOfTheApplicabilityDomainTheLibrarysChoiceRuns) {
  const MeasuredConfigs measured{{kLibrary, in_turns(100)}, {config_of(1), in_turns(50)}};
  ModelAnswer answer = answer_of(1);
  answer.is_covered = false;
  const Verdict verdict = *judge(answer, measured, kLibrary, kTop).verdict;
  EXPECT_FALSE(verdict.is_covered);
  EXPECT_DOUBLE_EQ(verdict.with_margin(0), 1);
  EXPECT_DOUBLE_EQ(verdict.with_margin(0.06), 1);
  EXPECT_FALSE(verdict.is_below(0.06));
  EXPECT_DOUBLE_EQ(verdict.best_of_top, 1);
  EXPECT_DOUBLE_EQ(verdict.oracle, 2);
}

TEST(PickVerdict, APickThatWasStoppedEarlyCountsByItsBound) {
  const MeasuredConfigs measured{{kLibrary, in_turns(100)},
                                 {config_of(1), {.outcome = Outcome::kCensored, .once_ns = 250}},
                                 {config_of(2), in_turns(50)}};
  const Verdict verdict = *judge(answer_of(2), measured, kLibrary, kTop).verdict;
  EXPECT_DOUBLE_EQ(verdict.pick, 0.4);
  EXPECT_TRUE(verdict.is_stopped_early);
  EXPECT_FALSE(verdict.is_in_turns);
  EXPECT_DOUBLE_EQ(*verdict.own_efficiency, 0.2);
}

TEST(PickVerdict, AfterARefusalTheNextRunsIfItIsAboveTheMargin) {
  const MeasuredConfigs measured{{kLibrary, in_turns(100)},
                                 {config_of(1), failed(Outcome::kUnsupported)},
                                 {config_of(2), in_turns(80)}};
  const Verdict verdict = *judge(answer_of(2), measured, kLibrary, kTop).verdict;
  EXPECT_EQ(verdict.refused, 1U);
  EXPECT_DOUBLE_EQ(verdict.with_margin(0.08), 1.25);
  // The second is expected to gain 0.09, the refused first 0.10.
  EXPECT_DOUBLE_EQ(verdict.with_margin(0.095), 1);
}

TEST(PickVerdict, WhereAllThatAreTriedAreRefusedTheLibrarysChoiceRuns) {
  MeasuredConfigs measured{{kLibrary, in_turns(100)}, {config_of(9), in_turns(50)}};
  for (int i = 1; i <= 8; ++i) {
    measured.emplace(config_of(i), failed(Outcome::kUnsupported));
  }
  const Verdict verdict = *judge(answer_of(9), measured, kLibrary, kTop).verdict;
  EXPECT_EQ(verdict.refused, 8U);
  EXPECT_DOUBLE_EQ(verdict.pick, 1);
  EXPECT_TRUE(verdict.is_library);
}

TEST(PickVerdict, APickThatCannotBePreparedLeavesTheLibrarysChoice) {
  const MeasuredConfigs measured{{kLibrary, in_turns(100)},
                                 {config_of(1), failed(Outcome::kPrepareFailed)},
                                 {config_of(2), in_turns(50)}};
  EXPECT_DOUBLE_EQ(judge(answer_of(2), measured, kLibrary, kTop).verdict->pick, 1);
}

TEST(PickVerdict, AWrongPickLeavesTheProductOutAndSaysSo) {
  const MeasuredConfigs measured{{kLibrary, in_turns(100)},
                                 {config_of(1), failed(Outcome::kWrongResult)},
                                 {config_of(2), in_turns(50)}};
  const Judgement judgement = judge(answer_of(2), measured, kLibrary, kTop);
  EXPECT_FALSE(judgement.verdict);
  EXPECT_TRUE(judgement.is_failed);
  EXPECT_THAT(judgement.left_out, HasSubstr("failed"));
}

TEST(PickVerdict, APickThatNobodyMeasuredIsNotReplacedByTheNext) {
  const MeasuredConfigs measured{{kLibrary, in_turns(100)}, {config_of(2), in_turns(50)}};
  const Judgement judgement = judge(answer_of(2), measured, kLibrary, kTop);
  EXPECT_FALSE(judgement.verdict);
  EXPECT_FALSE(judgement.is_failed);
  EXPECT_THAT(judgement.left_out, HasSubstr("not measured"));
}

TEST(PickVerdict, TheLibrarysAlgorithmByItsWordsIsTheLibrarysChoice) {
  const MeasuredConfigs measured{{kLibrary, in_turns(100)}, {config_of(1), in_turns(104)}};
  ModelAnswer answer = answer_of(1);
  answer.library_algorithm = config_of(1);
  const Verdict verdict = *judge(answer, measured, kLibrary, kTop).verdict;
  EXPECT_DOUBLE_EQ(verdict.pick, 1);
  EXPECT_TRUE(verdict.is_library);
}

TEST(PickVerdict, OfTheBestFewOnlyThePickMayHaveMissedTheTurns) {
  const MeasuredConfigs measured{
      {kLibrary, in_turns(100)}, {config_of(1), once(80)}, {config_of(2), once(10)}};
  const Verdict verdict = *judge(answer_of(2), measured, kLibrary, kTop).verdict;
  EXPECT_FALSE(verdict.is_in_turns);
  EXPECT_FALSE(verdict.is_own_in_turns);
  EXPECT_DOUBLE_EQ(verdict.best_of_top, 1.25);
}

TEST(PickVerdict, TheFastModeFallsBackToTheExactOne) {
  MeasuredConfigs measured{{kLibrary, in_turns(100)},
                           {config_of(1), in_turns(80)},
                           {config_of(2), failed(Outcome::kUnsupported)},
                           {config_of(3), once(50)}};
  ModelAnswer answer = answer_of(3);
  EXPECT_DOUBLE_EQ(judge(answer, measured, kLibrary, kTop).verdict->fast(0), 1.25);
  answer.fast_pick = config_of(2);
  EXPECT_DOUBLE_EQ(judge(answer, measured, kLibrary, kTop).verdict->fast(0), 1.25);
  answer.fast_pick = config_of(3);
  EXPECT_DOUBLE_EQ(judge(answer, measured, kLibrary, kTop).verdict->fast(0), 2);
  answer.fast_pick = config_of(4);
  EXPECT_FALSE(judge(answer, measured, kLibrary, kTop).verdict->is_fast_known);
}

TEST(PickVerdict, NothingIsSaidWhereTheLibrarysChoiceTookNoTurns) {
  const MeasuredConfigs measured{{kLibrary, once(100)}, {config_of(1), in_turns(80)}};
  EXPECT_FALSE(judge(answer_of(1), measured, kLibrary, kTop).verdict);
}

}  // namespace
}  // namespace foretune::bench
