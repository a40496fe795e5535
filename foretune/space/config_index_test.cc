#include "foretune/space/config_index.h"

#include <gtest/gtest.h>

#include <map>

#include "foretune/base/rng.h"

namespace foretune {
namespace {

TEST(ConfigIndex, FindsWhatWasInsertedAndNothingElse) {
  constexpr std::uint64_t kSeed = 17;
  Rng rng(kSeed);
  // Uses few values and lengths, so that configs repeat and differ in little.
  std::vector<Config> configs;
  for (int i = 0; i < 3000; ++i) {
    Config config{.words = Config::Words(rng.below(7))};
    for (std::int32_t& word : config.words) {
      word = static_cast<std::int32_t>(rng.between(-2, 2)) * (1 << rng.below(3));
    }
    configs.push_back(config);
  }
  ConfigIndex index(configs);
  std::map<Config, std::uint32_t> expected;
  for (std::uint32_t i = 0; i < configs.size(); i += 2) {
    EXPECT_EQ(index.insert(i), expected.emplace(configs[i], i).second) << i << ", seed " << kSeed;
  }
  ASSERT_LT(expected.size(), configs.size() / 2) << "no repeats were tried";
  std::size_t found = 0;
  for (const Config& config : configs) {
    const auto known = expected.find(config);
    const auto position = index.find(config.words.view());
    ASSERT_EQ(position.has_value(), known != expected.end());
    if (position) {
      EXPECT_EQ(*position, known->second);
      ++found;
    }
  }
  EXPECT_LT(found, configs.size()) << "nothing unknown was looked up";
}

TEST(ConfigIndex, WithoutConfigsFindsNothing) {
  const std::int32_t word = 1;
  EXPECT_FALSE(ConfigIndex().find({&word, 1}));
  EXPECT_FALSE(ConfigIndex(std::span<const Config>()).find({}));
}

}  // namespace
}  // namespace foretune
