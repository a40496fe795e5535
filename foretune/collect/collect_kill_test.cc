// Kills a collecting process (kill -9) at random moments. No record is lost or duplicated, and the
// final set is the same.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/child_process.h"
#include "foretune/base/rng.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"

namespace foretune {
namespace {

constexpr const char* kDriver = FORETUNE_COLLECT_DRIVER;

// A record: its resume key, and true for a later stage.
using RecordKey = std::pair<std::uint64_t, bool>;

struct DriverRun {
  std::set<RecordKey> kept;    // records that the driver saw kept
  bool is_evaluating = false;  // the last of them was of a later stage
  bool done = false;
  std::string obituary;
};

// Runs the driver; kills it after `life`, unless it ends before.
DriverRun run_driver(const std::string& path, const std::string& mode,
                     std::chrono::microseconds life) {
  DriverRun run;
  std::vector<std::string> command{kDriver, path};
  if (!mode.empty()) {
    command.push_back(mode);
  }
  auto child = ChildProcess::start(command);
  if (!child) {
    ADD_FAILURE() << child.error().message;
    return run;
  }
  const auto deadline = std::chrono::steady_clock::now() + life;
  std::vector<std::byte> output;
  while ((*child)->receive(output, deadline) == ChildProcess::Read::kData) {
  }
  (*child)->kill();
  // The channel may still have output from before the end.
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while ((*child)->receive(output, soon) == ChildProcess::Read::kData) {
  }
  const std::string text(reinterpret_cast<const char*>(output.data()), output.size());
  std::vector<std::string_view> lines = split(text, '\n');
  lines.pop_back();  // empty, or torn by the kill
  constexpr std::string_view kEvaluated = "evaluated ";
  for (std::string_view line : lines) {
    const bool is_evaluation = line.starts_with(kEvaluated);
    line.remove_prefix(is_evaluation ? kEvaluated.size() : 0);
    if (line == "done") {
      run.done = true;
    } else if (const auto key = parse_uint(line)) {
      EXPECT_TRUE(run.kept.emplace(*key, is_evaluation).second) << "measured twice in one run";
      run.is_evaluating = is_evaluation;
    }
  }
  run.obituary = (*child)->obituary();
  return run;
}

// The contents of a record except its time, which noise changes every time.
struct Content {
  Outcome outcome = Outcome::kOk;
  std::vector<MetricValue> metrics;
  bool operator==(const Content&) const = default;
};

// Returns contents by key. Fails the test when the file has a key twice.
std::map<RecordKey, Content> rows_of(const std::string& path) {
  std::map<RecordKey, Content> rows;
  const auto dataset = read_dataset(path);
  if (!dataset) {
    ADD_FAILURE() << dataset.error().message;
    return rows;
  }
  for (RowIndex i = 0; i < dataset->size(); ++i) {
    const Measurement row = dataset->measurement(i);
    Content content{row.outcome == Outcome::kCensored ? Outcome::kOk : row.outcome, {}};
    for (const MetricValue& value : row.metrics) {
      if (value.metric != kTimeNs && value.metric != kMedianNs) {
        content.metrics.push_back(value);
      }
    }
    const RecordKey key(resume_key(row.problem, row.config, row.context), row.is_evaluation());
    EXPECT_TRUE(rows.emplace(key, std::move(content)).second) << "duplicate row";
  }
  return rows;
}

void kill_and_continue(const std::string& mode, int wanted_kills) {
  constexpr std::uint64_t kSeed = 20250131;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  const testing_support::TemporaryFolder folder;
  const std::string undisturbed = folder / "undisturbed.ftd";
  const auto begin = std::chrono::steady_clock::now();
  const DriverRun whole = run_driver(undisturbed, mode, std::chrono::seconds(60));
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  ASSERT_TRUE(whole.done) << whole.obituary;
  const std::map<RecordKey, Content> reference = rows_of(undisturbed);
  ASSERT_GT(reference.size(), 150U);
  ASSERT_EQ(whole.kept.size(), reference.size());

  int kills = 0;
  int kills_evaluating = 0;
  for (int file = 0; kills < wanted_kills; ++file) {
    const std::string interrupted = folder / concat("interrupted", file, ".ftd");
    std::set<RecordKey> kept;
    for (bool done = false; !done;) {
      // This includes the very first moments: before the file exists, and while its header is
      // written.
      const auto most = static_cast<std::uint64_t>(took.count() / (kills % 3 == 0 ? 12 : 3));
      const std::chrono::microseconds life(kills < wanted_kills ? rng.below(most) : 60'000'000);
      const DriverRun run = run_driver(interrupted, mode, life);
      done = run.done;
      kills += done ? 0 : 1;
      kills_evaluating += !done && run.is_evaluating ? 1 : 0;
      for (const RecordKey& key : run.kept) {
        EXPECT_TRUE(kept.insert(key).second) << "a kept record was measured again";
      }
      if (kept.empty() && !done) {
        continue;  // perhaps there is no file yet
      }
      const std::map<RecordKey, Content> rows = rows_of(interrupted);
      for (const RecordKey& key : kept) {
        EXPECT_TRUE(rows.contains(key)) << "a kept record is lost";
      }
      // At most one record per kill was written but not yet reported.
      for (const auto& [key, content] : rows) {
        kept.insert(key);
      }
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    EXPECT_EQ(rows_of(interrupted), reference);
  }
  EXPECT_GE(kills, wanted_kills);
  if (mode == "metrics") {
    EXPECT_GT(kills_evaluating, wanted_kills / 8);
    EXPECT_LT(kills_evaluating, wanted_kills * 7 / 8);
  }
}

TEST(CollectKill, FiftyKillsLoseNothingRepeatNothingAndReachTheSameSet) {
  kill_and_continue("", 50);
}

TEST(CollectKill, WithAModelInTheLoopToo) { kill_and_continue("active", 30); }

// Records of different lengths: networks of 44 to 289 layers.
TEST(CollectKill, SequencesResumeWithoutLossOrRepetition) { kill_and_continue("sequence", 30); }

// Stages resume separately: each config is timed once and evaluated once, wherever the kills were.
TEST(CollectKill, StagesOfThreeMetricsResumeWithoutLossOrRepetition) {
  kill_and_continue("metrics", 50);
}

}  // namespace
}  // namespace foretune
