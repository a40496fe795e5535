#include "tools/train_network/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace foretune::network_training {
namespace {

constexpr std::size_t kGroupSize = 16;

// Problems of several sizes; within each the later rows are faster.
struct Sample {
  TrainingRows data;
  ProblemRows problems;
};

Sample sample_problems() {
  Sample sample;
  for (const std::size_t size : {std::size_t{1}, std::size_t{5}, kGroupSize, std::size_t{100}}) {
    sample.problems.emplace_back();
    for (std::size_t i = 0; i < size; ++i) {
      sample.problems.back().push_back(static_cast<std::int64_t>(sample.data.problem.size()));
      sample.data.problem.push_back(static_cast<std::uint32_t>(sample.problems.size() - 1));
      sample.data.relative.push_back(static_cast<float>(size - i));
      sample.data.censored.push_back(0);
    }
  }
  return sample;
}

TEST(SamplerTest, PlainBatchesVisitEveryRowOnceAndAreAlikeInSize) {
  std::vector<std::int64_t> rows(1000);
  std::iota(rows.begin(), rows.end(), 7);
  Rng rng(61);
  const EpochPlan plan = plan_rows(rows, 64, rng);
  ASSERT_EQ(plan.batches.size(), 16U);
  std::size_t begin = 0;
  for (const EpochPlan::Batch& batch : plan.batches) {
    EXPECT_EQ(batch.begin_row, begin);
    EXPECT_GE(batch.end_row - batch.begin_row, 62U);
    EXPECT_LE(batch.end_row - batch.begin_row, 63U);
    begin = batch.end_row;
  }
  EXPECT_EQ(begin, rows.size());
  std::vector<std::int64_t> visited = plan.rows;
  EXPECT_NE(visited, rows);
  std::sort(visited.begin(), visited.end());
  EXPECT_EQ(visited, rows);
}

TEST(SamplerTest, GroupsHoldRowsOfOneProblemAndAllRowsAreVisited) {
  const Sample sample = sample_problems();
  Rng rng(62);
  const EpochPlan plan = plan_groups(sample.data, sample.problems, 32, kGroupSize, rng);
  EXPECT_EQ(plan.places, kGroupSize);
  std::set<std::int64_t> visited;
  std::size_t end_row = 0;
  std::size_t end_group = 0;
  for (const EpochPlan::Batch& batch : plan.batches) {
    EXPECT_EQ(batch.begin_row, end_row);
    EXPECT_EQ(batch.begin_group, end_group);
    end_row = batch.end_row;
    end_group = batch.end_group;
    std::size_t rows_of_groups = 0;
    for (std::size_t group = batch.begin_group; group < batch.end_group; ++group) {
      std::set<std::uint32_t> problems;
      std::set<std::int64_t> members;
      for (std::size_t i = group * plan.places; i < (group + 1) * plan.places; ++i) {
        if (plan.present[i] != 0) {
          const auto position = static_cast<std::size_t>(plan.position[i]) + batch.begin_row;
          members.insert(plan.rows[position]);
          problems.insert(sample.data.problem[static_cast<std::size_t>(plan.rows[position])]);
          ++rows_of_groups;
          EXPECT_TRUE(members.contains(plan.rows[position]));
        }
      }
      EXPECT_EQ(problems.size(), 1U);
      EXPECT_LE(members.size(), kGroupSize);
      visited.insert(members.begin(), members.end());
    }
    EXPECT_EQ(rows_of_groups, batch.end_row - batch.begin_row);
    EXPECT_GE(rows_of_groups, 16U);
  }
  EXPECT_EQ(end_row, plan.rows.size());
  EXPECT_EQ(visited.size(), sample.data.problem.size());
}

TEST(SamplerTest, FastRowsOfLargeProblemsAreVisitedMoreOften) {
  const Sample sample = sample_problems();
  Rng rng(63);
  std::map<std::int64_t, int> visits;
  for (int epoch = 0; epoch < 50; ++epoch) {
    for (const std::int64_t row :
         plan_groups(sample.data, sample.problems, 32, kGroupSize, rng).rows) {
      ++visits[row];
    }
  }
  const std::vector<std::int64_t>& large = sample.problems.back();
  for (std::size_t i = 0; i < large.size(); ++i) {
    const bool is_fast = i + kGroupSize >= large.size();
    if (is_fast) {
      EXPECT_GT(visits[large[i]], 100) << i;
    } else {
      EXPECT_EQ(visits[large[i]], 50) << i;
    }
  }
  EXPECT_EQ(visits[sample.problems[1][0]], 50);
}

}  // namespace
}  // namespace foretune::network_training
