#include "foretune/dataset/dataset.h"

#include <gtest/gtest.h>

#include <set>

#include "foretune/dataset/split.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/problem/network_layers.h"

namespace foretune {
namespace {

Problem gemm(std::int64_t m, std::int64_t n, GemmOperation operation = GemmOperation::kMm) {
  return GemmProblem::create({.m = m, .n = n, .k = 8, .operation = operation})->to_problem();
}

DatasetHeader header() {
  DatasetHeader out;
  out.problem_type = kGemmProblem;
  out.family = "test";
  out.config_schema = {.name = "test", .version = 1, .parameters = {{"tile", {}}}};
  return out;
}

Measurement timed(const Problem& problem, std::int32_t tile, double time_ns,
                  Outcome outcome = Outcome::kOk) {
  return {.problem = problem,
          .config = {.schema = header().config_schema.id(), .words = {tile}},
          .context = {.machine = 1, .device = "cpu"},
          .outcome = outcome,
          .reason = outcome == Outcome::kCrashed ? "signal 11" : "",
          .metrics = outcome == Outcome::kCrashed
                         ? std::vector<MetricValue>{}
                         : std::vector<MetricValue>{{kTimeNs, time_ns, 0.01, 5}},
          .samples_ns = {}};
}

TEST(Dataset, DeduplicateTakesTheMedianAndPrefersOkOverCensoredOverFailed) {
  Dataset dataset(header());
  for (const double time_ns : {100.0, 300.0, 120.0}) {
    dataset.add(timed(gemm(1, 1), 4, time_ns));
  }
  dataset.add(timed(gemm(1, 1), 8, 70, Outcome::kCensored));
  dataset.add(timed(gemm(1, 1), 8, 50));
  dataset.add(timed(gemm(1, 1), 16, 0, Outcome::kCrashed));
  dataset.add(timed(gemm(1, 1), 16, 40, Outcome::kCensored));
  dataset.add(timed(gemm(1, 1), 16, 60, Outcome::kCensored));
  EXPECT_EQ(dataset.deduplicate(), 5U);
  ASSERT_EQ(dataset.size(), 3U);
  EXPECT_EQ(dataset.rows()[0].time_ns, 120.0F);
  EXPECT_EQ(dataset.rows()[1].outcome, Outcome::kOk);
  EXPECT_EQ(dataset.rows()[1].time_ns, 50.0F);
  EXPECT_EQ(dataset.rows()[2].outcome, Outcome::kCensored);
  EXPECT_EQ(dataset.rows()[2].time_ns, 60.0F);
}

TEST(Dataset, DeduplicateLeavesComparisonsAsTheyAre) {
  Dataset dataset(header());
  for (const double speed : {1.0, 0.5, 0.5}) {
    for (const std::int32_t tile : {4, 8}) {
      Measurement row = timed(gemm(1, 1), tile, 100 * tile / speed);
      row.flags = kFlagReference;
      dataset.add(row);
    }
  }
  dataset.add(timed(gemm(1, 1), 4, 390));
  dataset.add(timed(gemm(1, 1), 4, 410));
  EXPECT_EQ(dataset.deduplicate(), 3U);  // the copy of the second comparison and an ordinary row
  ASSERT_EQ(dataset.size(), 5U);
  const std::vector<float> expected{400, 800, 800, 1600, 400};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(dataset.rows()[i].time_ns, expected[i]) << i;
  }
}

TEST(Dataset, FingerprintIgnoresOrderAndNothingElse) {
  Dataset forwards(header());
  Dataset backwards(header());
  for (int i = 0; i < 10; ++i) {
    forwards.add(timed(gemm(1 + i, 2), 4, 100 + i));
    backwards.add(timed(gemm(10 - i, 2), 4, 109 - i));
  }
  EXPECT_EQ(forwards.fingerprint(), backwards.fingerprint());
  forwards.add(timed(gemm(50, 2), 4, 100));
  backwards.add(timed(gemm(50, 2), 4, 101));
  EXPECT_NE(forwards.fingerprint(), backwards.fingerprint());
}

TEST(Dataset, MergeRenumbersAndFilterKeepsWholeProblems) {
  Dataset a(header());
  Dataset b(header());
  a.add(timed(gemm(1, 1), 4, 10));
  b.add(timed(gemm(2, 2), 8, 20));
  b.add(timed(gemm(1, 1), 8, 30));
  b.add_baseline({.problem = 0, .name = "vendor", .time_ns = 15});
  ASSERT_TRUE(a.merge(b));
  EXPECT_EQ(a.size(), 3U);
  EXPECT_EQ(a.problems().size(), 2U);
  ASSERT_EQ(a.baselines().size(), 1U);
  EXPECT_EQ(a.problems()[a.baselines()[0].problem], gemm(2, 2));
  const Dataset only_first = a.filter_problems({true, false});
  EXPECT_EQ(only_first.size(), 2U);
  EXPECT_TRUE(only_first.baselines().empty());
}

TEST(Dataset, MergeRefusesOtherSchemasUnlessOneHoldsNothing) {
  Dataset a(header());
  a.add(timed(gemm(1, 1), 4, 10));
  DatasetHeader convolutions = header();
  convolutions.problem_type = kConvProblem;
  DatasetHeader second = header();
  second.config_schema.version = 2;
  for (const DatasetHeader& other : {second, convolutions}) {
    Dataset named_only(other);
    named_only.intern_problem(gemm(3, 3));
    ASSERT_TRUE(a.merge(named_only));
    EXPECT_EQ(a.size(), 1U);
    EXPECT_EQ(a.problems().size(), 1U);
    EXPECT_EQ(a.header(), header());
    ASSERT_TRUE(named_only.merge(a));
    EXPECT_EQ(named_only.size(), 1U);
    EXPECT_EQ(named_only.header(), header());
    Dataset baseline(other);
    baseline.add_baseline(
        {.problem = baseline.intern_problem(gemm(1, 1)), .name = "vendor", .time_ns = 15});
    EXPECT_EQ(a.merge(baseline).error().code, ErrorCode::kMismatch);
    EXPECT_EQ(baseline.merge(a).error().code, ErrorCode::kMismatch);
  }
}

TEST(Split, GroupsStayTogetherAndFoldsAreEven) {
  std::vector<Problem> problems;
  for (int i = 0; i < 60; ++i) {
    problems.push_back(gemm(1 + i / 2, 4, i % 2 == 0 ? GemmOperation::kMm : GemmOperation::kAddmm));
  }
  Rng rng(4);
  const std::vector<std::uint32_t> folds = group_folds(problems, 5, rng);
  std::vector<int> count(5, 0);
  for (std::size_t i = 0; i < problems.size(); i += 2) {
    EXPECT_EQ(folds[i], folds[i + 1]);
  }
  for (const std::uint32_t fold : folds) {
    ASSERT_LT(fold, 5U);
    ++count[fold];
  }
  for (const int problems_in_fold : count) {
    EXPECT_EQ(problems_in_fold, 12);
  }
  Rng again(4);
  EXPECT_EQ(folds, group_folds(problems, 5, again));
}

TEST(Split, TheKeyOfSizesLooksAtThemAlone) {
  const auto problem = [](const char* text) { return Problem::parse(text).value(); };
  const auto same = [&](const char* a, const char* b, GroupKey key) {
    return group_of(problem(a), key) == group_of(problem(b), key);
  };
  const char* const plain = "gemm m=8 n=16 k=32";
  const char* const batched = "gemm op=bmm m=8 n=16 k=32 batch=4 dtype=bf16 layout=rcr";
  EXPECT_TRUE(same(plain, batched, GroupKey::kSizes));
  EXPECT_FALSE(same(plain, batched, GroupKey::kProblem));
  EXPECT_FALSE(same(plain, "gemm m=16 n=8 k=32", GroupKey::kSizes));
  const char* const conv = "conv n=1 c=8 k=8 hi=9 wi=9 y=3 x=3";
  const char* const strided = "conv n=1 c=8 k=8 hi=9 wi=9 y=3 x=3 stride_h=2 pad_w=1";
  EXPECT_TRUE(same(conv, strided, GroupKey::kSizes));
  EXPECT_FALSE(same(conv, strided, GroupKey::kProblem));
  EXPECT_FALSE(same(conv, "conv n=1 c=8 k=8 hi=9 wi=9 y=3 x=3 dilation_h=2", GroupKey::kSizes));
  EXPECT_EQ(group_of(problem(plain), GroupKey::kProblem), problem(plain).group());
}

TEST(Split, TheKeyOfWeightsLooksPastBatchAndMap) {
  const auto key = [](const char* text) {
    return group_of(Problem::parse(text).value(), GroupKey::kWeights);
  };
  EXPECT_EQ(key("gemm m=8 n=16 k=32"), key("gemm m=512 n=16 k=32 dtype=bf16 op=addmm"));
  EXPECT_NE(key("gemm m=8 n=16 k=32"), key("gemm m=8 n=32 k=16"));
  const char* const conv = "conv n=1 c=8 k=8 hi=9 wi=9 y=3 x=3";
  EXPECT_EQ(key(conv), key("conv n=32 c=8 k=8 hi=56 wi=28 y=3 x=3 pad_h=1 op=backward_data"));
  for (const char* other :
       {"conv n=1 c=8 k=16 hi=9 wi=9 y=3 x=3", "conv n=1 c=8 k=8 hi=9 wi=9 y=3 x=1",
        "conv n=1 c=8 k=8 hi=9 wi=9 y=3 x=3 g=8", "conv n=1 c=8 k=8 hi=9 wi=9 y=3 x=3 stride_h=2",
        "conv n=1 c=8 k=8 hi=9 wi=9 y=3 x=3 dilation_w=2"}) {
    EXPECT_NE(key(conv), key(other)) << other;
  }
  EXPECT_EQ(parse_group_key("weights").value(), GroupKey::kWeights);
  EXPECT_EQ(to_string(GroupKey::kSizes), "sizes");
  EXPECT_FALSE(parse_group_key("colour"));
}

// A headline on networks of the validation list would mean little if training had their layers.
TEST(Split, NoLayerOfAValidationNetworkHasTheWeightsOfATrainingNetwork) {
  std::size_t checked = 0;
  for (const char* type : {"gemm", "conv"}) {
    for (const char* direction : {"", "-backward-data", "-backward-weight"}) {
      const auto set = [&](const char* role) {
        return named_shape_set(concat(type, "-networks-", role, direction));
      };
      const auto training = set("train");
      const auto validation = set("validation");
      if (!training || !validation) {
        EXPECT_NE(*direction, '\0') << type;
        continue;
      }
      std::set<std::uint64_t> known;
      for (const Problem& problem : *training) {
        known.insert(group_of(problem, GroupKey::kWeights));
      }
      for (const Problem& problem : *validation) {
        EXPECT_FALSE(known.contains(group_of(problem, GroupKey::kWeights))) << problem.text();
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 3000U);
}

}  // namespace
}  // namespace foretune
