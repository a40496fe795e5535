#include "foretune/autoschedule/nest_guide.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "foretune/base/statistics.h"
#include "foretune/environment/cursor_space.h"
#include "foretune/loop/computation_text.h"
#include "foretune/loop/nest_features.h"

namespace foretune::autoschedule {
namespace {

loop::VectorUnit unit() { return loop::VectorUnit::of(CpuIsa::kAvx2); }

double value_of(std::string_view name, const std::vector<double>& row) {
  const auto& names = loop::nest_feature_names();
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::numeric_limits<double>::quiet_NaN()
                              : row[static_cast<std::size_t>(found - names.begin())];
}

std::vector<double> features(std::string_view computation_text, std::string_view schedule) {
  const auto computation = loop::parse_computation(computation_text).value();
  const auto actions = loop::parse_schedule(computation, schedule).value();
  std::vector<double> row(loop::nest_feature_names().size());
  EXPECT_TRUE(loop::write_nest_features(computation, loop::apply_all(computation, actions).value(),
                                        unit(), row));
  return row;
}

TEST(NestFeatures, TellWhatTheRegisterBlockIs) {
  // Four rows of two vectors of eight, k outside, summed in registers.
  const std::vector<double> row = features(
      "mm m=64 n=64 k=32", "split m0 4, split n0 16, move n0 1, swap m1, block k0, vectorize n1");
  EXPECT_EQ(value_of("lanes", row), 3);
  EXPECT_EQ(value_of("vectors", row), 8);
  EXPECT_EQ(value_of("output_passes", row), 0);
  EXPECT_EQ(value_of("lane_waste", row), 0);
  EXPECT_EQ(value_of("output_extent", row), 12);
  EXPECT_EQ(value_of("reduced_extent", row), 5);
  EXPECT_EQ(value_of("block_rounds", row), 6);
  EXPECT_EQ(value_of("pack_bytes", row), 0);
  for (const double value : row) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(NestFeatures, WasteIsOfTheLastVector) {
  EXPECT_EQ(value_of("lane_waste", features("mm m=4 n=12 k=8", "vectorize n0")), 0.25);
}

TEST(NestFeatures, SayWhenThereIsNothingToCompile) {
  const auto computation = loop::parse_computation("mm m=64 n=64 k=64").value();
  const auto actions = loop::parse_schedule(computation, "block m0").value();
  std::vector<double> row(loop::nest_feature_names().size());
  EXPECT_FALSE(loop::write_nest_features(computation, loop::apply_all(computation, actions).value(),
                                         unit(), row));
}

// Some law that is not linear: blocks that fit the registers are fast.
double law(const ScheduleSpace& space, const Config& config) {
  std::vector<double> row(loop::nest_feature_names().size());
  const auto nest = space.nest(config);
  if (!nest || !loop::write_nest_features(space.computation(), *nest, unit(), row)) {
    return std::numeric_limits<double>::infinity();
  }
  return 1e-6 * (1 + std::abs(value_of("vectors", row) - 8)) *
         (1 + value_of("output_passes", row)) / (1 + value_of("lanes", row));
}

std::vector<Trial> sample(const ScheduleSpace& space, std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Trial> trials;
  while (trials.size() < count) {
    Config config = space.canonical(space.sample(rng).value());
    if (const double value = law(space, config); std::isfinite(value)) {
      trials.push_back({.config = std::move(config), .value = value});
    }
  }
  return trials;
}

double agreement(TreeGuide& guide, const std::vector<Trial>& trials) {
  std::vector<Config> configs;
  std::vector<double> values;
  for (const Trial& trial : trials) {
    configs.push_back(trial.config);
    values.push_back(*trial.value);
  }
  return spearman(guide.score(configs), values);
}

TEST(TreeGuide, LearnsALaw) {
  const auto space = environment::cursor_space(loop::parse_computation("mm m=96 n=64 k=48").value(),
                                               environment::ActionSet());
  TreeGuide guide(nest_rows(*space, unit()));
  const std::vector<Trial> seen = sample(*space, 300, 1);
  EXPECT_TRUE(guide.score(std::vector{seen[0].config}).empty());
  ASSERT_TRUE(guide.learn(std::span(seen).first(5)));
  EXPECT_TRUE(guide.score(std::vector{seen[0].config}).empty());  // too few
  ASSERT_TRUE(guide.learn(seen));
  EXPECT_GT(agreement(guide, sample(*space, 300, 2)), 0.8);
  TreeGuide twin(nest_rows(*space, unit()));
  ASSERT_TRUE(twin.learn(seen));
  EXPECT_EQ(twin.score(std::vector{seen[7].config}), guide.score(std::vector{seen[7].config}));
}

TEST(TreeGuide, BeginsWithWhatOthersTaught) {
  const auto other = environment::cursor_space(
      loop::parse_computation("mm m=80 n=128 k=64").value(), environment::ActionSet());
  const std::vector<GuideLesson> lessons{{.space = other.get(), .trials = sample(*other, 400, 3)}};
  const auto prior = learn_prior(lessons, unit(), {.trees = 100});
  ASSERT_TRUE(prior);
  const auto space = environment::cursor_space(loop::parse_computation("mm m=96 n=64 k=48").value(),
                                               environment::ActionSet());
  TreeGuide guide(nest_rows(*space, unit()), {}, regression_prior(&*prior));
  const std::vector<Trial> unseen = sample(*space, 300, 2);
  const double before = agreement(guide, unseen);
  EXPECT_GT(before, 0.7);
  ASSERT_TRUE(guide.learn(sample(*space, 60, 5)));
  EXPECT_GT(agreement(guide, unseen), before - 0.02);
  EXPECT_FALSE(learn_prior({}, unit(), {}));
}

TEST(TreeGuide, KnowsWhatCannotBeCompiled) {
  const auto space =
      ScheduleSpace::of_loops(loop::parse_computation("mm m=64 n=64 k=64").value(), unit());
  TreeGuide guide(nest_rows(*space, unit()));
  ASSERT_TRUE(guide.learn(sample(*space, 100, 1)));
  const loop::Computation& product = space->computation();
  const auto actions = loop::parse_schedule(product, "block m0").value();
  const Config refused =
      space->config({.nest = loop::apply_all(product, actions).value(), .cursor = 0});
  ASSERT_TRUE(space->why_not(refused));
  const std::vector<double> scores = guide.score(std::vector{space->start(), refused});
  EXPECT_TRUE(std::isfinite(scores[0]));
  EXPECT_EQ(scores[1], std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace foretune::autoschedule
