// Leases: races of threads, expiry, takeover, and holders that come back too late.
#include "foretune/cluster/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "foretune/base/file.h"
#include "foretune/base/testing/temporary_folder.h"
#include "foretune/base/text.h"
#include "foretune/cluster/node_locks.h"
#include "foretune/cluster/run_folder.h"

namespace foretune::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunPlan plan_of(std::size_t shards, double lease_s) {
  RunPlan plan;
  plan.command = "collect";
  plan.command_line = "foretune collect";
  plan.lease_s = lease_s;
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < shards; ++i) {
    problems.push_back(concat("gemm m=", i + 1, " n=8 k=8"));
  }
  plan.share_out(problems, 1);
  return plan;
}

class LeaseTest : public ::testing::Test {
 protected:
  RunFolder make(std::size_t shards, double lease_s) {
    auto run = RunFolder::create(folder_ / "run", plan_of(shards, lease_s));
    EXPECT_TRUE(run) << (run ? "" : run.error().message);
    return *std::move(run);
  }
  // Claims, and leaves the file behind as a task does that is killed.
  static std::string claim_and_die(const RunFolder& run, const std::string& task) {
    const auto lease = claim_shard(run, task);
    EXPECT_TRUE(lease && *lease != nullptr);
    return (*lease)->shard().name;
  }
  static void sleep_s(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(LeaseTest, APlanReadsBackAsItWasWritten) {
  RunPlan plan = plan_of(5, 7.5);
  plan.seed = 0xffffffffffffffffU;
  plan.options = {{"family", {"null"}}, {"family-option", {"noise=0", "seed=3"}}};
  plan.plugins = {"a.so"};
  const auto read = RunPlan::parse(plan.json());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->is_same_work(plan));
  EXPECT_EQ(read->plugins, plan.plugins);
  EXPECT_EQ(read->lease_s, 7.5);
}

TEST_F(LeaseTest, BadPlansAreRefusedWithASentence) {
  EXPECT_THAT(RunPlan::parse("{").error().message, HasSubstr("line 1"));
  EXPECT_THAT(RunPlan::parse("{}").error().message, HasSubstr("'format' is missing"));
  RunPlan plan = plan_of(1, 1);
  std::string text = plan.json();
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 9");
  EXPECT_EQ(RunPlan::parse(text).error().code, ErrorCode::kUnsupported);
  text = plan.json();
  text.replace(text.find("s000000"), 7, "../../a");
  EXPECT_EQ(RunPlan::parse(text).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(RunFolder::open(folder_ / "none").error().code, ErrorCode::kNotFound);
}

TEST_F(LeaseTest, OnlyOneOfTwoRunsGetsAFolder) {
  const RunFolder run = make(1, 1);
  const auto second = RunFolder::create(run.path(), plan_of(1, 1));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(LeaseTest, EveryShardGoesToOneOfManyThreads) {
  constexpr std::size_t kShards = 60;
  constexpr std::size_t kThreads = 8;
  const RunFolder run = make(kShards, 60);
  std::atomic<std::size_t> claims = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (;;) {
        const auto lease = claim_shard(run, concat("t", t));
        ASSERT_TRUE(lease) << lease.error().message;
        if (*lease == nullptr) {
          return;
        }
        ++claims;
        EXPECT_TRUE((*lease)->finish().value());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(claims, kShards);
  const RunCounts counts = run.counts().value();
  EXPECT_EQ(counts.done, kShards);
  EXPECT_EQ(counts.open(), 0U);
}

TEST_F(LeaseTest, OneOfManyTakesAnExpiredLeaseOver) {
  constexpr std::size_t kThreads = 8;
  const RunFolder run = make(1, 0.4);
  const std::string shard = claim_and_die(run, "dead");
  EXPECT_EQ(claim_shard(run, "early").value(), nullptr);
  sleep_s(0.6);
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto lease = claim_shard(run, concat("t", t));
      ASSERT_TRUE(lease) << lease.error().message;
      if (*lease != nullptr) {
        ++taken;
        EXPECT_TRUE((*lease)->was_taken_over());
        EXPECT_THAT((*lease)->holders(), ElementsAre("dead"));
        sleep_s(1);  // long enough for the others to take it over, were it not renewed
        EXPECT_TRUE((*lease)->holds());
        EXPECT_TRUE((*lease)->finish().value());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(taken, 1);
  const std::vector<std::string> done = run.names("done").value();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(read_history(run.path() / "done" / done.front())->takeovers, 1U);
  EXPECT_EQ(split_lease(done.front()).first, shard);
}

TEST_F(LeaseTest, AHolderWhoseFileIsGoneNoticesAndMovesNothing) {
  const RunFolder run = make(1, 0.8);
  const auto lease = claim_shard(run, "slow").value();
  const std::filesystem::path file = run.path() / "leased" / concat(lease->shard().name, ".slow");
  ASSERT_TRUE(
      rename_once(file, run.path() / "leased" / concat(lease->shard().name, ".fast")).value());
  sleep_s(0.5);  // past the next renewal
  EXPECT_FALSE(lease->holds());
  EXPECT_FALSE(lease->finish().value());
  EXPECT_THAT(run.names("done").value(), IsEmpty());
  EXPECT_THAT(run.names("leased").value(), ElementsAre(concat(lease->shard().name, ".fast")));
}

TEST_F(LeaseTest, ALeaseGivenBackIsClaimedWithItsHistory) {
  const RunFolder run = make(1, 60);
  EXPECT_TRUE(claim_shard(run, "a").value()->give_back().value());
  const auto lease = claim_shard(run, "b").value();
  ASSERT_NE(lease, nullptr);
  EXPECT_FALSE(lease->was_taken_over());
  EXPECT_THAT(lease->holders(), ElementsAre("a"));
}

TEST_F(LeaseTest, AShardThatFailsThriceIsSetAside) {
  const RunFolder run = make(1, 60);
  for (std::size_t i = 0; i < kMaxFailures; ++i) {
    const auto lease = claim_shard(run, concat("t", i)).value();
    ASSERT_NE(lease, nullptr);
    EXPECT_TRUE(lease->fail_shard("no such\ndevice").value());
  }
  EXPECT_EQ(claim_shard(run, "last").value(), nullptr);
  const RunCounts counts = run.counts().value();
  EXPECT_EQ(counts.failed, 1U);
  EXPECT_EQ(counts.open(), 0U);
  const std::string name = run.names("failed").value().front();
  EXPECT_EQ(read_history(run.path() / "failed" / name)->last_failure, "no such device");
}

TEST_F(LeaseTest, ATaskFindsItsOwnExpiredLeaseAgain) {
  const RunFolder run = make(1, 0.2);
  claim_and_die(run, "same");
  sleep_s(0.4);
  EXPECT_EQ(claim_shard(run, "same").value(), nullptr);  // it is moved to todo first
  const auto lease = claim_shard(run, "same").value();
  ASSERT_NE(lease, nullptr);
  EXPECT_THAT(lease->holders(), ElementsAre("same"));
}

TEST_F(LeaseTest, ARenameWhoseAnswerGotLostCountsAsDone) {
  std::ofstream(folder_ / "to") << "there";
  EXPECT_TRUE(rename_once(folder_ / "from", folder_ / "to").value());
  EXPECT_FALSE(rename_once(folder_ / "from", folder_ / "nothing").value());
}

TEST_F(LeaseTest, AnAgeIsByTheClockOfTheServer) {
  std::ofstream(folder_ / "file") << "x";
  std::filesystem::last_write_time(
      folder_ / "file", std::filesystem::file_time_type::clock::now() - std::chrono::seconds(100));
  EXPECT_NEAR(server_age_s(folder_ / "file", folder_ / "probe").value(), 100, 5);
  EXPECT_LT(server_age_s(folder_ / "gone", folder_ / "probe").value(), 0);
}

TEST_F(LeaseTest, NamesOfTasksAreChecked) {
  const RunFolder run = make(1, 1);
  for (const char* const name : {"", "a.b", "../x", "a b"}) {
    EXPECT_EQ(claim_shard(run, name).error().code, ErrorCode::kInvalidArgument) << name;
  }
}

TEST(NodeLocks, ASecondTaskOnTheSameCoreIsRefused) {
  const std::string name =
      concat("test-", std::chrono::steady_clock::now().time_since_epoch().count());
  {
    const auto first = NodeLocks::take({name}, "task a");
    ASSERT_TRUE(first) << first.error().message;
    const auto second = NodeLocks::take({name}, "task b");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(second.error().message, HasSubstr("in use by task a"));
  }
  EXPECT_TRUE(NodeLocks::take({name}, "task b"));
  std::filesystem::remove(concat("/dev/shm/foretune-", name, ".lock"));
}

TEST(NodeLocks, ListsOfCoresAreReadAndRefused) {
  EXPECT_THAT(parse_cores("0,2-4").value(), ElementsAre(0, 2, 3, 4));
  for (const char* const text : {"", "a", "3-1", "-1", "99999999", "1,,2"}) {
    EXPECT_FALSE(parse_cores(text)) << text;
  }
}

}  // namespace
}  // namespace foretune::cluster
