#include "foretune/metrics/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/statistics.h"
#include "foretune/base/testing/allocation_count.h"
#include "foretune/base/text.h"

namespace foretune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Targets = SmallVector<double, 4>;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

Objective parsed(std::string_view text) {
  const Result<Objective> objective = Objective::parse(text);
  EXPECT_TRUE(objective) << text << ": " << (objective ? "" : objective.error().message);
  return objective.value_or(Objective());
}

BoundValue bound_of(std::string_view value) {
  const Objective objective = parsed(concat("minimise time_ns subject to x <= ", value));
  return objective.bounds.empty() ? BoundValue() : objective.bounds[0].bound;
}

std::string refusal(std::string_view text) {
  const Result<Objective> objective = Objective::parse(text);
  EXPECT_FALSE(objective) << text;
  return objective ? "" : objective.error().message;
}

TEST(Objective, OneMetricIsOptimisedInItsDirection) {
  EXPECT_EQ(parsed("minimise time_ns"), Objective::time());
  EXPECT_EQ(Objective::time().text(), "minimise time_ns");
  EXPECT_FALSE(Objective::time().is_pareto());
  const Objective best = parsed("  maximise\tqos_tune\n");
  EXPECT_THAT(best.targets, ElementsAre("qos_tune"));
  EXPECT_EQ(best.direction, Direction::kMaximise);
  EXPECT_EQ(parsed("minimize a"), parsed("minimise a"));
  EXPECT_EQ(parsed("maximize a"), parsed("maximise a"));
}

TEST(Objective, SeveralMetricsAreTradedOff) {
  const Objective objective = parsed("pareto time_ns pack_ns bytes subject to bytes <= 1 MiB");
  EXPECT_TRUE(objective.is_pareto());
  EXPECT_THAT(objective.targets, ElementsAre("time_ns", "pack_ns", "bytes"));
  ASSERT_EQ(objective.bounds.size(), 1U);
}

TEST(Objective, BoundsHaveADirectionAValueAndALooserOne) {
  const Objective objective =
      parsed("minimise time_ns subject to pack_ns <= 2 ms and q >= baseline - 2 keep baseline - 3");
  const MetricBound pack{
      .metric = "pack_ns", .is_upper = true, .bound = {.value = 2, .unit = "ms"}};
  const MetricBound quality{
      .metric = "q",
      .is_upper = false,
      .bound = {.kind = BoundValue::Kind::kDifference, .value = -2, .unit = ""},
      .keep = BoundValue{.kind = BoundValue::Kind::kDifference, .value = -3, .unit = ""}};
  EXPECT_THAT(objective.bounds, ElementsAre(pack, quality));
}

TEST(Objective, ReadsEveryFormOfAValue) {
  const auto value = [](BoundValue::Kind kind, double number, std::string unit = "") {
    return BoundValue{.kind = kind, .value = number, .unit = std::move(unit)};
  };
  using enum BoundValue::Kind;
  EXPECT_EQ(bound_of("2"), value(kAbsolute, 2));
  EXPECT_EQ(bound_of("2 ms"), value(kAbsolute, 2, "ms"));
  EXPECT_EQ(bound_of("2ms"), value(kAbsolute, 2, "ms"));
  EXPECT_EQ(bound_of(".5e-3%"), value(kAbsolute, 0.0005, "%"));
  EXPECT_EQ(bound_of("-2 dB"), value(kAbsolute, -2, "dB"));
  EXPECT_EQ(bound_of("+2 img/s"), value(kAbsolute, 2, "img/s"));
  EXPECT_EQ(bound_of("2e"), value(kAbsolute, 2, "e"));
  EXPECT_EQ(bound_of("baseline"), value(kDifference, 0));
  EXPECT_EQ(bound_of("baseline - 2"), value(kDifference, -2));
  EXPECT_EQ(bound_of("baseline-2"), value(kDifference, -2));
  EXPECT_EQ(bound_of("baseline + 1.5 ms"), value(kDifference, 1.5, "ms"));
  EXPECT_EQ(bound_of("0.8 * baseline"), value(kFactor, 0.8));
  EXPECT_EQ(bound_of("baseline * 0.8"), value(kFactor, 0.8));
  EXPECT_EQ(bound_of("-1*baseline"), value(kFactor, -1));
}

TEST(Objective, NeedsNoBlanksBesideOperators) {
  EXPECT_EQ(parsed("minimise a subject to b<=1MiB and c>=0.5*baseline keep 0.4*baseline"),
            parsed("minimise a subject to b <= 1 MiB and c >= 0.5 * baseline keep 0.4 * baseline"));
}

TEST(Objective, TextIsCanonical) {
  for (const auto& [text, canonical] : std::vector<std::pair<std::string, std::string>>{
           {" minimize  a ", "minimise a"},
           {"pareto b a", "pareto b a"},
           {"maximise a subject to b<=2ms", "maximise a subject to b <= 2 ms"},
           {"minimise a subject to b >= baseline * 0.80 keep .5 * baseline",
            "minimise a subject to b >= 0.8 * baseline keep 0.5 * baseline"},
           {"minimise a subject to b <= baseline + 0 and b >= baseline - 0 ms",
            "minimise a subject to b <= baseline and b >= baseline + 0 ms"},
           {"minimise a subject to b <= -0 keep 1e3s",
            "minimise a subject to b <= 0 keep 1000 s"}}) {
    EXPECT_EQ(parsed(text).text(), canonical);
    EXPECT_EQ(parsed(canonical), parsed(text));
  }
}

BoundValue random_value(Rng& rng) {
  BoundValue out{.kind = static_cast<BoundValue::Kind>(rng.below(3)), .value = 0, .unit = ""};
  do {
    out.value = rng.below(2) == 0 ? static_cast<double>(rng.between(-3, 3))
                                  : std::bit_cast<double>(rng.next());
  } while (!std::isfinite(out.value));
  const std::array<const char*, 6> units{"", "ms", "%", "e5", "x", "img/s"};
  if (out.kind != BoundValue::Kind::kFactor) {
    out.unit = units[rng.below(units.size())];
  }
  return out;
}

TEST(Objective, TextReadsBackToTheSameValueWhateverTheNumbers) {
  constexpr std::uint64_t kSeed = 21;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (int i = 0; i < 5000; ++i) {
    Objective objective;
    const std::uint64_t targets = 1 + rng.below(4);
    for (std::uint64_t t = 0; t < targets; ++t) {
      objective.targets.push_back(concat("m", t));
    }
    if (targets == 1 && rng.below(2) == 0) {
      objective.direction = Direction::kMaximise;
    }
    for (std::uint64_t b = rng.below(4); b > 0; --b) {
      MetricBound bound{.metric = concat("b", rng.below(2)),
                        .is_upper = rng.below(2) == 0,
                        .bound = random_value(rng)};
      if (rng.below(2) == 0) {
        bound.keep = random_value(rng);
      }
      objective.bounds.push_back(std::move(bound));
    }
    const Result<Objective> back = Objective::parse(objective.text());
    ASSERT_TRUE(back) << objective.text() << ": " << back.error().message;
    ASSERT_EQ(*back, objective) << objective.text();
    ASSERT_EQ(back->text(), objective.text());
  }
}

TEST(Objective, NamesEveryMetricOnceTargetsFirst) {
  EXPECT_THAT(parsed("pareto b a subject to c <= 1 and a <= 2 and c >= 0").metrics(),
              ElementsAre("b", "a", "c"));
}

TEST(Objective, RefusalsNameTheWordAtFault) {
  EXPECT_EQ(refusal(""), "an objective begins with 'minimise', 'maximise' or 'pareto'");
  EXPECT_EQ(refusal("time_ns"),
            "an objective begins with 'minimise', 'maximise' or 'pareto', not with 'time_ns'");
  EXPECT_EQ(refusal("minimise"),
            "the objective ends after 'minimise' where the name of a metric is expected");
  EXPECT_EQ(refusal("minimise 2fast"),
            "the objective has '2fast' where the name of a metric is expected");
  EXPECT_EQ(refusal("minimise subject to b <= 2"),
            "the objective has 'subject' where the name of a metric is expected");
  EXPECT_EQ(refusal("minimise a b"),
            "the objective has 'b' where 'subject to' or the end is expected");
  EXPECT_EQ(refusal("pareto a"),
            "the objective ends after 'a' where a second metric of 'pareto' is expected");
  EXPECT_EQ(refusal("pareto a subject to b <= 2"),
            "the objective has 'subject' where a second metric of 'pareto' is expected");
  EXPECT_EQ(refusal("pareto a b a"), "the objective names the target 'a' twice");
  EXPECT_EQ(refusal("minimise a subject"),
            "the objective ends after 'subject' where 'to' is expected");
  EXPECT_EQ(refusal("minimise a subject to"),
            "the objective ends after 'to' where the name of a metric is expected");
  EXPECT_EQ(refusal("minimise a subject to baseline <= 2"),
            "the objective has 'baseline' where the name of a metric is expected");
  EXPECT_EQ(refusal("minimise a subject to b < 2"),
            "the objective has '<' where '<=' or '>=' is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= fast"),
            "the objective has 'fast' where a number or 'baseline' is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= inf"),
            "the objective has 'inf' where a number or 'baseline' is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= 1e999"),
            "the objective has '1e999' where a number within the range of doubles is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= 2 ms * baseline"),
            "the objective has '*' where 'keep', 'and' or the end is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= 2 * ms"),
            "the objective has 'ms' where 'baseline' is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= 2 baseline"),
            "the objective has 'baseline' where 'keep', 'and' or the end is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= baseline * fast"),
            "the objective has 'fast' where a factor of the baseline is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= baseline - -2"),
            "the objective has '-2' where a number is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= 2 keep"),
            "the objective ends after 'keep' where a number or 'baseline' is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= 2 or c <= 3"),
            "the objective has 'c' where 'keep', 'and' or the end is expected");
  EXPECT_EQ(refusal("minimise a subject to b <= 2 and"),
            "the objective ends after 'and' where the name of a metric is expected");
  EXPECT_THAT(refusal("minimise a, b"), HasSubstr("'a,' is no name of a metric"));
  EXPECT_THAT(refusal("minimise a subject to b <= 2, c <= 3"), HasSubstr("',' is no unit"));
}

std::vector<MetricInfo> infos() {
  return {{.name = "time_ns", .unit = "ns"},
          {.name = "psnr_db", .unit = "dB", .direction = Direction::kMaximise},
          {.name = "joules", .unit = "J"},
          {.name = "share", .unit = "%"}};
}

std::vector<MetricValue> baseline() {
  return {{"time_ns", 1000}, {"psnr_db", 40}, {"qos_tune", 90}, {"share", kNotANumber}};
}

Result<Judge> judge_of(std::string_view text) {
  return Judge::create(parsed(text), infos(), baseline());
}

double limit_of(std::string_view bound) {
  const Result<Judge> judge = judge_of(concat("minimise time_ns subject to ", bound));
  EXPECT_TRUE(judge) << bound << ": " << (judge ? "" : judge.error().message);
  return judge ? judge->limit(0) : kNotANumber;
}

// Expects that these bounds, each alone, have these limits.
void expect_limits(const std::vector<std::pair<std::string_view, double>>& expected) {
  for (const auto& [bound, limit] : expected) {
    EXPECT_EQ(limit_of(bound), limit) << bound;
  }
}

std::string judge_refusal(std::string_view text, ErrorCode code = ErrorCode::kInvalidArgument) {
  const Result<Judge> judge = judge_of(text);
  EXPECT_FALSE(judge) << text;
  if (judge) {
    return "";
  }
  EXPECT_EQ(judge.error().code, code) << text;
  return judge.error().message;
}

TEST(Judge, ConvertsUnitsToTheMetrics) {
  expect_limits({{"time_ns <= 2", 2},
                 {"time_ns <= 2 ns", 2},
                 {"time_ns <= 1.5 us", 1500},
                 {"time_ns <= 2 ms", 2e6},
                 {"time_ns <= 0.1 s", 1e8},
                 {"bytes <= 3 B", 3},
                 {"bytes <= 3 kB", 3000},
                 {"bytes <= 3 MB", 3e6},
                 {"bytes <= 3 GB", 3e9},
                 {"bytes <= 3 KiB", 3072},
                 {"bytes <= 3 MiB", 3 * 1024.0 * 1024},
                 {"bytes <= 3 GiB", 3 * 1024.0 * 1024 * 1024},
                 {"joules <= 2 nJ", 2e-9},
                 {"joules <= 2 uJ", 2e-6},
                 {"joules <= 2 mJ", 2e-3},
                 {"joules <= 2 J", 2},
                 {"psnr_db >= 30 dB", 30},
                 {"share <= 30 %", 30}});
  const std::vector<MetricInfo> sizes{{.name = "size", .unit = "KiB"}};
  const Judge judge =
      Judge::create(parsed("minimise size subject to size <= 2048 kB"), sizes, {}).value();
  EXPECT_EQ(judge.limit(0), 2000);
}

TEST(Judge, ConversionsRoundOnce) {
  constexpr std::uint64_t kSeed = 23;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  const std::vector<MetricInfo> waits{{.name = "wait", .unit = "ms"}};
  for (int i = 0; i < 1000; ++i) {
    const double value = rng.normal();
    const Judge judge =
        Judge::create(parsed(concat("minimise wait subject to wait <= ", value,
                                    " s and wait <= ", value, " us and wait <= ", value, " ms")),
                      waits, {})
            .value();
    ASSERT_EQ(judge.limit(0), value * 1e3);
    ASSERT_EQ(judge.limit(1), value / 1e3);
    ASSERT_EQ(judge.limit(2), value);
  }
}

TEST(Judge, RelativeBoundsStartAtTheBaseline) {
  expect_limits({{"time_ns <= baseline", 1000},
                 {"time_ns <= baseline - 100", 900},
                 {"time_ns <= baseline + 2 us", 3000},
                 {"time_ns <= 0.5 * baseline", 500},
                 {"qos_tune >= baseline - 2", 88}});
  const Judge judge =
      judge_of("minimise time_ns subject to psnr_db >= baseline - 2 keep baseline - 3").value();
  EXPECT_EQ(judge.limit(0), 38);
  EXPECT_EQ(judge.keep_limit(0), 37);
  const Judge plain = judge_of("minimise time_ns subject to psnr_db >= 35").value();
  EXPECT_EQ(plain.keep_limit(0), 35);
}

TEST(Judge, KnowsDeclaredMetricsAndCommonOnes) {
  const Judge judge = judge_of("pareto psnr_db time_ns subject to bytes <= 1").value();
  ASSERT_EQ(judge.metrics().size(), 3U);
  EXPECT_EQ(judge.metrics()[0], infos()[1]);
  EXPECT_EQ(judge.metrics()[2], metric_info("bytes"));
  EXPECT_EQ(judge_refusal("minimise speed", ErrorCode::kNotFound),
            "no metric is called 'speed'; there are time_ns, psnr_db, joules, share, median_ns, "
            "pack_ns, energy_j, bytes, qos_tune, qos_test");
}

TEST(Judge, RefusalsSayWhatContradicts) {
  EXPECT_EQ(judge_refusal("minimise time_ns subject to bytes <= 2 ms"),
            "'ms' is no unit of bytes, which is measured in B");
  EXPECT_EQ(judge_refusal("minimise time_ns subject to qos_tune >= 2 %"),
            "'%' is no unit of qos_tune, which has none");
  EXPECT_EQ(judge_refusal("minimise time_ns subject to psnr_db >= 2 db"),
            "'db' is no unit of psnr_db, which is measured in dB");
  EXPECT_EQ(judge_refusal("minimise time_ns subject to time_ns <= baseline + 2 J"),
            "'J' is no unit of time_ns, which is measured in ns");
  EXPECT_EQ(judge_refusal("maximise time_ns"),
            "the objective says 'maximise time_ns', and time_ns is a metric to minimise");
  EXPECT_EQ(judge_refusal("minimise psnr_db"),
            "the objective says 'minimise psnr_db', and psnr_db is a metric to maximise");
  EXPECT_EQ(judge_refusal("minimise time_ns subject to bytes <= 0.5 * baseline"),
            "the bound '0.5 * baseline' of bytes needs the baseline's value of bytes, which is not "
            "known");
  EXPECT_THAT(judge_refusal("minimise time_ns subject to share <= baseline"),
              HasSubstr("needs the baseline's value of share"));
  EXPECT_THAT(judge_refusal("minimise time_ns subject to bytes <= 1 keep baseline"),
              HasSubstr("'baseline' of bytes"));
  EXPECT_EQ(judge_refusal("minimise time_ns subject to bytes <= 2 KiB keep 1 KiB"),
            "the bound 'bytes <= 2 KiB keep 1 KiB' keeps less than it allows");
  EXPECT_THAT(judge_refusal("minimise time_ns subject to psnr_db >= 30 keep baseline"),
              HasSubstr("keeps less than it allows"));
  EXPECT_EQ(judge_refusal("minimise time_ns subject to time_ns <= 1e305 s"),
            "the bound '1e+305 s' of time_ns is beyond the range of doubles");
}

TEST(Judge, RefusesObjectivesThatNoTextStandsFor) {
  EXPECT_FALSE(Judge::create(Objective(), infos(), {}));
  Objective twice;
  twice.targets = {"time_ns", "time_ns"};
  EXPECT_FALSE(Judge::create(twice, infos(), {}));
  Objective endless = Objective::time();
  endless.bounds.push_back({.metric = "bytes", .bound = {.value = kInfinite}});
  EXPECT_FALSE(Judge::create(endless, infos(), {}));
  Objective factor = Objective::time();
  factor.bounds.push_back({.metric = "time_ns",
                           .bound = {.kind = BoundValue::Kind::kFactor, .value = 2, .unit = "ms"}});
  EXPECT_FALSE(Judge::create(factor, infos(), baseline()));
}

TEST(Judge, TargetsAreOrientedAndAllOrNone) {
  const Judge judge = judge_of("pareto time_ns psnr_db").value();
  const std::vector<MetricValue> values{{"psnr_db", 41.5}, {"other", 3}, {"time_ns", 7}};
  EXPECT_EQ(judge.judge(values).targets, (Targets{7, -41.5}));
  EXPECT_TRUE(judge.judge(values).is_feasible());
  const std::vector<MetricValue> some{{"time_ns", 7}};
  EXPECT_FALSE(judge.judge(some).has_targets());
  EXPECT_FALSE(judge.judge(some).is_feasible());
  EXPECT_FALSE(judge.judge(some).is_kept());
  const std::vector<double> plain{7, kNotANumber};
  EXPECT_FALSE(judge.judge(plain).has_targets());
  const std::vector<double> lossless{7, kInfinite};
  EXPECT_EQ(judge.judge(lossless).targets, (Targets{7, -kInfinite}));
}

TEST(Judge, ViolationIsTheSumOfRelativeExcesses) {
  const Judge judge =
      judge_of(
          "minimise time_ns subject to bytes <= 100 keep 150 and psnr_db >= -10 and share <= 0")
          .value();
  const auto judged = [&](double bytes, double psnr, double share) {
    const std::vector<double> values{1, bytes, psnr, share};
    return judge.judge(values);
  };
  EXPECT_TRUE(judged(100, -10, 0).is_feasible());
  EXPECT_TRUE(judged(-5, kInfinite, -3).is_feasible());
  const Judgement between = judged(125, -10, 0);
  EXPECT_EQ(between.violation, 0.25);
  EXPECT_EQ(between.keep_violation, 0);
  EXPECT_FALSE(between.is_feasible());
  EXPECT_TRUE(between.is_kept());
  const Judgement beyond = judged(300, -15, 3);
  EXPECT_EQ(beyond.violation, 2 + 0.5 + 3);
  EXPECT_EQ(beyond.keep_violation, 1 + 0.5 + 3);
  EXPECT_EQ(judged(kInfinite, 0, 0).violation, kInfinite);
  EXPECT_EQ(judged(1, -kInfinite, 0).violation, kInfinite);
}

TEST(Judge, AMissingMetricMissesItsBoundByFar) {
  const Judge judge = judge_of("minimise time_ns subject to bytes <= 100 keep 200").value();
  const std::vector<MetricValue> values{{"time_ns", 7}};
  const Judgement judgement = judge.judge(values);
  EXPECT_TRUE(judgement.has_targets());
  EXPECT_EQ(judgement.violation, kInfinite);
  EXPECT_EQ(judgement.keep_violation, kInfinite);
  EXPECT_FALSE(judgement.is_kept());
}

TEST(Judge, TheNextDoubleBeyondABoundIsBeyondIt) {
  constexpr std::uint64_t kSeed = 22;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  for (int i = 0; i < 2000; ++i) {
    const auto limit = std::bit_cast<double>(rng.next());
    if (!std::isfinite(limit)) {
      continue;
    }
    Objective objective = Objective::time();
    objective.bounds.push_back({.metric = "bytes", .bound = {.value = limit}});
    objective.bounds.push_back({.metric = "share", .is_upper = false, .bound = {.value = limit}});
    const Judge judge = Judge::create(objective, infos(), {}).value();
    const auto is_feasible = [&](double bytes, double share) {
      const std::array<double, 3> values{1, bytes, share};
      return judge.judge(values).is_feasible();
    };
    ASSERT_TRUE(is_feasible(limit, limit));
    ASSERT_FALSE(is_feasible(std::nextafter(limit, kInfinite), limit)) << concat(limit);
    ASSERT_FALSE(is_feasible(limit, std::nextafter(limit, -kInfinite))) << concat(limit);
  }
}

TEST(Judge, ValuesByNameAndByPositionAgree) {
  const Judge judge =
      judge_of("pareto psnr_db time_ns subject to time_ns <= 5 and bytes <= 2").value();
  const std::vector<MetricValue> named{{"bytes", 3}, {"time_ns", 10}, {"psnr_db", 1}};
  const std::vector<double> plain{1, 10, 3};
  const Judgement a = judge.judge(named);
  const Judgement b = judge.judge(plain);
  EXPECT_EQ(a.targets, b.targets);
  EXPECT_EQ(a.violation, 1.5);
  EXPECT_EQ(b.violation, 1.5);
}

TEST(Judge, DoesNotAllocateForFourTargets) {
  const Judge judge = judge_of(
                          "pareto time_ns psnr_db joules share subject to bytes <= 2 and qos_tune "
                          ">= 1 and pack_ns <= 2 and median_ns <= 7 and energy_j <= 3")
                          .value();
  const std::vector<MetricValue> named{{"time_ns", 1}, {"psnr_db", 2}, {"joules", 3}, {"share", 4}};
  const std::vector<double> plain(judge.metrics().size(), 1.0);
  const std::uint64_t before = allocation_count();
  const Judgement a = judge.judge(named);
  const Judgement b = judge.judge(plain);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(a.targets.size(), 4U);
  EXPECT_EQ(b.targets.size(), 4U);
}

}  // namespace
}  // namespace foretune
