// kill -9 at random moments of a collecting process: no lost record, no duplicate, and the same set
// in the end.
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
#include "foretune/base/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/dataset/journal.h"

namespace foretune {
namespace {

constexpr const char* kDriver = FORETUNE_COLLECT_DRIVER;

struct DriverRun {
  std::set<std::uint64_t> kept;  // keys whose records the driver saw kept
  bool done = false;
  std::string obituary;
};

// Runs the driver; kills it after `life`, unless it ends before.
DriverRun run_driver(const std::string& path, bool active, std::chrono::microseconds life) {
  DriverRun run;
  std::vector<std::string> command{kDriver, path};
  if (active) {
    command.emplace_back("active");
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
  // What was said before the end may still be in the channel.
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while ((*child)->receive(output, soon) == ChildProcess::Read::kData) {
  }
  const std::string text(reinterpret_cast<const char*>(output.data()), output.size());
  std::vector<std::string_view> lines = split(text, '\n');
  lines.pop_back();  // empty, or torn by the kill
  for (const std::string_view line : lines) {
    if (line == "done") {
      run.done = true;
    } else if (const auto key = parse_uint(line)) {
      EXPECT_TRUE(run.kept.insert(*key).second) << "measured twice in one run";
    }
  }
  run.obituary = (*child)->obituary();
  return run;
}

// Outcome by key; fails the test when a key stands in the file twice.
std::map<std::uint64_t, Outcome> rows_of(const std::string& path) {
  std::map<std::uint64_t, Outcome> rows;
  const auto dataset = read_dataset(path);
  if (!dataset) {
    ADD_FAILURE() << dataset.error().message;
    return rows;
  }
  for (RowIndex i = 0; i < dataset->size(); ++i) {
    const Measurement row = dataset->measurement(i);
    const Outcome outcome = row.outcome == Outcome::kCensored ? Outcome::kOk : row.outcome;
    EXPECT_TRUE(rows.emplace(resume_key(row.problem, row.config, row.context), outcome).second)
        << "duplicate row";
  }
  return rows;
}

void kill_and_continue(bool active, int wanted_kills) {
  constexpr std::uint64_t kSeed = 20250131;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  const testing_support::TemporaryFolder folder;
  const std::string undisturbed = folder / "undisturbed.ftd";
  const auto begin = std::chrono::steady_clock::now();
  const DriverRun whole = run_driver(undisturbed, active, std::chrono::seconds(60));
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  ASSERT_TRUE(whole.done) << whole.obituary;
  const std::map<std::uint64_t, Outcome> reference = rows_of(undisturbed);
  ASSERT_GT(reference.size(), 150U);
  ASSERT_EQ(whole.kept.size(), reference.size());

  int kills = 0;
  for (int file = 0; kills < wanted_kills; ++file) {
    const std::string interrupted = folder / concat("interrupted", file, ".ftd");
    std::set<std::uint64_t> kept;
    for (bool done = false; !done;) {
      // Also the very first moments: before the file exists, while its header is written.
      const auto most = static_cast<std::uint64_t>(took.count() / (kills % 3 == 0 ? 12 : 3));
      const std::chrono::microseconds life(kills < wanted_kills ? rng.below(most) : 60'000'000);
      const DriverRun run = run_driver(interrupted, active, life);
      done = run.done;
      kills += done ? 0 : 1;
      for (const std::uint64_t key : run.kept) {
        EXPECT_TRUE(kept.insert(key).second) << "a kept record was measured again";
      }
      if (kept.empty() && !done) {
        continue;  // perhaps there is no file yet
      }
      const std::map<std::uint64_t, Outcome> rows = rows_of(interrupted);
      for (const std::uint64_t key : kept) {
        EXPECT_TRUE(rows.contains(key)) << "a kept record is lost";
      }
      // At most the one record that was written but not yet spoken of, per kill.
      for (const auto& [key, outcome] : rows) {
        kept.insert(key);
      }
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    EXPECT_EQ(rows_of(interrupted), reference);
  }
  EXPECT_GE(kills, wanted_kills);
}

TEST(CollectKill, FiftyKillsLoseNothingRepeatNothingAndReachTheSameSet) {
  kill_and_continue(false, 50);
}

TEST(CollectKill, WithAModelInTheLoopToo) { kill_and_continue(true, 30); }

}  // namespace
}  // namespace foretune
