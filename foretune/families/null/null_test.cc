#include "foretune/families/null/null.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/families/null/testing/null_samples.h"
#include "foretune/problem/gemm/gemm.h"
#include "foretune/space/testing/all_configs.h"

namespace foretune {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

std::unique_ptr<Family> made_null(Parameters parameters = {}) {
  return testing_support::null_with(std::move(parameters));
}

Problem gemm_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return GemmProblem::create({.m = m, .n = n, .k = k})->to_problem();
}

std::vector<Config> configs_of(const Family& family, const Problem& problem) {
  const auto space = family.space(problem);
  return all_configs(*(*space)->enumerable());
}

TEST(Null, HasSomeHundredConfigsAndAtLeastOneForTheSmallestProblem) {
  const auto family = made_null();
  EXPECT_GT(configs_of(*family, gemm_of(512, 512, 512)).size(), 300U);
  EXPECT_GE(configs_of(*family, gemm_of(1, 1, 1)).size(), 1U);
  EXPECT_FALSE(family->info().needs_worker);
  EXPECT_TRUE(family->info().simulated);
  EXPECT_TRUE(made_null({{"crash", "0.01"}})->info().needs_worker);
}

TEST(Null, TheOptimumMovesWithTheProblem) {
  const auto family = made_null();
  std::set<std::string> best;
  for (const std::int64_t size : {8, 64, 512, 4096}) {
    const Problem shape = gemm_of(size, size, size);
    const std::vector<Config> configs = configs_of(*family, shape);
    const auto fastest =
        std::min_element(configs.begin(), configs.end(), [&](const auto& a, const auto& b) {
          return null_time_ns(shape, a) < null_time_ns(shape, b);
        });
    best.insert(to_text(family->info().config_schema, *fastest));
    // Worth choosing: the median config is clearly slower.
    std::vector<double> times;
    for (const Config& config : configs) {
      times.push_back(null_time_ns(shape, config));
      EXPECT_GT(times.back(), 0);
    }
    std::sort(times.begin(), times.end());
    EXPECT_GT(times[times.size() / 2], 1.2 * times[0]);
  }
  EXPECT_EQ(best.size(), 4U);
}

TEST(Null, NoiseIsSmallPositiveAndRepeats) {
  const auto family = made_null({{"noise", "0.02"}});
  const Problem shape = gemm_of(512, 512, 512);
  const Config config = configs_of(*family, shape)[7];
  const auto times = [&] {
    auto artifact = *family->prepare(shape, config);
    auto data = *family->make_data(shape, 1);
    auto run = *artifact->bind(shape, *data);
    std::vector<double> values;
    values.reserve(50);
    for (int i = 0; i < 50; ++i) {
      values.push_back(run->simulated_ns());
    }
    return values;
  };
  const std::vector<double> first = times();
  EXPECT_EQ(first, times());
  for (const double time_ns : first) {
    EXPECT_GE(time_ns, null_time_ns(shape, config));
    EXPECT_LE(time_ns, 1.12 * null_time_ns(shape, config));
  }
  EXPECT_GT(std::set<double>(first.begin(), first.end()).size(), 40U);
}

TEST(Null, FaultsHaveTheirSharesAndDependOnTheSeedOnly) {
  NullParameters parameters{.crash = 0.1, .hang = 0.05, .wrong = 0.2, .prepare_fail = 0.15};
  const auto family = made_null();
  std::array<int, 5> counts{};
  int total = 0;
  int changed = 0;
  for (std::int64_t m = 100; m < 130; ++m) {
    for (const Config& config : configs_of(*family, gemm_of(m, 512, 512))) {
      parameters.seed = 1;
      const NullFault fault = null_fault(parameters, gemm_of(m, 512, 512), config);
      EXPECT_EQ(fault, null_fault(parameters, gemm_of(m, 512, 512), config));
      ++counts[static_cast<std::size_t>(fault)];
      ++total;
      parameters.seed = 2;
      changed += fault != null_fault(parameters, gemm_of(m, 512, 512), config) ? 1 : 0;
    }
  }
  const auto share = [&](NullFault fault) {
    return static_cast<double>(counts[static_cast<std::size_t>(fault)]) / total;
  };
  EXPECT_NEAR(share(NullFault::kCrash), 0.1, 0.01);
  EXPECT_NEAR(share(NullFault::kHang), 0.05, 0.01);
  EXPECT_NEAR(share(NullFault::kWrong), 0.2, 0.015);
  EXPECT_NEAR(share(NullFault::kPrepareFail), 0.15, 0.015);
  EXPECT_GT(changed, total / 3);
}

TEST(Null, WrongResultsAreReallyWrongAndPoisonIsNoResult) {
  const Problem shape = gemm_of(64, 64, 64);
  for (const char* share : {"0", "1"}) {
    const auto family = made_null({{"wrong", share}});
    const Config config = configs_of(*family, shape)[0];
    auto data = *family->make_data(shape, 7);
    auto artifact = *family->prepare(shape, config);
    auto run = *artifact->bind(shape, *data);
    data->poison();
    EXPECT_FALSE(data->verify());
    run->run();
    EXPECT_EQ(static_cast<bool>(data->verify()), share[0] == '0');
  }
}

TEST(Null, RealTimeTakesTheFormulasTimeOnTheClock) {
  const auto family = made_null({{"real_time", "1"}, {"noise", "0"}});
  EXPECT_FALSE(family->info().simulated);
  const Problem shape = gemm_of(512, 512, 512);
  const Config config = configs_of(*family, shape)[0];
  auto data = *family->make_data(shape, 1);
  auto artifact = *family->prepare(shape, config);
  auto run = *artifact->bind(shape, *data);
  EXPECT_LT(run->simulated_ns(), 0);
  const auto begin = std::chrono::steady_clock::now();
  run->run();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 0.999 * null_time_ns(shape, config));
}

TEST(Null, CrashesForReal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Problem shape = gemm_of(64, 64, 64);
  EXPECT_DEATH(
      {
        const auto family = made_null({{"crash", "1"}});
        const Config config = configs_of(*family, shape)[0];
        auto artifact = *family->prepare(shape, config);
        auto data = *family->make_data(shape, 1);
        (*artifact->bind(shape, *data))->run();
      },
      "");
}

TEST(Null, BadOptionsAreExplained) {
  const auto message = [](Parameters parameters) {
    FamilyOptions options;
    options.parameters = std::move(parameters);
    const auto family = make_null(options);
    return family ? std::string() : family.error().message;
  };
  EXPECT_THAT(message({{"crush", "1"}}), testing::HasSubstr("no option 'crush'"));
  EXPECT_THAT(message({{"crash", "1.5"}}), testing::HasSubstr("from 0 to 1, not '1.5'"));
  EXPECT_THAT(message({{"crash", "nan"}}), testing::HasSubstr("from 0 to 1"));
  EXPECT_THAT(message({{"hang", "-0.1"}}), testing::HasSubstr("from 0 to 1"));
  EXPECT_THAT(message({{"seed", "x"}}), testing::HasSubstr("seed"));
  EXPECT_THAT(message({{"real_time", "yes"}}), testing::HasSubstr("0 or 1"));
  EXPECT_THAT(message({{"crash", "0.6"}, {"hang", "0.6"}}), testing::HasSubstr("more than 1"));
}

}  // namespace
}  // namespace foretune
