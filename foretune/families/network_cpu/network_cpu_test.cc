#include "foretune/families/network_cpu/network_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/families/network_cpu/network_space.h"
#include "foretune/graph/network.h"
#include "foretune/graph/run/knob.h"
#include "foretune/graph/task.h"
#include "foretune/graph/testing/small_task.h"
#include "foretune/hardware/cpu.h"
#include "foretune/problem/network/network_problem.h"
#include "foretune/problem/payload_store.h"

namespace foretune {
namespace {

using ::testing::HasSubstr;

class NetworkCpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) / concat("network_", info->name());
    std::filesystem::create_directories(folder_);
    ASSERT_TRUE(graph::write_task(graph::testing::small_task(1), folder_ / "small.ftt"));
    options_.fingerprint = cpu_fingerprint(read_cpu_facts(), {});
    options_.threads = 1;
    options_.payload_folders = {folder_.string()};
  }

  Problem problem(const std::string& text) {
    const auto store = *PayloadStore::open(options_.payload_folders);
    return *store->resolve(*Problem::parse(*store->resolve_names(text)));
  }

  std::filesystem::path folder_;
  FamilyOptions options_;
};

TEST_F(NetworkCpuTest, TheFileSaysTheFields) {
  const Problem found = problem("network images=3 payload=@small.ftt");
  EXPECT_THAT(found.text(), HasSubstr("network images=3 layers=3 kmacs=14 origin="));
  const auto store = *PayloadStore::open(options_.payload_folders);
  const auto wrong =
      store->resolve(*Problem::parse(concat("network layers=4 payload=", found.payload().hex())));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("the network has 3 layers, not 4"));
}

TEST_F(NetworkCpuTest, SpaceSaysWhatIsLegal) {
  const auto family = create_network_cpu(options_);
  ASSERT_TRUE(family) << family.error().message;
  const auto space = (*family)->space(problem("network payload=@small.ftt"));
  ASSERT_TRUE(space) << space.error().message;
  Rng rng(2);
  std::size_t kinds = 0;
  for (int i = 0; i < 200; ++i) {
    const auto config = (*space)->sample(rng);
    ASSERT_TRUE(config);
    EXPECT_TRUE((*space)->why_not(*config)) << (*space)->describe(*config);
    kinds += (*space)->describe(*config).find("last=i8") == std::string::npos ? 0U : 1U;
  }
  EXPECT_GT(kinds, 10U);
  const Config exact = (*family)->default_configs(problem("network payload=@small.ftt"))[0];
  EXPECT_EQ((*space)->describe(exact), "exact");
  for (const Config& neighbour : (*space)->neighbours(exact)) {
    EXPECT_TRUE((*space)->why_not(neighbour));
  }
  Config config = exact;
  config.words[2] = *graph::parse_knob("f32+rows2.0");
  EXPECT_THAT((*space)->why_not(config).reason(), HasSubstr("last: linear has neither rows"));
  config.words[2] = 1 << 30;
  EXPECT_THAT((*space)->why_not(config).reason(), HasSubstr("the number of no knob"));
  config.words.resize(2);
  EXPECT_THAT((*space)->why_not(config).reason(), HasSubstr("each of the 3 layers"));
}

graph::TensorId add_linear(graph::NetworkBuilder& builder, graph::TensorId x) {
  const graph::TensorId weights = builder.constant("w", {4, 4}, std::vector<float>(16, 0.5F));
  return builder.add("relu", "", {builder.add("linear", "", {x, weights})});
}

// Returns a convolution, three equal blocks of a convolution each, and a product.
graph::Network repeating_network() {
  graph::NetworkBuilder builder("repeats");
  const auto conv = [&](graph::TensorId x, std::int64_t channels) {
    const graph::TensorId weights = builder.constant(
        "w", {4, channels, 3, 3}, std::vector<float>(static_cast<std::size_t>(36 * channels), 1));
    return builder.add("conv", "", {x, weights}, {.integers = {1, 1, 1, 1, 1, 1, 1, 1, 1}});
  };
  graph::TensorId x = conv(builder.input("image", {1, 2, 6, 6}), 2);
  for (int i = 0; i < 3; ++i) {
    x = builder.add("add", "", {builder.add("relu", "", {conv(x, 4)}), x});
  }
  const graph::TensorId mean = builder.add("reduce_mean", "", {x}, {.integers = {0, 2, 3}});
  return *builder.finish({add_linear(builder, mean)});
}

std::size_t changes(const Config& a, const Config& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.words.size(); ++i) {
    count += a.words[i] != b.words[i] ? 1U : 0U;
  }
  return count;
}

TEST(NetworkSpace, ChangesAlikeLayersTogether) {
  const std::int32_t i8 = *graph::parse_knob("i8");
  const std::int32_t rows = *graph::parse_knob("f32+rows2.0");
  const NetworkSpace space(repeating_network(), {0, i8, rows});
  const auto config = [](const Config::Words& words) {
    return Config{network_schema().id(), words};
  };
  const Config exact = config({0, 0, 0, 0, 0});
  const std::vector<Config> near = space.neighbours(exact);
  ASSERT_EQ(near.size(),
            11U);  // two knobs of four convolutions, one of the product, two of a class
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(changes(exact, near[i]), 1U);
  }
  EXPECT_EQ(near[9], config({0, i8, i8, i8, 0}));
  EXPECT_EQ(near[10], config({0, rows, rows, rows, 0}));
  // Back to exact layers, too; what changes a single layer is there already.
  const std::vector<Config> others = space.neighbours(config({rows, i8, rows, i8, 0}));
  ASSERT_EQ(others.size(), 11U);
  EXPECT_EQ(others[9], config({rows, 0, 0, 0, 0}));
  EXPECT_EQ(others[10], config({rows, rows, rows, rows, 0}));

  const std::vector<Config> proposals = space.proposals(100);
  EXPECT_THAT(proposals, ::testing::ElementsAre(
                             config({i8, i8, i8, i8, i8}), config({rows, rows, rows, rows, 0}),
                             config({0, i8, i8, i8, 0}), config({0, rows, rows, rows, 0})));
  for (std::size_t count = 0; count < proposals.size(); ++count) {
    EXPECT_EQ(space.proposals(count),
              std::vector<Config>(proposals.begin(),
                                  proposals.begin() + static_cast<std::ptrdiff_t>(count)));
  }
}

TEST(NetworkSpace, OffersNothingTwice) {
  graph::NetworkBuilder builder("chain");
  graph::TensorId x = builder.input("x", {1, 4});
  for (int i = 0; i < 6; ++i) {
    x = add_linear(builder, x);
  }
  const graph::Network chain = *builder.finish({x});
  // All layers are alike, so a knob in all layers is a knob in all of the class.
  const NetworkSpace few(chain, {*graph::parse_knob("i8")});
  EXPECT_EQ(few.proposals(100).size(), 1U);
  Rng rng(4);
  std::size_t together = 0;
  for (const graph::Network& network : {chain, repeating_network()}) {
    const NetworkSpace space(network, *graph::knob_catalogue("all"));
    for (int i = 0; i < 50; ++i) {
      const Config config = *space.sample(rng);
      const std::vector<Config> near = space.neighbours(config);
      EXPECT_EQ(std::set<Config>(near.begin(), near.end()).size(), near.size());
      std::size_t singles = 0;
      for (const Config& each : near) {
        EXPECT_TRUE(space.why_not(each)) << space.describe(each);
        EXPECT_NE(each, config);
        singles += changes(config, each) == 1 ? 1U : 0U;
      }
      EXPECT_LE(2 * (near.size() - singles), singles);
      together += near.size() - singles;
    }
    const std::vector<Config> proposals = space.proposals(1000);
    EXPECT_EQ(std::set<Config>(proposals.begin(), proposals.end()).size(), proposals.size());
  }
  EXPECT_GT(together, 100U);
}

TEST_F(NetworkCpuTest, ConfigsRunAndAreJudged) {
  const auto family = create_network_cpu(options_);
  ASSERT_TRUE(family) << family.error().message;
  const Problem asked = problem("network images=5 payload=@small.ftt");
  const auto data = (*family)->make_data(asked, 1);
  ASSERT_TRUE(data) << data.error().message;
  const auto space = (*family)->space(asked);
  std::vector<Config> configs = (*family)->default_configs(asked);
  Rng rng(3);
  for (int i = 0; i < 6; ++i) {
    configs.push_back(*(*space)->sample(rng));
  }
  std::vector<double> quality;
  for (const Config& config : configs) {
    SCOPED_TRACE((*space)->describe(config));
    const auto artifact = (*family)->prepare(asked, config);
    ASSERT_TRUE(artifact) << artifact.error().message;
    const auto run = (*artifact)->bind(asked, **data);
    ASSERT_TRUE(run) << run.error().message;
    (*data)->poison();
    EXPECT_FALSE((*data)->verify());
    (*run)->run();
    const Support right = (*data)->verify();
    EXPECT_TRUE(right) << right.reason();
    const auto metrics = (*run)->evaluate(std::vector<std::string>{"qos_tune", "qos_test"});
    ASSERT_TRUE(metrics) << metrics.error().message;
    ASSERT_EQ(metrics->size(), 2U);
    quality.push_back((*metrics)[0].value);
    EXPECT_GE((*metrics)[1].value, 0);
    EXPECT_LE((*metrics)[1].value, 100);
    EXPECT_FALSE((*run)->evaluate(std::vector<std::string>{"psnr"}));
  }
  EXPECT_NEAR(quality[0], quality[1], 10);
}

TEST_F(NetworkCpuTest, BadOptionsAndTasksAreRefused) {
  options_.parameters = {{"knobs", "i8,none"}};
  EXPECT_FALSE(create_network_cpu(options_));
  options_.parameters = {{"tuning_images", "0"}};
  EXPECT_FALSE(create_network_cpu(options_));
  options_.parameters = {{"quality", "best"}};
  EXPECT_EQ(create_network_cpu(options_).error().code, ErrorCode::kNotFound);
  options_.parameters = {{"quality", "top5"}};
  const auto family = *create_network_cpu(options_);
  const auto data = family->make_data(problem("network payload=@small.ftt"), 1);
  ASSERT_FALSE(data);
  EXPECT_THAT(data.error().message, HasSubstr("the five largest of 4 outputs are all of them"));
  options_.parameters = {{"nonsense", "0"}};
  EXPECT_FALSE(create_network_cpu(options_));
  graph::Task task = graph::testing::small_task(2);
  task.tuning.labels[3] = 4;
  const Status status = graph::write_task(task, folder_ / "wrong.ftt");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("a label of the tuning images is 4"));
  const std::vector<std::byte> bytes = graph::task_bytes(graph::testing::small_task(3));
  for (std::size_t i = 0; i < bytes.size(); i += 37) {
    std::vector<std::byte> damaged = bytes;
    damaged[i] ^= std::byte{1};
    EXPECT_FALSE(graph::parse_task(damaged)) << i;
  }
  EXPECT_TRUE(graph::parse_task(bytes));
}

}  // namespace
}  // namespace foretune
