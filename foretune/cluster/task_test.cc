// Tasks of a run: shards of killed, stopped and stray tasks, and the merge of their journals.
#include "foretune/cluster/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/clock.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/cluster/lease.h"
#include "foretune/cluster/merge.h"
#include "foretune/collect/collect.h"
#include "foretune/families/null/null.h"
#include "foretune/measure/dataset_header.h"
#include "foretune/measure/measure.h"

namespace foretune::cluster {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kConfigs = 12;

class TaskTest : public ::testing::Test {
 protected:
  TaskTest() : family_(make_null({}).value()), header_(header_of(family_->info())) {
    context_.machine = family_->info().fingerprint.digest();
  }

  RunFolder make(std::size_t problems, double lease_s) {
    RunPlan plan;
    plan.command = "collect";
    plan.command_line = "foretune collect";
    plan.lease_s = lease_s;
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < problems; ++i) {
      texts.push_back(Problem::parse(concat("gemm m=", 16 * i + 16, " n=64 k=96"))->text());
    }
    plan.share_out(texts, 2);
    return RunFolder::create(folder_ / "run", plan).value();
  }

  // Collects the shard's problems; `on_row` is called after each measurement.
  ShardWork work(std::function<void()> on_row = {}) {
    return [this, on_row = std::move(on_row)](const ShardContext& shard) -> Status {
      std::vector<Problem> problems;
      for (const std::string& text : shard.shard.problems) {
        FORETUNE_TRY(Problem problem, Problem::parse(text));
        problems.push_back(std::move(problem));
      }
      const auto measurer = make_local_measurer(family_, {}, context_);
      CollectOptions options{.search_space = {.sample_size = kConfigs}};
      options.elsewhere = shard.elsewhere;
      CollectHooks hooks;
      hooks.stop = shard.stop;
      hooks.may_go_on = shard.holds;
      hooks.on_progress = [&](const CollectProgress&) {
        if (on_row) {
          on_row();
        }
      };
      FORETUNE_TRY(const CollectResult result,
                   collect(*family_, *measurer, shard.journal, problems, options, hooks));
      return result.stopped_by_request ? Status(fail(ErrorCode::kCancelled, "stopped")) : Status();
    };
  }
  Result<TaskReport> run_one(const RunFolder& run, const std::string& name,
                             const ShardWork& shard_work) {
    return run_task(run, {.name = name, .locks = {}, .cores = {}, .job = {}}, header_, shard_work);
  }

  testing_support::TemporaryFolder folder_;
  std::shared_ptr<const Family> family_;
  DatasetHeader header_;
  Context context_;
};

TEST_F(TaskTest, OneTaskDoesAllShardsAndAMergeHoldsEachRowOnce) {
  const RunFolder run = make(5, 60);
  const auto report = run_one(run, "only", work());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->finished, 3U);
  const auto merged = merge_run(run);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->duplicates, 0U);
  EXPECT_EQ(merged->dataset.problems().size(), 5U);
  EXPECT_EQ(merged->rows_by_context.size(), 1U);
  const auto tasks = read_tasks(run);
  ASSERT_TRUE(tasks) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 1U);
  EXPECT_EQ(tasks->front().exit, "nothing left to do");
  EXPECT_EQ(tasks->front().report.finished, 3U);
}

TEST_F(TaskTest, ANameIsUsedOnce) {
  const RunFolder run = make(1, 60);
  ASSERT_TRUE(run_one(run, "a", work()));
  const auto again = run_one(run, "a", work());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("has had a task of the name a"));
}

TEST_F(TaskTest, AStoppedTaskGivesItsShardBackAndTheNextMeasuresOnlyTheRest) {
  const RunFolder run = make(2, 60);
  std::atomic<bool> stop = false;
  int rows = 0;
  const auto first =
      run_task(run, {.name = "a", .locks = {}, .cores = {}, .job = {}, .stop = &stop}, header_,
               work([&] { stop = ++rows == 7; }));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(first->was_stopped);
  EXPECT_EQ(run.counts()->todo, 1U);
  int more = 0;
  ASSERT_TRUE(run_one(run, "b", work([&] { ++more; })));
  const auto merged = merge_run(run);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->duplicates, 0U);
  EXPECT_EQ(merged->dataset.size(), static_cast<std::size_t>(7 + more));
}

TEST_F(TaskTest, ATaskWhoseLeaseIsTakenKeepsNothingMore) {
  const RunFolder run = make(2, 0.8);
  int rows = 0;
  const auto report = run_one(
      run, "slow", work([&] {
        if (++rows == 3) {
          // Somebody takes the lease while this task does not look.
          const std::string name = run.names("leased")->front();
          ASSERT_TRUE(rename_once(run.path() / "leased" / name,
                                  run.path() / "done" / concat(split_lease(name).first, ".fast"))
                          .value());
          std::this_thread::sleep_for(std::chrono::milliseconds(700));
        }
      }));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(rows, 3);
  EXPECT_EQ(report->lost, 1U);
  EXPECT_EQ(merge_run(run)->dataset.size(), 3U);
}

TEST_F(TaskTest, ManyTasksGiveTheSameRowsAsOne) {
  const RunFolder run = make(24, 60);
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const auto report = run_one(run, concat("t", t), work());
      EXPECT_TRUE(report) << report.error().message;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const auto merged = merge_run(run);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->duplicates, 0U);
  std::filesystem::rename(run.path(), folder_ / "first");
  const RunFolder alone = make(24, 60);
  ASSERT_TRUE(run_one(alone, "alone", work()));
  const auto expected = merge_run(alone);
  ASSERT_TRUE(expected);
  ASSERT_EQ(merged->dataset.size(), expected->dataset.size());
  for (RowIndex i = 0; i < merged->dataset.size(); ++i) {
    ASSERT_EQ(merged->dataset.measurement(i), expected->dataset.measurement(i)) << i;
  }
}

TEST_F(TaskTest, AShardThatCannotBeMeasuredEndsInFailed) {
  const RunFolder run = make(2, 60);
  const ShardWork broken = [](const ShardContext&) -> Status {
    return fail(ErrorCode::kUnsupported, "there is no such device");
  };
  const auto report = run_one(run, "a", broken);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->failed, kMaxFailures);
  EXPECT_EQ(report->last_failure, "there is no such device");
  EXPECT_EQ(run.counts()->failed, 1U);
  EXPECT_EQ(merge_run(run).error().code, ErrorCode::kNotFound);
}

TEST_F(TaskTest, AMergeDropsRepeatsAndReportsConflicts) {
  const RunFolder run = make(1, 60);
  const auto append = [&](const std::string& task, Outcome outcome, std::int32_t threads) {
    auto journal = JournalWriter::open(run.journal(task), header_, JournalLock::kNone).value();
    const auto space = family_->space(*Problem::parse(run.plan().shards[0].problems[0])).value();
    Rng rng(1);
    Measurement measurement{.problem = *Problem::parse(run.plan().shards[0].problems[0]),
                            .config = space->sample(rng).value(),
                            .context = context_,
                            .outcome = outcome};
    measurement.context.threads = threads;
    if (outcome == Outcome::kOk) {
      measurement.metrics = {{kTimeNs, 1000, 0, 1}};
    } else {
      measurement.reason = "it crashed";
      measurement.stage = Stage::kRun;
    }
    ASSERT_TRUE(journal->append(measurement));
  };
  append("a", Outcome::kOk, 1);
  append("b", Outcome::kOk, 1);
  append("c", Outcome::kCrashed, 1);
  append("d", Outcome::kOk, 2);
  std::ofstream(run.journal("e")) << "FT";  // killed before its first record
  const auto merged = merge_run(run);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->dataset.size(), 2U);
  EXPECT_EQ(merged->duplicates, 2U);
  EXPECT_EQ(merged->conflicts.size(), 1U);
  EXPECT_EQ(merged->rows_by_context.size(), 2U);
  EXPECT_EQ(merged->torn, 1U);
}

}  // namespace
}  // namespace foretune::cluster
