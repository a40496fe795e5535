#include "foretune/model/train/regression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "foretune/base/rng.h"

namespace foretune {
namespace {

struct Data {
  std::vector<double> rows;
  std::vector<double> targets;
};

Data sample(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  Data data;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = rng.uniform();
    const double b = rng.uniform();
    data.rows.insert(data.rows.end(), {a, b, rng.uniform()});
    data.targets.push_back(5 + (a > 0.5 ? 2 * b : -1));
  }
  return data;
}

double mean_error(const Regression& trees, const Data& data) {
  double sum = 0;
  for (std::size_t i = 0; i < data.targets.size(); ++i) {
    sum += std::abs(trees.predict(std::span(data.rows).subspan(3 * i, 3)) - data.targets[i]);
  }
  return sum / static_cast<double>(data.targets.size());
}

TEST(Regression, LearnsWhatRowsSay) {
  const Data data = sample(500, 1);
  const auto trees = fit_regression(data.rows, 3, data.targets, {}, {});
  ASSERT_TRUE(trees) << trees.error().message;
  EXPECT_LT(mean_error(*trees, sample(500, 2)), 0.1);
  const auto again = fit_regression(data.rows, 3, data.targets, {}, {});
  EXPECT_EQ(again->forest, trees->forest);
}

TEST(Regression, AddsToAStart) {
  const Data data = sample(500, 1);
  const auto first = fit_regression(data.rows, 3, data.targets, {}, {.trees = 5});
  std::vector<double> start;
  for (std::size_t i = 0; i < data.targets.size(); ++i) {
    start.push_back(first->predict(std::span(data.rows).subspan(3 * i, 3)));
  }
  const auto second = fit_regression(data.rows, 3, data.targets, start, {});
  ASSERT_TRUE(second);
  double sum = 0;
  for (std::size_t i = 0; i < data.targets.size(); ++i) {
    sum += std::abs(start[i] + second->predict(std::span(data.rows).subspan(3 * i, 3)) -
                    data.targets[i]);
  }
  EXPECT_LT(sum / 500, 0.05);
}

TEST(Regression, FewAndEqualRowsAreTheirMean) {
  const auto one = fit_regression(std::vector{1.0, 2.0}, 2, std::vector{7.0}, {}, {});
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->predict(std::vector{3.0, 4.0}), 7);
  const auto equal =
      fit_regression(std::vector<double>(40, 1.0), 2, std::vector<double>(20, 3.0), {}, {});
  ASSERT_TRUE(equal);
  EXPECT_DOUBLE_EQ(equal->predict(std::vector{1.0, 1.0}), 3);
}

TEST(Regression, SizesHaveToFit) {
  const std::vector<double> rows(6);
  EXPECT_FALSE(fit_regression(rows, 3, std::vector<double>(3), {}, {}));
  EXPECT_FALSE(fit_regression({}, 3, {}, {}, {}));
  EXPECT_FALSE(fit_regression(rows, 3, std::vector<double>(2), std::vector<double>(1), {}));
}

}  // namespace
}  // namespace foretune
