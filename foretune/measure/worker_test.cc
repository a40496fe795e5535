// Faults of every kind through a real worker process.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/child_process.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/families/null/null.h"
#include "foretune/measure/measure.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/testing/all_configs.h"

namespace foretune {
namespace {

constexpr const char* kWorker = FORETUNE_TEST_WORKER;
using testing::HasSubstr;

Problem some_problem(std::int64_t m = 512) {
  return GemmProblem::create({.m = m, .n = 768, .k = 256})->to_problem();
}

WorkerSetup setup_with(std::vector<std::pair<std::string, std::string>> parameters,
                       std::vector<std::string> mode = {"null"}) {
  WorkerSetup setup;
  setup.worker_command = {kWorker};
  setup.worker_command.insert(setup.worker_command.end(), mode.begin(), mode.end());
  setup.family = "null";
  setup.family_options.parameters = std::move(parameters);
  return setup;
}

std::vector<Config> all_configs(const WorkerSetup& setup, const Problem& problem) {
  const auto family = make_null(setup.family_options);
  const auto space = (*family)->space(problem);
  return all_configs(*(*space)->enumerable());
}

Protocol quick_protocol() {
  Protocol protocol;
  protocol.time_limit_s = 0.4;  // a busy machine must not look like a hang
  return protocol;
}

TEST(Worker, HundredFaultsCompleteWithNothingLost) {
  const WorkerSetup setup = setup_with({{"seed", "5"},
                                        {"crash", "0.2"},
                                        {"hang", "0.06"},
                                        {"wrong", "0.15"},
                                        {"prepare_fail", "0.15"}});
  const NullParameters parameters = *parse_null_parameters(setup.family_options);
  auto measurer = make_worker_measurer(setup, quick_protocol(), {});
  ASSERT_TRUE(measurer) << measurer.error().message;
  std::size_t faults = 0;
  std::size_t answers = 0;
  std::array<std::size_t, 5> kinds{};
  for (std::int64_t m = 64; faults < 100; m *= 2) {
    for (const Config& config : all_configs(setup, some_problem(m))) {
      const Measurement measurement =
          (*measurer)->measure({.problem = some_problem(m), .config = config});
      ++answers;
      const NullFault fault = null_fault(parameters, some_problem(m), config);
      faults += fault == NullFault::kNone ? 0 : 1;
      ++kinds[static_cast<std::size_t>(fault)];
      constexpr std::array<Outcome, 5> kExpected{Outcome::kOk, Outcome::kCrashed,
                                                 Outcome::kTimedOut, Outcome::kWrongResult,
                                                 Outcome::kPrepareFailed};
      ASSERT_EQ(measurement.outcome, kExpected[static_cast<std::size_t>(fault)])
          << to_string(measurement.outcome) << ": " << measurement.reason;
      EXPECT_EQ(measurement.config, config);
      EXPECT_EQ(measurement.metrics.empty(), fault != NullFault::kNone);
      EXPECT_EQ(measurement.stage == Stage::kNone, fault == NullFault::kNone);
      if (faults == 100) {
        break;
      }
    }
  }
  EXPECT_GT(answers, 150U);
  for (const std::size_t count : kinds) {
    EXPECT_GT(count, 3U);
  }
}

TEST(Worker, CrashesNameSignalAndStage) {
  const WorkerSetup setup = setup_with({{"crash", "1"}});
  auto measurer = make_worker_measurer(setup, quick_protocol(), {});
  ASSERT_TRUE(measurer) << measurer.error().message;
  std::array<std::size_t, 5> stages{};
  std::size_t aborts = 0;
  std::size_t segfaults = 0;
  const std::vector<Config> configs = all_configs(setup, some_problem());
  for (std::size_t i = 0; i < 40; ++i) {
    const Measurement measurement =
        (*measurer)->measure({.problem = some_problem(), .config = configs[i]});
    ASSERT_EQ(measurement.outcome, Outcome::kCrashed);
    ++stages[static_cast<std::size_t>(measurement.stage)];
    aborts += measurement.reason.find("SIGABRT") != std::string::npos ? 1 : 0;
    segfaults += measurement.reason.find("SIGSEGV") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(aborts + segfaults, 40U);
  EXPECT_GT(aborts, 5U);
  EXPECT_GT(segfaults, 5U);
  EXPECT_EQ(stages[static_cast<std::size_t>(Stage::kNone)], 0U);
  EXPECT_GT(stages[static_cast<std::size_t>(Stage::kPrepare)], 2U);
  EXPECT_GT(stages[static_cast<std::size_t>(Stage::kBind)], 2U);
  EXPECT_GT(stages[static_cast<std::size_t>(Stage::kRun)], 5U);
}

TEST(Worker, HangsEndAtTheLimit) {
  const WorkerSetup setup = setup_with({{"hang", "1"}});
  auto measurer = make_worker_measurer(setup, quick_protocol(), {});
  ASSERT_TRUE(measurer);
  const auto begin = std::chrono::steady_clock::now();
  const Measurement measurement = (*measurer)->measure(
      {.problem = some_problem(), .config = all_configs(setup, some_problem())[0]});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(measurement.outcome, Outcome::kTimedOut);
  EXPECT_THAT(measurement.reason, HasSubstr("0.4 s"));
  EXPECT_GE(took.count(), 0.39);
  EXPECT_LT(took.count(), 5.0);
}

TEST(Worker, MeasuresAsTheLocalMeasurerDoes) {
  const WorkerSetup setup = setup_with({{"noise", "0.05"}});
  Context context;
  context.machine = 9;
  context.device = "here";
  Protocol protocol;
  protocol.keep_samples = true;
  auto measurer = make_worker_measurer(setup, protocol, context);
  ASSERT_TRUE(measurer);
  const std::shared_ptr<const Family> family = *make_null(setup.family_options);
  auto local = make_local_measurer(family, protocol, context);
  EXPECT_EQ((*measurer)->context(), local->context());
  const std::vector<Config> configs = all_configs(setup, some_problem());
  for (std::size_t i = 0; i < configs.size(); i += 17) {
    const Request request{
        .problem = some_problem(), .config = configs[i], .incumbent_ns = i % 2 == 0 ? -1.0 : 3e3};
    EXPECT_EQ((*measurer)->measure(request), local->measure(request));
  }
  const std::span<const Config> three(configs.data(), 3);
  EXPECT_EQ((*measurer)->compare(some_problem(), three, 4),
            local->compare(some_problem(), three, 4));
}

TEST(Worker, ComparisonGoesOnWithoutThoseThatFail) {
  const WorkerSetup setup =
      setup_with({{"seed", "3"}, {"crash", "0.3"}, {"hang", "0.1"}, {"wrong", "0.2"}});
  const NullParameters parameters = *parse_null_parameters(setup.family_options);
  auto measurer = make_worker_measurer(setup, quick_protocol(), {});
  ASSERT_TRUE(measurer);
  std::vector<Config> configs = all_configs(setup, some_problem());
  configs.resize(20);
  const std::vector<Measurement> measurements = (*measurer)->compare(some_problem(), configs, 5);
  ASSERT_EQ(measurements.size(), configs.size());
  std::size_t good = 0;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const bool fine = null_fault(parameters, some_problem(), configs[i]) == NullFault::kNone;
    EXPECT_EQ(measurements[i].outcome == Outcome::kOk, fine) << measurements[i].reason;
    EXPECT_EQ(measurements[i].config, configs[i]);
    EXPECT_NE(measurements[i].flags & kFlagReference, 0);
    if (fine) {
      ++good;
      EXPECT_EQ(measurements[i].find(kTimeNs)->samples, 5U);
    }
  }
  EXPECT_GT(good, 3U);
  EXPECT_LT(good, 17U);
}

TEST(Worker, StartFailuresAreOneClearSentence) {
  const auto start = [](const WorkerSetup& setup) {
    const auto measurer = make_worker_measurer(setup, quick_protocol(), {});
    return measurer ? std::string("started") : measurer.error().message;
  };
  WorkerSetup absent = setup_with({});
  absent.worker_command = {"/no/such/program"};
  EXPECT_THAT(start(absent), HasSubstr("/no/such/program cannot be started as a worker"));
  absent.worker_command.clear();
  EXPECT_THAT(start(absent), HasSubstr("no command"));
  EXPECT_THAT(start(setup_with({}, {"exit"})),
              HasSubstr("ended with exit code 7: the library libmissing.so was not found"));
  EXPECT_THAT(start(setup_with({}, {"garbage"})), HasSubstr("damaged"));
  EXPECT_THAT(start(setup_with({{"colour", "red"}})), HasSubstr("null has no option 'colour'"));
  WorkerSetup unknown = setup_with({});
  unknown.family = "cpu-conv";
  EXPECT_THAT(start(unknown), HasSubstr("there is no family 'cpu-conv' here"));
}

TEST(Worker, WhatLibrariesPrintDoesNotDamageTheAnswers) {
  const WorkerSetup setup = setup_with({{"crash", "1"}}, {"chatty"});
  auto measurer = make_worker_measurer(setup, quick_protocol(), {});
  ASSERT_TRUE(measurer) << measurer.error().message;
  const Measurement measurement = (*measurer)->measure(
      {.problem = some_problem(), .config = all_configs(setup, some_problem())[0]});
  EXPECT_EQ(measurement.outcome, Outcome::kCrashed);
  EXPECT_THAT(measurement.reason, HasSubstr("the strangest things"));
}

TEST(Worker, InheritsNoOpenFile) {
  const int leaked = ::open("/dev/null", O_RDONLY);  // NOLINT: without O_CLOEXEC on purpose
  ASSERT_GE(leaked, 0);
  const auto measurer = make_worker_measurer(setup_with({}, {"open-files"}), quick_protocol(), {});
  ::close(leaked);
  ASSERT_FALSE(measurer);
  // Standard input, output and error, the channel's own descriptor, and the listing itself.
  EXPECT_EQ(measurer.error().message, "open files: 5");
}

// "pid group" of a worker once it has written them.
std::pair<pid_t, pid_t> read_pids(const std::filesystem::path& path) {
  for (int i = 0; i < 500; ++i) {
    std::ifstream file(path);
    pid_t pid = 0;
    pid_t group = 0;
    if (file >> pid >> group) {
      return {pid, group};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return {0, 0};
}

bool is_running(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  const std::size_t end = text.rfind(')');
  return end != std::string::npos && text.size() > end + 2 && text[end + 2] != 'Z' &&
         text[end + 2] != 'X';
}

bool ends_soon(pid_t pid) {
  for (int i = 0; i < 300 && is_running(pid); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return !is_running(pid);
}

TEST(Worker, LivesInItsOwnProcessGroupAndEndsWithItsMeasurer) {
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path file = folder / "pids";
  auto measurer =
      make_worker_measurer(setup_with({}, {"pid-file", file.string()}), quick_protocol(), {});
  ASSERT_TRUE(measurer);
  const auto [pid, group] = read_pids(file);
  ASSERT_GT(pid, 0);
  // Ctrl-C goes to the group of the terminal: ours.
  EXPECT_EQ(group, pid);
  EXPECT_NE(group, ::getpgrp());
  EXPECT_TRUE(is_running(pid));
  measurer->reset();
  EXPECT_FALSE(is_running(pid));
}

TEST(Worker, KilledWhileIdleIsReplacedWithoutAWord) {
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path file = folder / "pids";
  const WorkerSetup setup = setup_with({}, {"pid-file", file.string()});
  auto measurer = make_worker_measurer(setup, quick_protocol(), {});
  ASSERT_TRUE(measurer);
  const Config config = all_configs(setup, some_problem())[0];
  for (int i = 0; i < 5; ++i) {
    const auto [pid, group] = read_pids(file);
    std::filesystem::remove(file);
    ::kill(pid, SIGKILL);
    const Measurement measurement =
        (*measurer)->measure({.problem = some_problem(), .config = config});
    EXPECT_EQ(measurement.outcome, Outcome::kOk) << measurement.reason;
  }
}

TEST(Worker, DiesWithTheMeasuringProcess) {
  const testing_support::TemporaryFolder folder;
  const std::filesystem::path file = folder / "pids";
  auto parent = ChildProcess::start({kWorker, "parent", file.string()});
  ASSERT_TRUE(parent);
  const auto [pid, group] = read_pids(file);
  ASSERT_GT(pid, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // into the hang
  ASSERT_TRUE(is_running(pid));
  (*parent)->kill();
  EXPECT_TRUE(ends_soon(pid));
}

}  // namespace
}  // namespace foretune
