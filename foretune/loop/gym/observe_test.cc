#include "foretune/loop/gym/observe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "foretune/loop/gym/observation_texts.h"
#include "foretune/loop/gym/observations.h"
#include "foretune/loop/gym/testing/evaluators.h"

namespace foretune::loop::gym {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::by_hash;
using testing_support::FunctionEvaluator;

Environment observed(Evaluator& evaluator) {
  return Environment::create(loop::matmul({.m = 64, .n = 32, .k = 16}).value(), ActionSet(),
                             evaluator, 100)
      .value();
}

FloatTensor tensor(const Environment& environment, std::string_view name) {
  return std::get<FloatTensor>(observe(environment, name).value());
}

TEST(Observe, KnowsTheNamesOfLoopTunesUsers) {
  std::set<std::string_view> names;
  for (const ObservationInfo& info : observations()) {
    names.insert(info.name);
    EXPECT_FALSE(info.what.empty());
  }
  EXPECT_EQ(names.size(), observations().size());
  for (const std::string_view name :
       {"runtime", "flops", "ir", "loop_tree", "ir_tree_networkx", "ir_graph_networkx",
        "loops_tensor", "stride_tensor", "5_prev_actions_tensor"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Observe, GivesEachTheKindThatTheTableTells) {
  FunctionEvaluator evaluator(by_hash());
  const Environment environment = observed(evaluator);
  for (const ObservationInfo& info : observations()) {
    const auto observation = observe(environment, info.name);
    ASSERT_TRUE(observation) << info.name;
    EXPECT_EQ(observation->index(), static_cast<std::size_t>(info.kind)) << info.name;
    if (const auto* values = std::get_if<FloatTensor>(&*observation)) {
      std::size_t count = 1;
      for (const std::size_t size : values->shape) {
        count *= size;
      }
      EXPECT_EQ(values->values.size(), count) << info.name;
    }
  }
}

TEST(Observe, WritesTensorsIntoMemoryOfTheCaller) {
  FunctionEvaluator evaluator(by_hash());
  Environment environment = observed(evaluator);
  ASSERT_TRUE(environment.step(CursorAction::kSplit4));
  for (std::size_t i = 0; i < observations().size(); ++i) {
    const ObservationInfo& info = observations()[i];
    ASSERT_EQ(find_observation(info.name).value(), i);
    const std::vector<std::size_t> shape =
        observation_shape(i, environment.options(), environment.actions());
    EXPECT_EQ(shape.empty(), info.kind != ObservationKind::kFloatTensor) << info.name;
    if (!shape.empty()) {
      const FloatTensor expected = tensor(environment, info.name);
      EXPECT_EQ(shape, expected.shape) << info.name;
      std::vector<float> written(expected.values.size(), -1);
      write_observation(environment, i, written);
      EXPECT_EQ(written, expected.values) << info.name;
    }
  }
}

TEST(Observe, GivesTensorsOfFixedShapes) {
  FunctionEvaluator evaluator(by_hash());
  Environment environment = observed(evaluator);
  ASSERT_TRUE(environment.step(CursorAction::kSplit4));
  EXPECT_THAT(tensor(environment, "loops_tensor").shape, ElementsAre(10, 20));
  EXPECT_THAT(tensor(environment, "loops_features").shape, ElementsAre(10, kLoopFeatureColumns));
  EXPECT_THAT(tensor(environment, "stride_tensor").shape, ElementsAre(32));
  const FloatTensor previous = tensor(environment, "5_prev_actions_tensor");
  EXPECT_THAT(previous.shape, ElementsAre(5, 8));
  EXPECT_EQ(previous.values[4 * 8 + 4], 1);
  std::vector<float> expected(200);
  write_loops_tensor(environment.computation(), environment.state(), expected);
  EXPECT_EQ(tensor(environment, "loops_tensor").values, expected);
}

TEST(Observe, GivesTheFiguresOfTheEvaluator) {
  FunctionEvaluator evaluator([](const loop::Nest& nest) {
    return nest.loops.size() > 3 ? testing_support::refused()
                                 : Evaluated{.ok = true, .seconds = 2e-6, .gflops = 50};
  });
  Environment environment = observed(evaluator);
  const auto number = [&](std::string_view name) {
    return std::get<double>(observe(environment, name).value());
  };
  EXPECT_DOUBLE_EQ(number("runtime"), 2e-6);
  EXPECT_DOUBLE_EQ(number("runtime_ns"), 2000);
  EXPECT_DOUBLE_EQ(number("flops"), 50);
  ASSERT_TRUE(environment.step(CursorAction::kSplit4));
  EXPECT_EQ(number("flops"), 0);
  EXPECT_EQ(number("runtime"), std::numeric_limits<double>::infinity());
}

TEST(Observe, GivesTexts) {
  FunctionEvaluator evaluator(by_hash());
  const Environment environment = observed(evaluator);
  EXPECT_EQ(std::get<std::string>(observe(environment, "ir_graph_dot").value()),
            ir_graph_dot(environment.computation(), environment.state()));
}

TEST(Observe, NamesWhatIsNoObservation) {
  FunctionEvaluator evaluator(by_hash());
  const auto wrong = observe(observed(evaluator), "weather");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message,
              HasSubstr("'weather' is no observation; the observations are runtime runtime_ns"));
}

}  // namespace
}  // namespace foretune::loop::gym
