#include "foretune/graph/run/network_switch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/graph/network.h"
#include "foretune/graph/reference.h"
#include "foretune/graph/run/executor.h"
#include "foretune/graph/testing/random_network.h"

namespace foretune::graph {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kTinyImages = 2;

// A network of one convolution with a ReLU and a product, run exactly and by two other plans.
class NetworkSwitchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Rng rng(11);
    NetworkBuilder builder("tiny");
    const TensorId image = builder.input("image", {1, 3, 8, 8});
    const TensorId filters =
        builder.constant("filters", {8, 3, 3, 3}, testing::random_values(216, rng));
    const TensorId sums =
        builder.add("conv", "conv", {image, filters}, {.integers = {1, 1, 1, 1, 1, 1, 1, 1, 1}});
    const TensorId positive = builder.add("relu", "relu", {sums});
    auto network = builder.finish({positive});
    ASSERT_TRUE(network) << network.error().message;
    network_ = std::make_unique<Network>(*std::move(network));
    executor_ = *Executor::create({});
    image_ = testing::random_values(static_cast<std::size_t>(kTinyImages) * 192, rng);
    output_.resize(static_cast<std::size_t>(kTinyImages) * 512);
    exact_ = plan_of({});
    rows_ = plan_of({{"conv", {.skip_rows = 2}}});
    taps_ = plan_of({{"conv", {.skip_taps = 3}}});
  }

  std::shared_ptr<const NetworkPlan> plan_of(const Variants& variants,
                                             std::int64_t images = kTinyImages) {
    auto plan = NetworkPlan::create(*network_, executor_, {.images = images, .variants = variants});
    EXPECT_TRUE(plan) << plan.error().message;
    return *std::move(plan);
  }

  template <class Runner>
  std::vector<float> result_of(Runner& runner) {
    const float* const input = image_.data();
    float* const output = output_.data();
    const Status status = runner.run({&input, 1}, {&output, 1});
    EXPECT_TRUE(status) << status.error().message;
    return output_;
  }

  std::unique_ptr<Network> network_;
  std::shared_ptr<Executor> executor_;
  std::vector<float> image_;
  std::vector<float> output_;
  std::shared_ptr<const NetworkPlan> exact_;
  std::shared_ptr<const NetworkPlan> rows_;
  std::shared_ptr<const NetworkPlan> taps_;
};

TEST_F(NetworkSwitchTest, GivesTheResultsOfThePlanThatRan) {
  const std::vector<std::vector<float>> wanted{result_of(*exact_), result_of(*rows_),
                                               result_of(*taps_)};
  EXPECT_NE(wanted[0], wanted[1]);
  EXPECT_NE(wanted[0], wanted[2]);
  testing::expect_close(wanted[0], run_reference(*network_, {&image_, 1}, kTinyImages)->front(),
                        1e-4);
  // Times that are far from the truth let the controller pass through all plans.
  const auto made = NetworkSwitch::create({{exact_, 3, 4e9}, {rows_, 2, 2e9}, {taps_, 1, 1e9}},
                                          {.target_ns = 1.5e9});
  ASSERT_TRUE(made) << made.error().message;
  NetworkSwitch& network = **made;
  EXPECT_FALSE(network.last());
  EXPECT_THAT(network.expected_ns(), ElementsAre(4e9, 2e9, 1e9));
  EXPECT_THAT(network.front(), ElementsAre(2, 1, 0));
  std::vector<std::int64_t> counts(3, 0);
  for (int i = 0; i < 200; ++i) {
    const std::vector<float> found = result_of(network);
    ASSERT_TRUE(network.last());
    ASSERT_EQ(found, wanted[*network.last()]);
    ++counts[*network.last()];
    // Below what any plan can reach, then above.
    if (i % 50 == 25) {
      ASSERT_TRUE(network.set_target(1));
    } else if (i % 50 == 0) {
      ASSERT_TRUE(network.set_target(1e12));
    }
  }
  EXPECT_EQ(network.target_ns(), 1);
  EXPECT_EQ(network.counts(), counts);
  EXPECT_GT(counts[0], 0);
  EXPECT_GT(counts[2], 0);
  EXPECT_LT(network.slowdown(), 1);
}

TEST_F(NetworkSwitchTest, MeasuresPlansAndSharesThemAmongThreads) {
  const auto made =
      NetworkSwitch::create({{exact_, 3}, {rows_, 2}, {taps_, 1, 12345}}, {.target_ns = 1e6});
  ASSERT_TRUE(made) << made.error().message;
  NetworkSwitch& network = **made;
  const std::vector<double> expected = network.expected_ns();
  EXPECT_GT(expected[0], 0);
  EXPECT_GT(expected[1], 0);
  EXPECT_EQ(expected[2], 12345);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      std::vector<float> own(output_.size());
      const float* const input = image_.data();
      float* const output = own.data();
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(network.run({&input, 1}, {&output, 1}));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const std::vector<std::int64_t> counts = network.counts();
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), 100);
}

TEST_F(NetworkSwitchTest, CountsWhatTheCallerHasSpent) {
  const auto network = NetworkSwitch::create({{exact_, 1, 1e6}}, {.target_ns = 1e6});
  ASSERT_TRUE(network) << network.error().message;
  const float* const input = image_.data();
  float* const output = output_.data();
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE((*network)->run({&input, 1}, {&output, 1}, 2e6));
  }
  EXPECT_GT((*network)->slowdown(), 1.9);
}

TEST_F(NetworkSwitchTest, RefusesPlansThatDoNotFit) {
  const LatencyOptions options{.target_ns = 1e6};
  EXPECT_FALSE(NetworkSwitch::create({}, options));
  EXPECT_FALSE(NetworkSwitch::create({{nullptr, 1}}, options));
  EXPECT_FALSE(NetworkSwitch::create({{exact_, 1}, {plan_of({}, 1), 2}}, options));
  EXPECT_FALSE(NetworkSwitch::create({{exact_, 1, -1}}, options));
  EXPECT_FALSE(NetworkSwitch::create({{exact_, 1, 1}}, {}));
  const auto network = NetworkSwitch::create({{exact_, 1, 1}}, options);
  ASSERT_TRUE(network);
  EXPECT_FALSE((*network)->run({}, {}));
  EXPECT_FALSE((*network)->set_target(-1));
  EXPECT_THAT((*network)->counts(), ElementsAre(0));
}

}  // namespace
}  // namespace foretune::graph
