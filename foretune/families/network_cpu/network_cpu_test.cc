#include "foretune/families/network_cpu/network_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "foretune/base/rng.h"
#include "foretune/base/text.h"
#include "foretune/families/network_cpu/network_space.h"
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
