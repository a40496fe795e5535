#include "foretune/problem/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "foretune/base/statistics.h"
#include "foretune/base/text.h"
#include "foretune/problem/conv/conv.h"
#include "foretune/problem/gemm/gemm.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

const ProblemTypeInfo& gemm() { return *find_problem_type("gemm"); }

GemmProblem view(const Problem& problem) { return GemmProblem::from(problem).value(); }

std::vector<double> logs_of(const std::vector<Problem>& problems,
                            std::int64_t (GemmProblem::*size)() const) {
  std::vector<double> out;
  for (const Problem& problem : problems) {
    out.push_back(std::log(static_cast<double>((view(problem).*size)())));
  }
  return out;
}

double deviation(const std::vector<double>& values) {
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) {
    squares += (value - center) * (value - center);
  }
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// Returns by value: a loop over a member of a temporary would outlive it.
std::vector<Problem> uniform(std::size_t count, const UniformSizes& sizes,
                             const ProblemSampling& sampling, Rng& rng) {
  Result<SampledProblems> sampled = sample_uniform(gemm(), count, sizes, sampling, rng);
  EXPECT_TRUE(sampled);
  return sampled ? std::move(sampled->problems) : std::vector<Problem>();
}

void expect_distinct(const std::vector<Problem>& problems) {
  EXPECT_EQ(std::set<Problem>(problems.begin(), problems.end()).size(), problems.size());
}

TEST(LogNormal, SizesAreMultiplesOfEightAndDistinct) {
  Rng rng(1);
  const SampledProblems sampled = sample_log_normal(gemm(), 3000, {}, {}, rng).value();
  ASSERT_EQ(sampled.problems.size(), 3000U);
  expect_distinct(sampled.problems);
  for (const Problem& problem : sampled.problems) {
    for (const std::int64_t size : {view(problem).m(), view(problem).n(), view(problem).k()}) {
      ASSERT_GE(size, 8);
      ASSERT_EQ(size % 8, 0);
    }
  }
  EXPECT_EQ(sampled.skipped_by_limit, 0);
}

TEST(LogNormal, LogsHaveTheGivenMomentsWhereRoundingIsSmall) {
  constexpr std::uint64_t kSeed = 2;
  SCOPED_TRACE(concat("seed ", kSeed));
  Rng rng(kSeed);
  const LogNormalSizes sizes{{"m", {9, 0.7}}, {"n", {8, 0.3}}, {"k", {10, 1.1}}};
  constexpr double kCount = 20000;
  const std::vector<Problem> problems =
      sample_log_normal(gemm(), static_cast<std::size_t>(kCount), sizes, {}, rng).value().problems;
  const auto check = [&](std::int64_t (GemmProblem::*size)() const, double center, double spread) {
    const std::vector<double> logs = logs_of(problems, size);
    EXPECT_NEAR(mean(logs), center, 5 * spread / std::sqrt(kCount));
    EXPECT_NEAR(deviation(logs), spread, 5 * spread / std::sqrt(2 * kCount));
    // Quartiles of a normal distribution: half of the values within 0.6745 deviations.
    EXPECT_NEAR(quantile(logs, 0.75) - quantile(logs, 0.25), 2 * 0.6745 * spread, 0.05 * spread);
  };
  check(&GemmProblem::m, 9, 0.7);
  check(&GemmProblem::n, 8, 0.3);
  check(&GemmProblem::k, 10, 1.1);
  // Drawn independently.
  EXPECT_NEAR(spearman(logs_of(problems, &GemmProblem::m), logs_of(problems, &GemmProblem::k)), 0,
              0.04);
}

TEST(LogNormal, DefaultsGiveThePublishedMedians) {
  Rng rng(3);
  const std::vector<Problem> problems =
      sample_log_normal(gemm(), 8000, {}, {}, rng).value().problems;
  EXPECT_NEAR(median(logs_of(problems, &GemmProblem::m)), 6.57, 0.1);
  EXPECT_NEAR(median(logs_of(problems, &GemmProblem::n)), 5.91, 0.1);
  EXPECT_NEAR(median(logs_of(problems, &GemmProblem::k)), 6.20, 0.1);
}

TEST(LogNormal, HugeDrawsStayWithinTheRangeOfSizes) {
  Rng rng(4);
  const LogNormalSizes sizes{{"m", {40, 1}}, {"n", {-40, 1}}};
  const std::vector<Problem> problems =
      sample_log_normal(gemm(), 20, sizes, {}, rng).value().problems;
  for (const Problem& problem : problems) {
    EXPECT_EQ(view(problem).m(), 2147483640);
    EXPECT_EQ(view(problem).n(), 8);
  }
}

TEST(LogNormal, RefusesParametersWithoutSense) {
  Rng rng(5);
  for (const double bad :
       {-0.1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(sample_log_normal(gemm(), 1, {{"k", {6, bad}}}, {}, rng)) << bad;
  }
  EXPECT_FALSE(sample_log_normal(gemm(), 1, {{"n", {std::numeric_limits<double>::quiet_NaN(), 1}}},
                                 {}, rng));
  EXPECT_FALSE(sample_log_normal(gemm(), 1, {{"batch", {1, 1}}}, {}, rng));
  const auto message = [&](const ProblemSampling& sampling) {
    return sample_log_normal(gemm(), 1, {}, sampling, rng).error().message;
  };
  EXPECT_THAT(message({.labels = {{"op", {}}}}), HasSubstr("at least one op"));
  EXPECT_THAT(message({.labels = {{"op", {"conv"}}}}), HasSubstr("mm, addmm, bmm"));
  EXPECT_THAT(message({.labels = {{"stride", {"1"}}}}), HasSubstr("no field 'stride'"));
}

TEST(Sampling, SameSeedSameList) {
  const auto draw = [](std::uint64_t seed) {
    Rng rng(seed);
    const ProblemSampling sampling{
        .labels = {{"op", {"mm", "bmm"}}, {"dtype", {"f32", "bf16"}}, {"layout", {"rrr", "rcr"}}},
        .limits = {.max_flops = 1e11, .max_bytes = {}}};
    return sample_log_normal(gemm(), 200, {}, sampling, rng).value().problems;
  };
  EXPECT_EQ(draw(42), draw(42));
  EXPECT_NE(draw(42), draw(43));
  // A longer list begins with the shorter one.
  Rng a(42);
  Rng b(42);
  const std::vector<Problem> few = sample_log_normal(gemm(), 10, {}, {}, a).value().problems;
  const std::vector<Problem> many = sample_log_normal(gemm(), 50, {}, {}, b).value().problems;
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

// Data sets are named by their seed: the same seed must give the same problems in every version.
TEST(Sampling, FirstProblemsAreGolden) {
  Rng rng(42);
  const std::vector<Problem> drawn = sample_log_normal(gemm(), 3, {}, {}, rng).value().problems;
  EXPECT_EQ(drawn[0].text(), "gemm op=mm m=112 n=536 k=1352 batch=1 dtype=f32 layout=rrr");
  EXPECT_EQ(drawn[1].text(), "gemm op=mm m=9880 n=688 k=1048 batch=1 dtype=f32 layout=rrr");
  EXPECT_EQ(drawn[2].text(), "gemm op=mm m=32 n=16 k=184 batch=1 dtype=f32 layout=rrr");
  Rng again(42);
  EXPECT_EQ(uniform(1, {}, {}, again)[0].text(),
            "gemm op=mm m=372 n=1572 k=2796 batch=1 dtype=f32 layout=rrr");
}

TEST(Sampling, LimitsHoldAndSkipsAreCounted) {
  Rng rng(6);
  ProblemSampling sampling;
  sampling.limits.max_flops = 1e9;
  sampling.limits.max_bytes = 1e7;
  const SampledProblems sampled = sample_log_normal(gemm(), 500, {}, sampling, rng).value();
  EXPECT_EQ(sampled.problems.size(), 500U);
  EXPECT_GT(sampled.skipped_by_limit, 50);
  for (const Problem& problem : sampled.problems) {
    EXPECT_LE(view(problem).flops(), 1e9);
    EXPECT_LE(view(problem).bytes(), 1e7);
  }
}

TEST(Sampling, ImpossibleLimitsAreAnErrorNotAnEndlessLoop) {
  Rng rng(7);
  ProblemSampling sampling;
  sampling.limits.max_flops = 10;
  const auto result = sample_log_normal(gemm(), 5, {}, sampling, rng);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message, HasSubstr("0 of 5"));
  // There are fewer distinct problems than requested.
  const auto few = sample_uniform(gemm(), 100, {.min_size = 1, .max_size = 4}, {}, rng);
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().message, HasSubstr("64 of 100"));
}

TEST(Sampling, EveryChoiceOfOperationTypeAndLayoutIsDrawnEquallyOften) {
  Rng rng(8);
  const ProblemSampling sampling{.labels = {{"op", {"mm", "addmm", "bmm"}},
                                            {"dtype", {"f32", "bf16"}},
                                            {"layout", {"rrr", "rcr"}}}};
  std::vector<int> operations(3);
  int bf16 = 0;
  int rcr = 0;
  std::vector<double> batch_logs;
  for (const Problem& problem : uniform(6000, {}, sampling, rng)) {
    const GemmProblem gemm = view(problem);
    ++operations[static_cast<std::size_t>(gemm.operation())];
    bf16 += gemm.dtype() == DataType::kBf16 ? 1 : 0;
    rcr += gemm.layout() == GemmLayout::kRcr ? 1 : 0;
    if (gemm.operation() == GemmOperation::kBmm) {
      ASSERT_GE(gemm.batch(), 2);
      ASSERT_LE(gemm.batch(), 64);
      batch_logs.push_back(std::log2(static_cast<double>(gemm.batch())));
    } else {
      ASSERT_EQ(gemm.batch(), 1);
    }
  }
  for (const int count : operations) {
    EXPECT_NEAR(count, 2000, 200);
  }
  EXPECT_NEAR(bf16, 3000, 250);
  EXPECT_NEAR(rcr, 3000, 250);
  EXPECT_NEAR(mean(batch_logs), 3.5, 0.15);
}

TEST(Uniform, DrawsTheWholeRangeEvenly) {
  Rng rng(9);
  const UniformSizes sizes{.min_size = 5, .max_size = 9};
  std::vector<int> counts(10);
  for (const Problem& problem : uniform(100, sizes, {}, rng)) {
    for (const std::int64_t size : {view(problem).m(), view(problem).n(), view(problem).k()}) {
      ASSERT_GE(size, 5);
      ASSERT_LE(size, 9);
      ++counts[static_cast<std::size_t>(size)];
    }
  }
  for (std::size_t size = 5; size <= 9; ++size) {
    EXPECT_NEAR(counts[size], 60, 25);
  }
}

TEST(Uniform, PowersOfTwoSquaresAndMultiplesOfEight) {
  Rng rng(10);
  std::set<std::int64_t> seen;
  for (const Problem& problem :
       uniform(200, {.min_size = 33, .max_size = 4097, .power_of_two = true}, {}, rng)) {
    EXPECT_TRUE(std::has_single_bit(static_cast<std::uint64_t>(view(problem).n())));
    seen.insert(view(problem).n());
  }
  EXPECT_EQ(*seen.begin(), 64);
  EXPECT_EQ(*seen.rbegin(), 4096);
  EXPECT_EQ(seen.size(), 7U);
  for (const Problem& problem : uniform(50, {.rectangular = false}, {}, rng)) {
    EXPECT_EQ(view(problem).m(), view(problem).n());
    EXPECT_EQ(view(problem).m(), view(problem).k());
  }
  for (const Problem& problem :
       uniform(50, {.min_size = 1, .max_size = 100, .odd_sizes = false}, {}, rng)) {
    EXPECT_EQ(view(problem).m() % 8, 0);
    EXPECT_GE(view(problem).m(), 8);
    EXPECT_LE(view(problem).m(), 96);
  }
  const UniformSizes both{.min_size = 1, .max_size = 64, .power_of_two = true, .odd_sizes = false};
  for (const Problem& problem : uniform(30, both, {}, rng)) {
    EXPECT_GE(view(problem).k(), 8);
  }
  const UniformSizes one{.min_size = 1, .max_size = 1, .power_of_two = true};
  EXPECT_EQ(view(uniform(1, one, {}, rng)[0]).k(), 1);
}

// Each doubling of a size is drawn as often as the next, and nothing outside of the bounds.
TEST(Uniform, SizesThatOnlyHaveBoundsAreUniformInTheirLogarithm) {
  static const std::vector<ProblemField> fields = {size_field("length")};
  static const std::vector<DrawnSize> drawn = {{.field = 0,
                                                .log_mean = 5,
                                                .log_deviation = 3,
                                                .uniform_low = 4,
                                                .uniform_high = 4095,
                                                .is_log_uniform = true}};
  ProblemTypeInfo type;
  type.schema = {.type = added_problem_type("sampler_bounds"),
                 .name = "sampler_bounds",
                 .version = 1,
                 .fields = fields};
  type.drawn_sizes = drawn;
  ASSERT_TRUE(register_problem_type(type));
  Rng rng(11);
  std::map<std::size_t, int> doublings;
  const auto uniform = sample_uniform(type, 1000, {.min_size = 9, .max_size = 9}, {}, rng);
  ASSERT_TRUE(uniform) << uniform.error().message;
  // Repeats are left out, so the many large sizes come more often.
  for (const Problem& problem : uniform->problems) {
    EXPECT_GE(problem.field(0), 4);
    EXPECT_LE(problem.field(0), 4095);
    ++doublings[static_cast<std::size_t>(
        std::bit_width(static_cast<std::uint64_t>(problem.field(0))))];
  }
  EXPECT_EQ(doublings[3], 4);   // 4 to 7
  EXPECT_EQ(doublings[5], 16);  // 16 to 31
  EXPECT_NEAR(doublings[11], doublings[12], 150);
  EXPECT_GT(doublings[10], 150);
  const auto normal = sample_log_normal(type, 200, {}, {}, rng);
  ASSERT_TRUE(normal) << normal.error().message;
  for (const Problem& problem : normal->problems) {
    EXPECT_GE(problem.field(0), 4);
    EXPECT_LE(problem.field(0), 4095);
  }
}

TEST(Uniform, RefusesEmptyRanges) {
  Rng rng(11);
  EXPECT_FALSE(sample_uniform(gemm(), 1, {.min_size = 0, .max_size = 4}, {}, rng));
  EXPECT_FALSE(sample_uniform(gemm(), 1, {.min_size = 5, .max_size = 4}, {}, rng));
  EXPECT_FALSE(sample_uniform(gemm(), 1, {.max_size = std::int64_t{1} << 31}, {}, rng));
  EXPECT_FALSE(
      sample_uniform(gemm(), 1, {.min_size = 33, .max_size = 63, .power_of_two = true}, {}, rng));
  EXPECT_FALSE(
      sample_uniform(gemm(), 1, {.min_size = 9, .max_size = 15, .odd_sizes = false}, {}, rng));
  EXPECT_FALSE(sample_uniform(
      gemm(), 1, {.min_size = 1, .max_size = 7, .power_of_two = true, .odd_sizes = false}, {},
      rng));
}

std::vector<Problem> shapes() {
  std::vector<Problem> out;
  for (std::int64_t m = 1; m <= 40; ++m) {
    out.push_back(
        GemmProblem::create({.m = m,
                             .n = 64,
                             .k = 64,
                             .operation = m % 2 == 0 ? GemmOperation::kMm : GemmOperation::kAddmm})
            .value()
            .to_problem());
  }
  return out;
}

TEST(ShapeSet, KeepsOrderOperationsLimitsAndDropsRepeats) {
  Rng rng(12);
  ProblemSampling sampling{.labels = {{"op", {"mm"}}}};
  sampling.limits.max_flops = 2.0 * 30 * 64 * 64;
  std::vector<Problem> twice = shapes();
  const std::vector<Problem> once = shapes();
  twice.insert(twice.end(), once.begin(), once.end());
  const SampledProblems kept = sample_shape_set(twice, 0, sampling, rng).value();
  ASSERT_EQ(kept.problems.size(), 15U);
  EXPECT_TRUE(std::is_sorted(kept.problems.begin(), kept.problems.end()));
  for (const Problem& problem : kept.problems) {
    EXPECT_EQ(view(problem).m() % 2, 0);
  }
  EXPECT_EQ(kept.skipped_by_limit, 10);
  EXPECT_EQ(kept.skipped_as_repeat, 15);
}

TEST(ShapeSet, ChoosesAtRandomButKeepsTheOrder) {
  std::set<Problem> chosen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const ProblemSampling sampling{.labels = {{"op", {"mm"}}}};
    const std::vector<Problem> kept = sample_shape_set(shapes(), 5, sampling, rng)->problems;
    ASSERT_EQ(kept.size(), 5U);
    EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
    expect_distinct(kept);
    chosen.insert(kept.begin(), kept.end());
    Rng again(seed);
    EXPECT_EQ(sample_shape_set(shapes(), 5, sampling, again)->problems, kept);
  }
  EXPECT_EQ(chosen.size(), 20U) << "every shape has a chance";
  Rng rng(1);
  EXPECT_EQ(sample_shape_set(shapes(), 1000, {}, rng)->problems.size(), 40U);
  EXPECT_TRUE(sample_shape_set({}, 5, {}, rng)->problems.empty());
  EXPECT_FALSE(sample_shape_set(shapes(), 5, {.labels = {{"op", {"forward"}}}}, rng));
}

TEST(Sampling, ConvolutionsAreLegalAndOfEveryKind) {
  const ProblemTypeInfo& conv = *find_problem_type("conv");
  Rng rng(13);
  const ProblemSampling sampling{
      .labels = {{"op", {"forward", "backward_data", "backward_weight"}}},
      .limits = {.max_flops = 1e11, .max_bytes = {}}};
  const SampledProblems drawn = sample_log_normal(conv, 1000, {}, sampling, rng).value();
  expect_distinct(drawn.problems);
  std::map<std::string, int> counts;
  for (const Problem& problem : drawn.problems) {
    const ConvSizes sizes = ConvProblem::from(problem)->sizes();
    EXPECT_EQ(sizes.wi, sizes.hi);
    ++counts[sizes.g == 1 ? "dense" : sizes.g == sizes.c ? "depthwise" : "in groups"];
    ++counts[concat("filter ", sizes.y)];
    ++counts[concat("stride ", sizes.stride_h)];
    ++counts[std::string(to_string(sizes.operation))];
  }
  for (const char* kind :
       {"dense", "depthwise", "in groups", "filter 1", "filter 3", "filter 5", "filter 7",
        "stride 1", "stride 2", "forward", "backward_data", "backward_weight"}) {
    EXPECT_GE(counts[kind], 20) << kind;
  }
  const SampledProblems uniform_drawn =
      sample_uniform(conv, 100, {.min_size = 16, .max_size = 64}, sampling, rng).value();
  for (const Problem& problem : uniform_drawn.problems) {
    EXPECT_GE(ConvProblem::from(problem)->sizes().hi, 4);
    EXPECT_LE(ConvProblem::from(problem)->sizes().hi, 224);
    EXPECT_LE(ConvProblem::from(problem)->sizes().c, 64);
  }
}

}  // namespace
}  // namespace foretune
