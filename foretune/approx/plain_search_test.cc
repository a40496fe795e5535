#include "foretune/approx/plain_search.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "foretune/families/network_cpu/network_space.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/testing/small_task.h"

namespace foretune::approx {
namespace {

TEST(FrontVolume, CountsWhatIsFasterAndKeepsTheLoss) {
  const std::vector<LossAndTime> points{{.loss = 1, .time = 0.5}, {.loss = 5, .time = 0.1}};
  EXPECT_NEAR(front_volume(points, 2), 0.5, 1e-12);
  const std::vector<LossAndTime> gain{{.loss = -3, .time = 0.75}, {.loss = 0, .time = 1.2}};
  EXPECT_NEAR(front_volume(gain, 2), 0.5, 1e-12);
  EXPECT_EQ(front_volume({}, 2), 0);
}

TEST(SearchPlainly, StopsWhenItIsAsGoodOrHasTriedEnough) {
  const graph::Task task = graph::testing::small_task(3);
  const NetworkSpace space(task.network, *graph::knob_catalogue("i8,f32+rows2.0,f32+columns2.0"));
  const auto problem = *Problem::parse("network images=4 layers=3 kmacs=14");
  std::set<Config> seen;
  // Each layer that is not exact saves a fifth and loses a point.
  const auto measure = [&](const Config& config) -> Result<LossAndTime> {
    EXPECT_TRUE(seen.insert(config).second);
    double layers = 0;
    for (const std::int32_t word : config.words) {
      layers += word != 0 ? 1 : 0;
    }
    return LossAndTime{.loss = layers, .time = 1 - layers / 5};
  };
  const auto found =
      search_plainly(problem, space, measure, {.most_loss = 2.5, .volume = 0.3, .most = 40});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->has_reached);
  EXPECT_GE(found->volume, 0.3);
  EXPECT_EQ(found->evaluations, seen.size());
  seen.clear();
  const auto enough =
      search_plainly(problem, space, measure, {.most_loss = 2.5, .volume = 9, .most = 7});
  ASSERT_TRUE(enough);
  EXPECT_FALSE(enough->has_reached);
  EXPECT_EQ(enough->evaluations, 7U);
  EXPECT_FALSE(search_plainly(problem, space, measure, {.strategy = "none"}));
}

}  // namespace
}  // namespace foretune::approx
