// Metrics and stages of their own through a real worker process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretune/families/null/null.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using testing::HasSubstr;

Problem metrics_problem() {
  return GemmProblem::create({.m = 512, .n = 768, .k = 256})->to_problem();
}

WorkerSetup metrics_setup(std::vector<std::pair<std::string, std::string>> parameters) {
  WorkerSetup setup;
  setup.worker_command = {FORETUNE_TEST_WORKER, "null"};
  setup.family = "null";
  setup.family_options.parameters = std::move(parameters);
  setup.family_options.parameters.emplace_back("metrics", "1");
  setup.family_options.parameters.emplace_back("noise", "0");
  return setup;
}

std::vector<Config> some_configs(const WorkerSetup& setup, std::uint64_t count) {
  const auto family = make_null(setup.family_options);
  const auto space = (*family)->space(metrics_problem());
  std::vector<Config> configs;
  for (std::uint64_t i = 0; i < count; ++i) {
    configs.push_back((*space)->enumerable()->unrank(i));
  }
  return configs;
}

TEST(WorkerMetrics, RunsAndEvaluationsYieldWhatTheyDoLocally) {
  const WorkerSetup setup = metrics_setup({});
  auto worker = make_worker_measurer(setup, {}, {});
  ASSERT_TRUE(worker) << worker.error().message;
  const auto local = make_local_measurer(*make_null(setup.family_options), {}, {});
  for (const Config& config : some_configs(setup, 5)) {
    const Request timing{.problem = metrics_problem(), .config = config};
    EXPECT_EQ((*worker)->measure(timing), local->measure(timing));
    const Request evaluation{
        .problem = metrics_problem(), .config = config, .evaluate = {std::string(kNullAccuracy)}};
    const Measurement found = (*worker)->measure(evaluation);
    EXPECT_EQ(found, local->measure(evaluation));
    EXPECT_EQ(found.outcome, Outcome::kOk) << found.reason;
    EXPECT_TRUE(found.is_evaluation());
    EXPECT_EQ(found.find(kNullAccuracy)->value, null_accuracy(config));
    EXPECT_EQ(found.find(kTimeNs), nullptr);
  }
  const std::vector<Config> configs = some_configs(setup, 4);
  const std::vector<Measurement> compared = (*worker)->compare(metrics_problem(), configs, 3);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    EXPECT_EQ(compared[i].find(kPackNs)->value, null_pack_ns(metrics_problem(), configs[i]));
    EXPECT_EQ(compared[i].find(kWorkspaceBytes)->value, null_bytes(configs[i]));
  }
}

TEST(WorkerMetrics, AnEvaluationThatFailsCrashesOrHangsIsAnOutcomeAndTheTimeStands) {
  const WorkerSetup setup = metrics_setup(
      {{"evaluate_crash", "0.3"}, {"evaluate_hang", "0.1"}, {"evaluate_fail", "0.3"}});
  const NullParameters parameters = *parse_null_parameters(setup.family_options);
  Protocol protocol;
  protocol.time_limit_s = 0.4;
  auto measurer = make_worker_measurer(setup, protocol, {});
  ASSERT_TRUE(measurer) << measurer.error().message;
  std::map<NullFault, int> kinds;
  for (const Config& config : some_configs(setup, 60)) {
    const NullFault fault = null_evaluation_fault(parameters, metrics_problem(), config);
    const Measurement timed =
        (*measurer)->measure({.problem = metrics_problem(), .config = config});
    EXPECT_EQ(timed.outcome, Outcome::kOk) << timed.reason;
    EXPECT_EQ(timed.find(kTimeNs)->value, null_time_ns(metrics_problem(), config));
    const Measurement found = (*measurer)->measure(
        {.problem = metrics_problem(), .config = config, .evaluate = {std::string(kNullAccuracy)}});
    ++kinds[fault];
    const std::map<NullFault, Outcome> expected{{NullFault::kNone, Outcome::kOk},
                                                {NullFault::kCrash, Outcome::kCrashed},
                                                {NullFault::kHang, Outcome::kTimedOut},
                                                {NullFault::kPrepareFail, Outcome::kPrepareFailed}};
    ASSERT_EQ(found.outcome, expected.at(fault)) << found.reason;
    EXPECT_EQ(found.stage, Stage::kEvaluate);
    EXPECT_EQ(found.metrics.empty(), fault != NullFault::kNone);
    if (fault == NullFault::kCrash || fault == NullFault::kHang) {
      EXPECT_THAT(found.reason, HasSubstr("(while evaluating)"));
    }
  }
  EXPECT_EQ(kinds.size(), 4U);
}

TEST(WorkerMetrics, UnknownMetricsAreUnsupported) {
  const WorkerSetup setup = metrics_setup({});
  auto measurer = make_worker_measurer(setup, {}, {});
  ASSERT_TRUE(measurer) << measurer.error().message;
  const Measurement found =
      (*measurer)->measure({.problem = metrics_problem(),
                            .config = some_configs(setup, 1)[0],
                            .evaluate = {std::string(kNullAccuracy), "colour"}});
  EXPECT_EQ(found.outcome, Outcome::kUnsupported);
  EXPECT_TRUE(found.is_evaluation());
  EXPECT_THAT(found.reason, HasSubstr("colour"));
}

}  // namespace
}  // namespace foretune
