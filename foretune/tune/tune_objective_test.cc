// Objectives against exhaustive search by formula: no noise, so that all is known exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/families/null/null.h"
#include "foretune/families/null/testing/null_samples.h"
#include "foretune/family/testing/forwarding_family.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/measure/testing/measurers.h"
#include "foretune/metrics/pareto.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/tune/tune_problem.h"

namespace foretune {
namespace {

using testing::HasSubstr;

// The null family with one config that one would take without tuning.
class NullWithDefault final : public testing_support::ForwardingFamily {
 public:
  using ForwardingFamily::ForwardingFamily;
  std::vector<Config> default_configs(const Problem&) const override { return defaults; }
  std::vector<Config> defaults;
};

class RequestsMeasurer final : public testing_support::ForwardingMeasurer {
 public:
  using ForwardingMeasurer::ForwardingMeasurer;
  Measurement measure(const Request& request) override {
    requests.push_back(request);
    return ForwardingMeasurer::measure(request);
  }
  std::vector<Request> requests;
};

// All that the formulas say of a config.
struct Truth {
  Config config;
  std::map<std::string, double> values;
};

class TuneObjectiveTest : public testing::Test {
 protected:
  TuneObjectiveTest() { make({}); }
  void make(std::vector<std::pair<std::string, std::string>> parameters) {
    parameters.emplace_back("metrics", "1");
    parameters.emplace_back("noise", "0");
    family = std::make_shared<NullWithDefault>(testing_support::null_with(std::move(parameters)));
    measurer = std::make_unique<RequestsMeasurer>(make_local_measurer(family, {}, {}));
    options.strategy = "exhaustive";
    all.clear();
    const auto space = family->space(problem);
    const EnumerableSpace& listed = *(*space)->enumerable();
    for (std::uint64_t i = 0; i < listed.count(); ++i) {
      const Config config = listed.unrank(i);
      all.push_back({config,
                     {{"time_ns", null_time_ns(problem, config)},
                      {"pack_ns", null_pack_ns(problem, config)},
                      {"bytes", null_bytes(config)},
                      {"accuracy", null_accuracy(config)}}});
    }
  }
  Result<TuneResult> tune(const std::string& objective) {
    options.objective = *Objective::parse(objective);
    measurer->requests.clear();
    return tune_problem(*family, *measurer, nullptr, problem, options, {});
  }
  // The best value of a metric over the configs that `allowed` lets pass.
  double best(const std::string& metric, bool maximise,
              const std::function<bool(std::map<std::string, double>)>& allowed) const {
    std::optional<double> out;
    for (const Truth& truth : all) {
      const double value = truth.values.at(metric);
      if (allowed(truth.values) && (!out || (maximise ? value > *out : value < *out))) {
        out = value;
      }
    }
    EXPECT_TRUE(out);
    return out.value_or(0);
  }
  static double value_of(const TunedConfig& tuned, const std::string& metric) {
    const MetricValue* const value = find_metric(tuned.values, metric);
    EXPECT_NE(value, nullptr) << metric;
    return value == nullptr ? -1 : value->value;
  }
  // Everything of the result that must hold, whatever the objective.
  void check(const TuneResult& result) const {
    ASSERT_FALSE(result.finalists.empty());
    for (const TunedConfig& tuned : result.finalists) {
      EXPECT_TRUE(tuned.judgement.is_feasible());
      EXPECT_EQ(tuned.judgement.targets.size(), options.objective.targets.size());
    }
    for (const TunedConfig& tuned : result.measured) {
      const auto truth = std::find_if(
          all.begin(), all.end(), [&](const Truth& entry) { return entry.config == tuned.config; });
      ASSERT_NE(truth, all.end());
      for (const MetricValue& value : tuned.values) {
        if (value.metric != kMedianNs) {
          EXPECT_DOUBLE_EQ(value.value, truth->values.at(value.metric)) << value.metric;
        }
      }
    }
  }
  // Checks by brute force that the finalists are the front of the formulas.
  void check_front(const TuneResult& result, const std::vector<std::string>& metrics,
                   const std::function<bool(std::map<std::string, double>)>& allowed) const {
    const auto targets = [&](const std::function<double(const std::string&)>& value) {
      std::vector<double> out;
      for (const std::string& metric : metrics) {
        out.push_back(metric == "accuracy" ? -value(metric) : value(metric));
      }
      return out;
    };
    std::vector<std::vector<double>> points;
    for (const Truth& truth : all) {
      if (allowed(truth.values)) {
        points.push_back(targets([&](const std::string& name) { return truth.values.at(name); }));
      }
    }
    std::set<std::vector<double>> front;
    for (const std::vector<double>& point : points) {
      if (std::none_of(points.begin(), points.end(),
                       [&](const std::vector<double>& other) { return dominates(other, point); })) {
        front.insert(point);
      }
    }
    std::set<std::vector<double>> found;
    for (const TunedConfig& tuned : result.finalists) {
      EXPECT_TRUE(
          found.insert(targets([&](const std::string& name) { return value_of(tuned, name); }))
              .second);
    }
    EXPECT_EQ(found, front);
    EXPECT_TRUE(std::is_sorted(result.finalists.begin(), result.finalists.end(),
                               [](const TunedConfig& a, const TunedConfig& b) {
                                 return a.judgement.targets[0] < b.judgement.targets[0];
                               }));
  }

  Problem problem = testing_support::null_problem(300);
  std::shared_ptr<NullWithDefault> family;
  std::unique_ptr<RequestsMeasurer> measurer;
  TuneOptions options;
  std::vector<Truth> all;
};

TEST_F(TuneObjectiveTest, TheBestTimeUnderBounds) {
  const auto result = tune("minimise time_ns subject to pack_ns <= 2 us and bytes <= 16 KiB");
  ASSERT_TRUE(result) << result.error().message;
  check(*result);
  const double wanted = best("time_ns", false, [](auto values) {
    return values["pack_ns"] <= 2000 && values["bytes"] <= 16384;
  });
  EXPECT_DOUBLE_EQ(result->finalists.front().time_ns, wanted);
  EXPECT_GT(wanted, best("time_ns", false, [](const auto&) { return true; })) << "no bound at all";
  EXPECT_EQ(result->measured.size(), all.size());
}

TEST_F(TuneObjectiveTest, AMetricOfALaterStageIsMaximisedUnderATime) {
  const auto result = tune("maximise accuracy subject to time_ns <= 2.4 ms");
  ASSERT_TRUE(result) << result.error().message;
  check(*result);
  EXPECT_DOUBLE_EQ(value_of(result->finalists.front(), "accuracy"),
                   best("accuracy", true, [](auto values) { return values["time_ns"] <= 2.4e6; }));
  EXPECT_EQ(std::count_if(measurer->requests.begin(), measurer->requests.end(),
                          [](const Request& request) { return !request.evaluate.empty(); }),
            static_cast<std::ptrdiff_t>(all.size()));
}

TEST_F(TuneObjectiveTest, BoundsByTheDefaultConfig) {
  family->defaults = {all[all.size() / 2].config};
  const std::map<std::string, double> baseline = all[all.size() / 2].values;
  const auto faster = tune("maximise accuracy subject to time_ns <= 0.8 * baseline");
  ASSERT_TRUE(faster) << faster.error().message;
  check(*faster);
  EXPECT_DOUBLE_EQ(value_of(faster->finalists.front(), "accuracy"),
                   best("accuracy", true, [&](auto values) {
                     return values["time_ns"] <= 0.8 * baseline.at("time_ns");
                   }));
  ASSERT_TRUE(faster->by_default);
  EXPECT_DOUBLE_EQ(faster->by_default->time_ns, baseline.at("time_ns"));
  EXPECT_DOUBLE_EQ(find_metric(faster->baseline, "accuracy")->value, baseline.at("accuracy"));
  const auto good = tune(
      "minimise time_ns subject to accuracy >= baseline - 1 and bytes <= "
      "baseline * 0.5");
  ASSERT_TRUE(good) << good.error().message;
  check(*good);
  EXPECT_DOUBLE_EQ(good->finalists.front().time_ns, best("time_ns", false, [&](auto values) {
                     return values["accuracy"] >= baseline.at("accuracy") - 1 &&
                            values["bytes"] <= 0.5 * baseline.at("bytes");
                   }));
  // Nothing to refer to.
  family->defaults.clear();
  const auto refused = tune("minimise time_ns subject to accuracy >= baseline - 1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(TuneObjectiveTest, WhatIsKeptBesideABoundNeverWins) {
  const auto result = tune("minimise time_ns subject to bytes <= 8 KiB keep 32 KiB");
  ASSERT_TRUE(result) << result.error().message;
  check(*result);
  EXPECT_DOUBLE_EQ(result->finalists.front().time_ns,
                   best("time_ns", false, [](auto values) { return values["bytes"] <= 8192; }));
  const auto kept =
      std::count_if(result->measured.begin(), result->measured.end(), [](const TunedConfig& tuned) {
        return tuned.judgement.is_kept() && !tuned.judgement.is_feasible();
      });
  EXPECT_EQ(kept, std::count_if(all.begin(), all.end(), [](const Truth& truth) {
              return truth.values.at("bytes") > 8192 && truth.values.at("bytes") <= 32768;
            }));
  EXPECT_GT(kept, 0);
}

TEST_F(TuneObjectiveTest, ParetoSetsAreThoseOfTheFormulas) {
  options.finalists = 1000;
  const auto everything = [](const auto&) { return true; };
  const auto two = tune("pareto time_ns pack_ns");
  ASSERT_TRUE(two) << two.error().message;
  check(*two);
  check_front(*two, {"time_ns", "pack_ns"}, everything);
  EXPECT_GT(two->finalists.size(), 3U);
  const auto three = tune("pareto time_ns accuracy bytes");
  ASSERT_TRUE(three) << three.error().message;
  check(*three);
  check_front(*three, {"time_ns", "accuracy", "bytes"}, everything);
  EXPECT_GT(three->finalists.size(), two->finalists.size());
  const auto bounded = tune("pareto accuracy pack_ns subject to time_ns <= 3 ms");
  ASSERT_TRUE(bounded) << bounded.error().message;
  check(*bounded);
  check_front(*bounded, {"accuracy", "pack_ns"},
              [](auto values) { return values["time_ns"] <= 3e6; });
}

TEST_F(TuneObjectiveTest, AFrontIsExactOverWhatWasMeasured) {
  options.finalists = 1000;
  options.strategy = "local";
  options.budget.measurements = 120;
  const auto result = tune("pareto time_ns pack_ns");
  ASSERT_TRUE(result) << result.error().message;
  check(*result);
  std::set<Config> expected;
  for (const TunedConfig& tuned : result->measured) {
    const bool is_dominated = std::any_of(
        result->measured.begin(), result->measured.end(), [&](const TunedConfig& other) {
          return dominates(other.judgement.targets.view(), tuned.judgement.targets.view());
        });
    if (!is_dominated) {
      expected.insert(tuned.config);
    }
  }
  for (const TunedConfig& tuned : result->finalists) {
    EXPECT_TRUE(expected.contains(tuned.config));
  }
  std::set<std::pair<double, double>> values;
  for (const TunedConfig& tuned : result->measured) {
    if (expected.contains(tuned.config)) {
      values.emplace(tuned.judgement.targets[0], tuned.judgement.targets[1]);
    }
  }
  EXPECT_EQ(result->finalists.size(), values.size()) << "of equal ones the first";
}

TEST_F(TuneObjectiveTest, AFrontLargerThanTheComparisonIsThinnedOut) {
  options.finalists = 4;
  const auto result = tune("pareto time_ns accuracy bytes");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->finalists.size(), 4U);
}

TEST_F(TuneObjectiveTest, WhereNothingIsFeasibleTheNearestIsNamed) {
  const auto result = tune("minimise time_ns subject to bytes <= 700 B");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
  double least = 1e30;
  for (const Truth& truth : all) {
    least = std::min(least, truth.values.at("bytes"));
  }
  ASSERT_GT(least, 700);
  EXPECT_THAT(result.error().message,
              HasSubstr("meets the bounds of 'minimise time_ns subject to bytes <= 700 B'; the "
                        "nearest has bytes " +
                        concat(static_cast<std::int64_t>(least))));
  EXPECT_THAT(result.error().message, HasSubstr("block_m=8 block_n=8 block_k=16"));
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
}

TEST_F(TuneObjectiveTest, ConfigsAreStoppedEarlyOnlyForTheTimeAlone) {
  family->defaults = {all.front().config};
  const auto incumbents = [&](const std::string& objective) {
    EXPECT_TRUE(tune(objective));
    return std::count_if(measurer->requests.begin(), measurer->requests.end(),
                         [](const Request& request) { return request.incumbent_ns > 0; });
  };
  EXPECT_GT(incumbents("minimise time_ns"), 100);
  EXPECT_EQ(incumbents("minimise time_ns subject to bytes <= 1 MiB"), 0);
  EXPECT_EQ(incumbents("minimise pack_ns"), 0);
  EXPECT_EQ(incumbents("pareto time_ns pack_ns"), 0);
}

TEST_F(TuneObjectiveTest, EvaluationsThatFailTakeTheirConfigsOutOfTheRace) {
  make({{"evaluate_fail", "0.5"}});
  const NullParameters parameters =
      *parse_null_parameters({.parameters = {{"evaluate_fail", "0.5"}}});
  std::erase_if(all, [&](const Truth& truth) {
    return null_evaluation_fault(parameters, problem, truth.config) != NullFault::kNone;
  });
  const testing_support::TemporaryFolder folder;
  auto journal = JournalWriter::open(folder / "a.ftd", header_of(family->info()));
  ASSERT_TRUE(journal);
  options.objective = *Objective::parse("maximise accuracy subject to time_ns <= 3 ms");
  const auto result = tune_problem(*family, *measurer, journal->get(), problem, options, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_DOUBLE_EQ(value_of(result->finalists.front(), "accuracy"),
                   best("accuracy", true, [](auto values) { return values["time_ns"] <= 3e6; }));
  journal->reset();
  const Dataset dataset = *read_dataset(folder / "a.ftd");
  std::size_t evaluations = 0;
  for (const Dataset::Row& row : dataset.rows()) {
    evaluations += row.is_evaluation() ? 1U : 0U;
  }
  EXPECT_EQ(evaluations, result->measured.size());
  // Where all fail, the sentence says why.
  make({{"evaluate_fail", "1"}});
  const auto none = tune("maximise accuracy");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("asked to fail to be evaluated"));
}

TEST_F(TuneObjectiveTest, EveryStrategyTradesOffWithinItsBudget) {
  for (const char* name : {"random", "stratified", "local", "de", "evolution", "annealing"}) {
    options.strategy = name;
    options.budget.measurements = 100;
    options.finalists = 8;
    const auto result = tune("pareto time_ns pack_ns accuracy");
    ASSERT_TRUE(result) << name << ": " << result.error().message;
    check(*result);
    std::set<Config> seen;
    for (const Request& request : measurer->requests) {
      if (request.evaluate.empty()) {
        EXPECT_TRUE(seen.insert(request.config).second) << name;
      }
    }
    const auto again = tune("pareto time_ns pack_ns accuracy");
    ASSERT_TRUE(again);
    ASSERT_EQ(again->measured.size(), result->measured.size());
    for (std::size_t i = 0; i < result->measured.size(); ++i) {
      EXPECT_EQ(again->measured[i].config, result->measured[i].config) << name;
    }
  }
}

TEST_F(TuneObjectiveTest, UnknownMetricsAreNamedWithThoseThatThereAre) {
  const auto result = tune("minimise colour");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(result.error().message,
            "null does not measure 'colour'; its metrics are time_ns, median_ns, pack_ns, bytes, "
            "accuracy");
}

}  // namespace
}  // namespace foretune
