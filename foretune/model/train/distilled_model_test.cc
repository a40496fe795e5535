#include "foretune/model/train/distilled_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "foretune/model/distilled/testing/distilled_samples.h"
#include "foretune/model/train/internal/distilled_network.h"
#include "foretune/model/train/internal/distilled_teacher.h"

namespace foretune {
namespace {

std::vector<Problem> training_problems(Rng& rng) {
  std::vector<Problem> out;
  for (int i = 0; i < 80; ++i) {
    out.push_back(sample_gemm(rng));
  }
  return out;
}

DistillOptions small_options() {
  return {
      .portfolio = 16, .calibration_problems = 300, .problems = 2000, .hidden = 24, .epochs = 20};
}

TEST(SampleBetween, StaysInTheRangeOfEverySizeAndKeepsLabels) {
  Rng rng(5);
  const std::vector<Problem> problems = training_problems(rng);
  const std::vector<Problem> drawn = sample_between(problems, 500, rng);
  ASSERT_EQ(drawn.size(), 500);
  std::set<std::string> distinct;
  for (const Problem& problem : drawn) {
    distinct.insert(problem.text());
    for (const std::size_t field : {1, 2, 3}) {
      std::int64_t low = INT64_MAX;
      std::int64_t high = 0;
      for (const Problem& from : problems) {
        low = std::min(low, from.field(field));
        high = std::max(high, from.field(field));
      }
      EXPECT_GE(problem.field(field), low);
      EXPECT_LE(problem.field(field), high);
    }
    EXPECT_EQ(problem.field(5), problems[0].field(5));
  }
  EXPECT_GT(distinct.size(), 400);
  EXPECT_TRUE(sample_between({}, 5, rng).empty());
}

TEST(FastNetwork, LearnsWhichOfTwoIsBetter) {
  Rng rng(6);
  train_internal::NetworkExamples examples{.inputs = 2, .outputs = 2};
  for (int i = 0; i < 2000; ++i) {
    const double x = 2 * rng.uniform() - 1;
    const double y = 2 * rng.uniform() - 1;
    examples.input.insert(examples.input.end(), {static_cast<float>(x), static_cast<float>(y)});
    const bool first = x * y > 0;
    examples.regret.insert(examples.regret.end(), {first ? 0.0F : 0.3F, first ? 0.3F : 0.0F});
  }
  const auto layers = train_internal::train_network(examples, {.hidden = 16, .epochs = 30}, rng);
  int right = 0;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const auto values =
        train_internal::network_values(layers, std::span(examples.input).subspan(2 * i, 2));
    right += (values.back()[0] < values.back()[1]) == (examples.regret[2 * i] == 0) ? 1 : 0;
  }
  EXPECT_GT(right, 1900);
}

// Mean regret of always taking one candidate, where it is legal.
double mean_regret_of(const Model& model, std::uint32_t candidate,
                      std::span<const Problem> problems) {
  const auto teacher = train_internal::DistillationTeacher::create(model, 1);
  std::vector<std::uint32_t> all(model.pool.size());
  std::iota(all.begin(), all.end(), 0U);
  const std::vector<float> scores = *teacher->scores(problems, all);
  double sum = 0;
  int count = 0;
  for (std::size_t p = 0; p < problems.size(); ++p) {
    const auto row = std::span(scores).subspan(p * all.size(), all.size());
    float best = INFINITY;
    for (const float score : row) {
      best = std::isnan(score) ? best : std::min(best, score);
    }
    if (!std::isnan(row[candidate])) {
      sum += static_cast<double>(row[candidate] - best);
      ++count;
    }
  }
  return sum / count;
}

TEST(DistilFastModel, LosesFarLessThanTheBestSingleConfig) {
  Rng rng(7);
  Model model = sample_model({.candidates = 120}, rng);
  edit_forests(model, [](std::vector<Forest>& forests) {
    for (double& value : forests[0].leaf_value) {
      value *= 0.02;  // the size of real differences
    }
  });
  const std::vector<Problem> problems = training_problems(rng);
  const auto training = distill_model(model, problems, small_options());
  ASSERT_TRUE(training.has_value()) << training.error().message;
  const DistilledModel& fast = training->model;
  ASSERT_TRUE(fast.validate(7, model.pool.size()));
  EXPECT_LE(fast.portfolio.size(), 16);
  EXPECT_GE(fast.p90_regret, 0);
  const double single =
      mean_regret_of(model, fast.portfolio[0], sample_between(problems, 300, rng));
  EXPECT_LT(fast.mean_regret, 0.5 * single);
  const auto again = distill_model(model, problems, small_options());
  EXPECT_EQ(again->model, fast) << "same seed, same model";
}

TEST(DistilFastModel, SaysWhatItCannotLearnFrom) {
  Rng rng(8);
  const Model model = sample_model({.candidates = 50}, rng);
  EXPECT_EQ(distill_model(model, {}, small_options()).error().code, ErrorCode::kInvalidArgument);
  DistillOptions options = small_options();
  options.portfolio = 65;
  const std::vector<Problem> problems = training_problems(rng);
  EXPECT_FALSE(distill_model(model, problems, options).has_value());
  options = small_options();
  options.hidden = 0;
  EXPECT_FALSE(distill_model(model, problems, options).has_value());
  const std::vector<Problem> same(3, problems[0]);
  EXPECT_NE(distill_model(model, same, small_options()).error().message.find("the same"),
            std::string::npos);
}

}  // namespace
}  // namespace foretune
